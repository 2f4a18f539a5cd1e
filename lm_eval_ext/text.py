"""Text from other sources, made safe for one line of a terminal, or read as a number."""

import math
import re


def broken(text: str, width: int) -> str:
    """Breaks a name into lines where it is long: at spaces and after signs, not inside a word.

    Args:
        text: On one line.
        width: Most characters of a line; a single word may be longer.
    """
    lines = [""]
    for piece in re.findall(r"[^-/:,_ ]+[-/:,_ ]?|[-/:,_ ]", text):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(map(str.rstrip, lines))


def counted(number: int, unit: str) -> str:
    """Return a number of clusters, such as "3 dishes" or "1 country"."""
    if number != 1:
        if unit.endswith(("s", "sh", "ch", "x", "z")):
            unit += "es"
        elif unit.endswith("y") and unit[-2:-1] not in _VOWELS:
            unit = unit[:-1] + "ies"
        else:
            unit += "s"
    return f"{number:,} {unit}"


_VOWELS = tuple("aeiou")


def names_in(text: str) -> list[str]:
    """What an option names, separated by commas."""
    return [*filter(None, map(str.strip, text.split(",")))]


def one_line(text: str, *, limit: int | None = None) -> str:
    """Returns the text on one line, without control characters.

    Names, paths, servers and models may contain line breaks, terminal escapes and direction
    marks, which would garble a table or the last line of a failed run.

    Args:
        text: Anything.
        limit: Most characters; a longer text loses its middle.
    """
    if limit is not None and len(text) > 4 * limit:
        # Before looking at each character: there may be millions.
        text = text[: 2 * limit] + "…" + text[-2 * limit :]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    line = " ".join(text.split())
    if limit is not None and len(line) > limit:
        half = (limit - 1) // 2
        line = line[:half] + "…" + line[-half:]
    return line


_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmbt]?)", re.IGNORECASE)
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


def quantity(value: object) -> float | None:
    """A number, or a text such as 350M or 7B (also k and T); None if it is neither."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else None
    found = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(found[1]) * _UNITS[found[2].casefold()] if found else None


def size_text(size: float) -> str:
    """The same from 1 up, with three digits, such as 6.74B."""
    every = reversed(_UNITS.items())
    unit, one = next((unit, one) for unit, one in every if size >= 0.9995 * one)  # shown as 1
    return f"{size / one:.3g}{unit.upper()}"
