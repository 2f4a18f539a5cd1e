"""Tables of text for a terminal, and the same for a document."""

from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_ext.text import broken

if TYPE_CHECKING:
    from rich.table import Table

Section: TypeAlias = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A heading, and the columns and rows of the table below it (no columns: no table)."""

WIDTH = 80
"""Columns of the text, or more where the terminal has more."""

_NAME = 24
"""Characters after which a name is broken."""


def text(found: Iterable[Section], width: int = 0) -> str:
    """Sections for a terminal."""
    import io

    from rich.console import Console

    width = width or max(WIDTH, get_terminal_size((WIDTH, 0)).columns)
    console = Console(
        file=io.StringIO(), width=width, color_system=None, highlight=False, markup=False,
        emoji=False,
    )  # fmt: skip
    with console.capture() as shown:
        for heading, columns, rows in found:
            if heading:
                console.print(heading)
            if columns:
                console.print(grid(columns, rows))
            console.print()
    return "\n".join(line.rstrip() for line in shown.get().splitlines()).rstrip() + "\n"


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> "Table":
    """Numbers stand on the right, and never break."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    lines = [list(row) for row in rows]
    for place, column in enumerate(columns):
        right = place > 0 and all(line[place][:1] in "+-[<0123456789N" for line in lines)
        table.add_column(
            broken(column, _NAME), justify="right" if right else "left", overflow="fold",
            no_wrap=right,
        )  # fmt: skip
    for line in lines:
        table.add_row(broken(line[0], _NAME), *line[1:])
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
