"""What a comparison is asked, and what it finds.

A comparison as rows for programs, and as tables for people.

A comparison as text, Markdown, CSV or JSON.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from lm_eval_ext.harness.names import NONE
from lm_eval_ext.stats.paired import Difference
from lm_eval_ext.text import one_line


@dataclass(frozen=True)
class Settings:
    """How to compare.

    Attributes:
        metrics: Which; see :func:`~lm_eval_ext.compare.metrics.choose_metrics`.
        alpha: Level of tests and groups; intervals have 1 - alpha.
        seed: Of resampling.
        across_settings: See :func:`~lm_eval_ext.compare.align.align`.
    """

    metrics: tuple[str, ...] = ()
    alpha: float = 0.05
    seed: int = 0
    across_settings: bool = False


@dataclass(frozen=True)
class Pair:
    """Two systems on one metric.

    Attributes:
        first: One, by name.
        second: The other.
        difference: First less second.
        p_holm: Adjusted for all pairs of the metric.
    """

    first: str
    second: str
    difference: Difference
    p_holm: float | None = None


@dataclass(frozen=True)
class Table:
    """One metric of one task.

    Attributes:
        task: Its name, or those of two that are compared.
        metric: As in results files.
        documents: Scored by all systems.
        clusters: That the documents come from.
        unit: What a cluster is.
        values: By system, the best first; None: undefined.
        marks: By system, letters: two that share one cannot be told apart.
        pairs: All of them, in the order in which the systems were named.
        note: Why there is no test, if there is none.
    """

    task: str
    metric: str
    documents: int
    clusters: int
    unit: str
    values: Mapping[str, float | None]
    marks: Mapping[str, str]
    pairs: Sequence[Pair]
    note: str = ""


@dataclass(frozen=True)
class Refusal:
    """A task that was not compared: why, and the signatures of the runs."""

    task: str
    reason: str
    signatures: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """All that a comparison found.

    Attributes:
        tables: One per task and metric.
        refused: Tasks that could not be compared.
        signatures: By task, of the first system's run.
        settings: How it was compared.
    """

    tables: Sequence[Table]
    refused: Sequence[Refusal]
    signatures: Mapping[str, str]
    settings: Settings


FIGURES = ("task", "metric", "documents", "clusters", "unit", "system", "value", "group")
PAIRS = (
    "task", "metric", "documents", "clusters", "unit", "first", "second", "value_first",
    "value_second", "difference", "stderr", "low", "high", "p", "p_holm", "test",
)  # fmt: skip
"""Columns of tables that programs read."""

Section: TypeAlias = tuple[str, list[str], list[list[str]]]
"""A heading, and the columns and rows of the table below it (none: a heading alone)."""

NUMBERS = frozenset({"value", "difference", "p", "p (Holm)", "documents"})
"""Columns that are aligned to the right."""

_LEGEND = (
    "Systems that share a letter cannot be told apart at {alpha} (Holm's method over all pairs "
    "of a metric). "
)
_MORE = "docs/compare.md says what the intervals and tests are."


def sections(report: Report) -> Iterable[Section]:
    """Yields what a person reads, from top to bottom."""
    letters = False
    for task in dict.fromkeys(table.task for table in report.tables):
        tables = [table for table in report.tables if table.task == task]
        if all(len(table.values) == 2 for table in tables):  # noqa: PLR2004
            yield _of_two(task, tables, report)
        else:
            letters = True
            yield _of_many(task, tables)
            yield _of_pairs(task, tables, report)
        if notes := [f"{table.metric}: {table.note}" for table in tables if table.note]:
            yield "\n".join(one_line(note) for note in notes), [], []
    for task, signature in report.signatures.items():
        yield f"{one_line(task)}: {signature}", [], []
    for refusal in report.refused:
        lines = [f"not compared: {one_line(refusal.reason)}"]
        lines += [f"  {one_line(name)}: {text}" for name, text in refusal.signatures.items()]
        yield "\n".join(lines), [], []
    if report.tables:
        legend = _LEGEND.format(alpha=f"{report.settings.alpha:g}") if letters else ""
        yield legend + _MORE, [], []


def _of_two(task: str, tables: Sequence[Table], report: Report) -> Section:
    """Both figures and their difference in one row."""
    names = sorted(tables[0].values)
    pairs = [pair for table in tables for pair in table.pairs]
    if pairs:
        names = [pairs[0].first, pairs[0].second]
    adjusted = any(pair.p_holm != pair.difference.p for pair in pairs)
    rows = []
    for table in tables:
        row = [one_line(table.metric), *(_number(table.values[name]) for name in names)]
        found = _pair_cells(pair_row(table, table.pairs[0])) if table.pairs else [NONE] * 5
        rows.append([*row, *(found if adjusted else found[:3] + found[4:]), *_counts(table)])
    columns = ["metric", *map(one_line, names), "difference", _level(report), "p"]
    columns += [*(["p (Holm)"] if adjusted else []), "test", "documents", "clusters"]
    return one_line(task), columns, rows


def _of_many(task: str, tables: Sequence[Table]) -> Section:
    columns = ["metric", "system", "value", "group", "documents", "clusters"]
    rows = [
        [
            one_line(table.metric), one_line(name), _number(value), table.marks.get(name, ""),
            *_counts(table),
        ]
        for table in tables
        for name, value in table.values.items()
    ]  # fmt: skip
    return one_line(task), columns, rows


def _of_pairs(task: str, tables: Sequence[Table], report: Report) -> Section:
    columns = ["metric", "first", "second", "difference", _level(report), "p", "p (Holm)", "test"]
    rows = [
        [
            one_line(table.metric), one_line(pair.first), one_line(pair.second),
            *_pair_cells(pair_row(table, pair)),
        ]
        for table in tables
        for pair in table.pairs
    ]  # fmt: skip
    return f"{one_line(task)}: differences, first less second", columns, rows


def _pair_cells(row: dict[str, Any]) -> list[str]:
    return [
        _number(row["difference"], sign=True),
        _interval(row["low"], row["high"]),
        _probability(row["p"]),
        _probability(row["p_holm"]),
        row["test"] or "",
    ]


def _counts(table: Table) -> list[str]:
    clusters = f"{table.clusters:,} ({table.unit})" if table.clusters else ""
    return [f"{table.documents:,}", clusters]


def _level(report: Report) -> str:
    return f"{100 * (1 - report.settings.alpha):g} %"


def figure_rows(table: Table) -> list[dict[str, Any]]:
    """A row per system, by ``FIGURES``."""
    return [
        dict(
            zip(
                FIGURES,
                (
                    table.task, table.metric, table.documents, table.clusters, table.unit, system,
                    value, table.marks.get(system),
                ),
                strict=True,
            )
        )
        for system, value in table.values.items()
    ]  # fmt: skip


def pair_row(table: Table, pair: Pair) -> dict[str, Any]:
    """A row of two systems, by ``PAIRS``."""
    found = pair.difference
    values = (
        table.task, table.metric, table.documents, table.clusters, table.unit,
        pair.first, pair.second, table.values[pair.first], table.values[pair.second],
        None if math.isnan(found.value) else found.value,
        found.stderr, found.low, found.high, found.p, pair.p_holm, found.test,
    )  # fmt: skip
    return dict(zip(PAIRS, values, strict=True))


def _number(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return NONE
    return f"{value:+.3f}" if sign else f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    return NONE if low is None or high is None else f"[{low:+.3f}, {high:+.3f}]"


def _probability(p: float | None) -> str:
    if p is None:
        return NONE
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"  # noqa: PLR2004 (three digits are shown)


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
