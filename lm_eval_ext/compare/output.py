"""A comparison as text, Markdown, CSV or JSON."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from lm_eval_ext.compare.report import Report
from lm_eval_ext.compare.rows import NUMBERS, PAIRS, figure_rows, pair_row, sections


def as_text(report: Report) -> str:
    """Tables for a terminal, of 100 columns or as wide as they need."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None, highlight=False, markup=False)
    for heading, columns, rows in sections(report):
        console.print(heading, soft_wrap=True)
        if columns:
            console.print(_rich(columns, rows))
        console.print()
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip() + "\n"


def as_markdown(report: Report) -> str:
    """The same tables in Markdown."""
    lines: list[str] = []
    for heading, columns, rows in sections(report):
        lines += [escaped(line) for line in heading.splitlines()]
        if columns:
            rule = markdown_line(["---"] * len(columns))
            lines += ["", markdown_line(columns), rule, *map(markdown_line, rows)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def as_csv(report: Report) -> str:
    """One row per pair of systems and metric, numbers in full."""
    out = io.StringIO()
    writer = csv.DictWriter(out, PAIRS, lineterminator="\n")
    writer.writeheader()
    for table in report.tables:
        for pair in table.pairs:
            writer.writerow({key: guarded(value) for key, value in pair_row(table, pair).items()})
    return out.getvalue()


def as_json(report: Report) -> str:
    """Everything."""
    content = {
        "settings": asdict(report.settings),
        "signatures": report.signatures,
        "refused": [asdict(refusal) for refusal in report.refused],
        "figures": [row for table in report.tables for row in figure_rows(table)],
        "pairs": [pair_row(table, pair) for table in report.tables for pair in table.pairs],
        "notes": [
            {"task": table.task, "metric": table.metric, "note": table.note}
            for table in report.tables
            if table.note
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


FORMATS: Mapping[str, Callable[[Report], str]] = MappingProxyType(
    {"text": as_text, "markdown": as_markdown, "csv": as_csv, "json": as_json}
)

_WIDTH = 160


def _rich(columns: list[str], rows: list[list[str]]) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(box=SIMPLE, pad_edge=False)
    for column in columns:
        right = column in NUMBERS
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def markdown_line(cells: Iterable[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """Text as Markdown shows it: no mark-up, no column, no HTML of a model's name."""
    for character in "\\`*_[]<>|#~":
        text = text.replace(character, "\\" + character)
    return text


def guarded(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula starts with an apostrophe."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")):
        return "'" + value
    return value
