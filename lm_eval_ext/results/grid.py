"""Tables of text for a terminal, and the same for a document."""

import io
from collections.abc import Iterable, Mapping, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_ext.stats.statistics import NONE, number
from lm_eval_ext.text import broken

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table

Section: TypeAlias = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A heading, and the columns and rows of the table below it (no columns: no table)."""

BEST, LOWER = "*", " ↓"
"""No other system is significantly better; lower is better."""

WIDTH = 80
"""Columns of the text, or more where the terminal has more."""

_NAME, _SHORT = 24, 14
"""Characters after which headings are broken, by the number of columns."""


def value(found: float | None, unit: str, *, best: bool = False) -> str:
    """A number with its unit and mark; marks are a column of their own."""
    shown = number(found, unit)
    percent = " %" * (unit == "percent" and shown != NONE)
    return shown + percent + (BEST if best else " ")


def interval(low: float | None, high: float | None, unit: str, *, signed: bool = False) -> str:
    """Both ends; "" where there are none."""
    ends = [number(end, unit, signed=signed) for end in (low, high)]
    return "" if NONE in ends else f"[{', '.join(ends)}]"


def matrix(
    cells: Mapping[str, Mapping[str, str]], *, turned: bool
) -> tuple[list[str], list[list[str]]]:
    """Columns and rows from cells by row and column; ``turned``: by column and row."""
    rows, columns = list(cells), list(dict.fromkeys(name for own in cells.values() for name in own))
    if turned:
        found = [[name, *(cells[row].get(name, "-") for row in rows)] for name in columns]
        return ["", *rows], found
    return ["", *columns], [[row, *(cells[row].get(name, "-") for name in columns)] for row in rows]


def text(found: Iterable[Section], width: int = 0) -> str:
    """Sections for a terminal."""
    from rich.console import Console

    out = io.StringIO()
    width = width or max(WIDTH, get_terminal_size((WIDTH, 0)).columns)
    console = Console(
        file=out, width=width, color_system=None, highlight=False, markup=False, emoji=False
    )
    for heading, columns, rows in found:
        if heading:
            console.print(heading)
        if columns:
            console.print(_grid(columns, rows, width))
        console.print()
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip() + "\n"


def _grid(columns: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> "Table":
    """Numbers stand on the right, and never break; names do where they have no room."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    lines = [list(row) for row in rows]
    heads = [broken(one, _SHORT if len(columns) > 4 else _NAME) for one in columns]  # noqa: PLR2004
    texts = zip(heads, *lines, strict=True)
    taken = [max(map(len, "\n".join(column).split("\n"))) + 2 for column in texts]
    name = max(_SHORT, width - sum(taken[1:]))
    for place, head in enumerate(heads):
        right = place > 0 and all(line[place][:1] in "+-[<0123456789N" for line in lines)
        justify: JustifyMethod = "right" if right else "left"
        table.add_column(head, justify=justify, overflow="fold", no_wrap=right)
    for line in lines:
        table.add_row(broken(line[0], name), *line[1:])
    return table


def markdown(found: Iterable[Section]) -> str:
    """Sections for a document."""
    lines: list[str] = []
    for heading, columns, rows in found:
        lines += map(_escaped, heading.splitlines())
        if columns:
            lines += ["", _line(columns), f"|{' --- |' * len(columns)}", *map(_line, rows)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """Escapes text for Markdown, so that a model's name is neither mark-up nor HTML."""
    for character in "\\`*_[]<>|#~":
        text = text.replace(character, "\\" + character)
    return text
