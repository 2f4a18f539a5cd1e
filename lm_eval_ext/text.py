"""Text from other sources, made safe for one line of a terminal, or read as a number."""

import math
import re
from collections.abc import Iterable


def broken(text: str, width: int) -> str:
    """Break a name into lines where it is long: at spaces and after signs, not inside a word.

    A comparison such as "the dog > the dogs" breaks before its sign.

    Args:
        text: The name, on one line.
        width: Maximum number of characters of a line; a single word may be longer.
    """
    comparison = re.fullmatch(r"(.+?) *(>.+)", text) if len(text) > width else None
    parts = comparison.groups() if comparison else (text,)
    return "\n".join(_broken_part(part, width) for part in parts)


def _broken_part(text: str, width: int) -> str:
    lines = [""]
    for piece in re.findall(r"[^-/:,_ ]+[-/:,_ ]?|[-/:,_ ]", text):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(map(str.rstrip, lines))


def counted(number: int, unit: str) -> str:
    """Return a number with its unit, such as "3 dishes" or "1 country"."""
    if number != 1:
        if unit.endswith(("s", "sh", "ch", "x", "z")):
            unit += "es"
        elif unit.endswith("y") and unit[-2:-1] not in _VOWELS:
            unit = unit[:-1] + "ies"
        else:
            unit += "s"
    return f"{number:,} {unit}"


_VOWELS = tuple("aeiou")


MAX_NAMES = 3
"""Names that a note has before it counts the rest."""


def named_briefly(names: Iterable[str]) -> str:
    """Return some of the names, and how many more there are."""
    different = list(dict.fromkeys(names))
    has_commas = any("," in name for name in different)
    text = ("; " if has_commas else ", ").join(different[:MAX_NAMES])
    if len(different) > MAX_NAMES:
        text += f" and {len(different) - MAX_NAMES} more"
    return text


_UNTYPEABLE = re.compile(r"[<>+&|;*?,=]+")
"""What a shell or ``--where`` reads as its own."""


def typeable(value: str) -> str:
    """Return a facet's value as it can be typed: ``pos_neg_s-pos_pos_s`` of ``...>...``."""
    return _UNTYPEABLE.sub("-", value)


def value_typed(typed: str, values: Iterable[str]) -> str:
    """Return which of a facet's values a user typed, perhaps in its :func:`typeable` form.

    It is what was typed if there is no such value.
    """
    known = list(values)
    if typed in known:
        return typed
    return next((value for value in known if typeable(value) == typed), typed)


def names_in(text: str) -> list[str]:
    """Return the names in an option, which commas separate."""
    names = [name.strip() for name in text.split(",")]
    return [name for name in names if name]


def one_line(text: str, *, limit: int | None = None) -> str:
    """Return the text on one line, without control characters.

    Names, paths, servers and models may contain line breaks, terminal escapes and direction
    marks, which would garble a table or the last line of a failed run.

    Args:
        text: Any text.
        limit: Maximum number of characters, 1 or more; a longer text loses its middle.
    """
    if limit is not None and len(text) > 4 * limit:
        # Before looking at each character: there may be millions.
        text = text[: 2 * limit] + "…" + text[-2 * limit :]
    if not text.isprintable():
        characters = [character if character.isprintable() else " " for character in text]
        text = "".join(characters)
    line = " ".join(text.split())
    if limit is not None and len(line) > limit:
        half = (limit - 1) // 2
        line = line[:half] + "…" + line[len(line) - half :]
    return line


_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmbt]?)", re.IGNORECASE)
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


def quantity(value: object) -> float | None:
    """Return a number, or that of a text such as 350M or 7B (also k and T); None for others."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else None
    if not isinstance(value, str):
        return None
    match = _QUANTITY.fullmatch(value.strip())
    if match is None:
        return None
    number, unit = match.groups()
    return float(number) * _UNITS[unit.casefold()]


_SHOWN_AS_ONE = 0.9995
"""A number from here on is 1 in three digits."""


def size_text(size: float) -> str:
    """Return a quantity of 1 or more with three digits, such as 6.74B.

    Raises:
        ValueError: It is less than 1.
    """
    for unit, factor in reversed(_UNITS.items()):
        if size >= _SHOWN_AS_ONE * factor:
            return f"{size / factor:.3g}{unit.upper()}"
    raise ValueError(f"{size} is less than 1")
