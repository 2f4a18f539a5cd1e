"""A comparison as rows for programs, and as tables for people."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from lm_eval_ext.compare.report import Pair, Report, Table
from lm_eval_ext.harness.names import NONE
from lm_eval_ext.text import one_line

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
