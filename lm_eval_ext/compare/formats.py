"""A comparison as text, Markdown, CSV, JSON or LaTeX."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from shutil import get_terminal_size
from types import MappingProxyType
from typing import Any

from lm_eval_ext.compare import latex
from lm_eval_ext.compare.report import (
    PAIR_COLUMNS,
    Report,
    escaped,
    guarded,
    markdown_line,
    pair_row,
    system_rows,
)
from lm_eval_ext.compare.sections import NAME, NUMBERS, sections
from lm_eval_ext.text import broken

WIDTH = 80
"""Columns of the text, or more where the terminal has more."""


def _as_text(report: Report) -> str:
    """Tables for a terminal, at most as wide as it, or :data:`WIDTH`."""
    from rich.console import Console

    out = io.StringIO()
    width = max(WIDTH, get_terminal_size((WIDTH, 0)).columns)
    console = Console(file=out, width=width, color_system=None, highlight=False, markup=False)
    for heading, columns, rows in sections(report):
        # A signature stays on one line, to be copied.
        console.print(heading, soft_wrap="|" in heading)
        if columns:
            console.print(grid(columns, rows))
        console.print()
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip() + "\n"


def _as_markdown(report: Report) -> str:
    lines: list[str] = []
    for heading, columns, rows in sections(report):
        lines += [escaped(line) for line in heading.splitlines()]
        if columns:
            rule = markdown_line(["---"] * len(columns))
            lines += ["", markdown_line(columns), rule, *map(markdown_line, rows)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _as_csv(report: Report) -> str:
    """One row per pair of systems and metric, with all digits."""
    out = io.StringIO()
    writer = csv.DictWriter(out, PAIR_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for table in report.tables:
        for pair in table.pairs:
            writer.writerow({key: guarded(value) for key, value in pair_row(table, pair).items()})
    return out.getvalue()


def _as_json(report: Report) -> str:
    content = {
        "settings": asdict(report.settings),
        "signatures": report.signatures,
        "refused": [asdict(refusal) for refusal in report.refused],
        "figures": [row for table in report.tables for row in system_rows(table)],
        "pairs": [pair_row(table, pair) for table in report.tables for pair in table.pairs],
        "notes": [
            {"task": table.task, "metric": table.metric, "note": table.note}
            for table in report.tables
            if table.note
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


FORMATS: Mapping[str, Callable[[Report], str]] = MappingProxyType(
    {
        "text": _as_text,
        "markdown": _as_markdown,
        "csv": _as_csv,
        "json": _as_json,
        "latex": latex.by_task,
    }
)


def grid(columns: list[str], rows: list[list[str]]) -> Any:
    """A table for a terminal; numbers are aligned on the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        number = column in NUMBERS or column.endswith(" %")
        right = place > 0 and all(row[place][:1] in "+-[0123456789N" for row in rows)
        table.add_column(
            column if number else broken(column, NAME),
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=number,
        )
    for row in rows:
        table.add_row(*row)
    return table
