"""A detail of a sample in a terminal: a text or a table below its title."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap

from lm_eval_ext.results.samples import Detail
from lm_eval_ext.text import one_line

LABEL_WIDTH = 10
"""Columns of the labels at the left."""

INDENT = " " * LABEL_WIDTH
"""What stands in front of lines without a label."""

_MAX_CELL = 60
"""Characters of a cell of a table."""

_MIN_COLUMN = 6
"""Characters that a column of a table keeps, however narrow the terminal."""


def detail_text(detail: Detail, width: int) -> Iterator[str]:
    """Yield a detail's text or table below its title."""
    if not detail.table:
        content = f"{detail.title}: {one_line(detail.text)}"
        yield from wrap(content, width, initial_indent=INDENT, subsequent_indent=INDENT)
        return
    heading, columns, lines = detail_section(detail)
    yield from wrap(heading, width, initial_indent=INDENT, subsequent_indent=INDENT)
    for line in _table_text([columns, *lines], width - LABEL_WIDTH):
        yield f"{INDENT}{line}".rstrip()


def _table_text(lines: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield a table with a head, whose widest columns are wrapped until it fits the width."""
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    gaps = 2 * (len(sizes) - 1)
    while sum(sizes) + gaps > width and max(sizes) > _MIN_COLUMN:
        sizes[sizes.index(max(sizes))] -= 1
    for line_number, row in enumerate(lines):
        cells = [wrap(cell, size) or [""] for cell, size in zip(row, sizes, strict=True)]
        for texts in zip_longest(*cells, fillvalue=""):
            padded = [f"{text:{size}}" for text, size in zip(texts, sizes, strict=True)]
            yield "  ".join(padded)
        if line_number == 0:
            yield "─" * (sum(sizes) + gaps)


def detail_section(detail: Detail) -> tuple[str, list[str], list[list[str]]]:
    """Return a detail's table with a first column that marks the rows that differ."""
    head, *body = detail.table
    columns = _short_cells(head)
    lines = [_short_cells(row) for row in body]
    if detail.marked:
        columns.insert(0, "")
        for row_number, row in enumerate(lines):
            row.insert(0, "≠" if row_number in detail.marked else "")
    return one_line(detail.title), columns, lines


def _short_cells(row: Sequence[str]) -> list[str]:
    return [one_line(cell, limit=_MAX_CELL) for cell in row]
