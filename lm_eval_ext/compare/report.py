"""Settings and results of a comparison, and their output as text, Markdown, CSV or JSON."""

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
    """How to compare; intervals have the level 1 - alpha."""

    metrics: tuple[str, ...] = ()
    alpha: float = 0.05
    seed: int = 0
    across_settings: bool = False


@dataclass(frozen=True)
class Pair:
    """Two systems on one metric: first minus second, and p adjusted for all pairs of the metric."""

    first: str
    second: str
    difference: Difference
    p_holm: float | None = None


@dataclass(frozen=True)
class Table:
    """One metric of one task.

    Attributes:
        task: Its name, or the names of two that are compared.
        metric: As in results files.
        documents: Number of documents that all systems have a score for.
        clusters: Number of clusters that these documents come from.
        unit: What a cluster is.
        values: By system, the best first; None: undefined.
        groups: By system, letters: two that share one are not significantly different.
        pairs: All of them, in the order in which the systems were named.
        note: Why there is no test, if there is none.
    """

    task: str
    metric: str
    documents: int
    clusters: int
    unit: str
    values: Mapping[str, float | None]
    groups: Mapping[str, str]
    pairs: Sequence[Pair]
    note: str = ""


@dataclass(frozen=True)
class Refusal:
    """A task that could not be compared: why, and the signatures of the runs."""

    task: str
    reason: str
    signatures: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """The results of a comparison: a table per task and metric, and the signature of each task."""

    tables: Sequence[Table]
    refused: Sequence[Refusal]
    signatures: Mapping[str, str]
    settings: Settings


SHARED_COLUMNS = ("task", "metric", "documents", "clusters", "unit")
PAIR_COLUMNS = (
    *SHARED_COLUMNS, "first", "second", "value_first", "value_second", "difference", "stderr",
    "low", "high", "method", "p", "p_holm", "test",
)  # fmt: skip
"""Columns of the CSV output."""

Section: TypeAlias = tuple[str, list[str], list[list[str]]]
"""A heading, and the columns and rows of the table below it (no columns: no table)."""

NUMBERS = frozenset({"value", "difference", "p", "p (Holm)", "documents"})
"""Columns that are aligned to the right."""

_TWO_SYSTEMS = 2
"""Their values stand in one row with the difference; more systems have a row each."""

LEAST_SHOWN_P = 0.001
"""The smallest p that is shown as a decimal fraction: three digits are shown."""

_LEGEND = (
    "Systems that share a letter are not significantly different at {alpha} (Holm's method over "
    "all pairs of a metric). "
)
_MORE = "docs/compare.md explains the intervals and tests."


def sections(report: Report) -> Iterable[Section]:
    """Yields the parts of the text and Markdown output, from top to bottom."""
    letters = False
    for task in dict.fromkeys(table.task for table in report.tables):
        tables = [table for table in report.tables if table.task == task]
        if all(len(table.values) == _TWO_SYSTEMS for table in tables):
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
    """Both values and their difference in one row."""
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
            one_line(table.metric), one_line(name), _number(value), table.groups.get(name, ""),
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


def system_rows(table: Table) -> list[dict[str, Any]]:
    """A row per system, for programs."""
    return [
        {**_shared(table), "system": system, "value": value, "group": table.groups.get(system)}
        for system, value in table.values.items()
    ]


def pair_row(table: Table, pair: Pair) -> dict[str, Any]:
    """A row of two systems with the keys ``PAIR_COLUMNS``, for programs."""
    found = pair.difference
    return {
        **_shared(table),
        "first": pair.first,
        "second": pair.second,
        "value_first": table.values[pair.first],
        "value_second": table.values[pair.second],
        "difference": None if math.isnan(found.value) else found.value,
        **{key: getattr(found, key) for key in ("stderr", "low", "high", "method", "p")},
        "p_holm": pair.p_holm,
        "test": found.test,
    }


def _shared(table: Table) -> dict[str, Any]:
    return {key: getattr(table, key) for key in SHARED_COLUMNS}


def _number(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return NONE
    return f"{value:+.3f}" if sign else f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    return NONE if low is None or high is None else f"[{low:+.3f}, {high:+.3f}]"


def _probability(p: float | None) -> str:
    if p is None:
        return NONE
    return f"{p:.3f}" if p >= LEAST_SHOWN_P else f"{p:.0e}"


def _as_text(report: Report) -> str:
    """Tables for a terminal, at most ``_WIDTH`` columns wide."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None, highlight=False, markup=False)
    for heading, columns, rows in sections(report):
        console.print(heading, soft_wrap=True)
        if columns:
            console.print(_rich(columns, rows))
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
    {"text": _as_text, "markdown": _as_markdown, "csv": _as_csv, "json": _as_json}
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
    """Escapes text for Markdown, so that a model's name is neither mark-up nor HTML."""
    for character in "\\`*_[]<>|#~":
        text = text.replace(character, "\\" + character)
    return text


def guarded(value: Any) -> Any:
    """Puts an apostrophe before text that a spreadsheet would take for a formula."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")):
        return "'" + value
    return value
