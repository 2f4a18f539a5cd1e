"""Text from other sources, made safe for one line of a terminal."""

import re

ELLIPSIS = "…"


def broken(text: str, width: int) -> str:
    """Breaks a metric's name into lines, before its variant's end and its parts, where it is long.

    Args:
        text: On one line.
        width: Most characters of a line; a single piece may be longer.
    """
    lines = [""]
    for piece in re.findall(r"[^/:,]*[/:,]?", text):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def several(unit: str) -> str:
    """The plural of what a cluster is."""
    return unit + ("es" if unit.endswith("sh") else "s")


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
        text = text[: 2 * limit] + ELLIPSIS + text[-2 * limit :]
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if limit is not None and len(line) > limit:
        half = (limit - 1) // 2
        line = line[:half] + ELLIPSIS + line[-half:]
    return line
