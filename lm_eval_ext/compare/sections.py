"""A comparison as headings and tables, for terminals and Markdown."""

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from lm_eval_ext.compare.report import Pair, Report, Table
from lm_eval_ext.harness.names import NONE
from lm_eval_ext.results.why import MOST
from lm_eval_ext.text import broken, one_line, several

Section: TypeAlias = tuple[str, list[str], list[list[str]]]
"""A heading, and the columns and rows of the table below it (no columns: no table)."""

NUMBERS = frozenset({"value", "percent", "95 %", "diff", "p", "p (Holm)", "n"})
"""Columns that are aligned to the right."""

_TWO_SYSTEMS = 2
"""Their values stand in one row with the difference; more systems have a row each."""

NAME = 22
"""Characters after which a metric's name is broken, and a system's in a heading."""

HEADLINE = "* "
"""The task's headline."""

LOWER = "↓"
"""Lower is better, as in lm-eval's tables."""

LEAST_SHOWN_P = 0.001
"""The smallest p that is shown as a decimal fraction: three digits are shown."""

_LEGEND = (
    "Systems that share a letter are not significantly different at {alpha} (Holm's method over "
    "all pairs of a metric). "
)
_MORE = "* headline of the task; docs/compare.md explains intervals and tests."


def sections(report: Report) -> Iterable[Section]:
    """Yields the parts of the text and Markdown output, from top to bottom.

    Shares and percentages are never in one table.
    """
    letters = False
    for task in dict.fromkeys(table.task for table in report.tables):
        tables = [table for table in report.tables if table.task == task]
        if all(len(table.values) == _TWO_SYSTEMS for table in tables):
            for percent in dict.fromkeys(table.percent for table in tables):
                yield _of_two(task, [one for one in tables if one.percent is percent], report)
            if len(tables) == 1 and tables[0].published:
                yield _published(tables[0])
        else:
            letters = True
            for table in tables:
                yield _of_many(table, report)
                yield _of_pairs(table, report)
        if notes := list(_notes(tables)):
            yield "\n".join(notes), [], []
    for task, signature in report.signatures.items():
        yield f"{one_line(task)}: {signature}", [], []
    for refusal in report.refused:
        lines = [f"not compared: {one_line(refusal.reason)}"]
        lines += [f"  {one_line(name)}: {text}" for name, text in refusal.signatures.items()]
        yield "\n".join(lines), [], []
    if report.tables:
        legend = _LEGEND.format(alpha=f"{report.settings.alpha:g}") if letters else ""
        yield legend + _MORE, [], []


def _notes(tables: Sequence[Table]) -> Iterable[str]:
    """A line for each note, with the metrics that it is about."""
    metrics: dict[str, list[str]] = {}
    for table in tables:
        if table.note:
            metrics.setdefault(table.note, []).append(table.metric)
    for note, names in metrics.items():
        more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
        yield one_line(f"{', '.join(names[:MOST])}{more}: {note}")


def _of_two(task: str, tables: Sequence[Table], report: Report) -> Section:
    """Both values and their difference in one row."""
    names = sorted(tables[0].values)
    pairs = [pair for table in tables for pair in table.pairs]
    if pairs:
        names = [pairs[0].first, pairs[0].second]
    adjusted = any(pair.p_holm != pair.difference.p for pair in pairs)
    counts = {_counts(table) for table in tables}
    rows = []
    for table in tables:
        values = [_number(table.values[name], percent=table.percent) for name in names]
        found = _pair_cells(table, table.pairs[0]) if table.pairs else [NONE] * 4
        row = [broken(_marked(table), NAME), *values, *(found if adjusted else found[:3])]
        rows.append(row if len(counts) == 1 else [*row, f"{table.documents:,}"])
    columns = ["metric", *map(one_line, names), "diff", _level(report), "p"]
    columns += ["p (Holm)"] * adjusted + ["n"] * (len(counts) > 1)
    unit = ", percent" if tables[0].percent else ""
    about = f": {counts.pop()}" if len(counts) == 1 else ""
    tests = dict.fromkeys(pair.difference.test for pair in pairs if pair.difference.test)
    by = f"; test: {', '.join(tests)}" if tests else ""
    return f"{one_line(task)}{unit}{about}{by}", columns, rows


def _of_many(table: Table, report: Report) -> Section:
    """A row for each system, and below them those that are published."""
    columns = ["system", "percent" if table.percent else "value", _level(report), "group"]
    rows = []
    for name, value in table.values.items():
        found = table.intervals.get(name)
        bounds = (found.low, found.high) if found else (None, None)
        cells = [
            _number(value, percent=table.percent),
            _interval(*bounds, sign=False, percent=table.percent),
        ]
        rows.append([one_line(name), *cells, table.groups.get(name, "")])
    rows += [
        [_of_others(name), _number(value, percent=table.percent), "", ""]
        for name, value in table.published.items()
    ]
    return f"{one_line(table.task)}, {_marked(table)}: {_counts(table)}", columns, rows


def _of_others(name: str) -> str:
    """A published result's name; some say what they are, as "(paper)" or "(no model)"."""
    return name if name.endswith(")") else f"{name} (published)"


def _published(table: Table) -> Section:
    rows = [
        [name, _number(value, percent=table.percent)] for name, value in table.published.items()
    ]
    scale = "percent" if table.percent else "value"
    return f"for comparison: {table.metric}", ["system", scale], rows


def _of_pairs(table: Table, report: Report) -> Section:
    columns = ["first", "second", "diff", _level(report), "p", "p (Holm)"]
    rows = [
        [one_line(pair.first), one_line(pair.second), *_pair_cells(table, pair)]
        for pair in table.pairs
    ]
    tests = dict.fromkeys(pair.difference.test for pair in table.pairs if pair.difference.test)
    by = f" ({', '.join(tests)})" if tests else ""
    return f"differences, first less second{by}", columns, rows


def _pair_cells(table: Table, pair: Pair) -> list[str]:
    found = pair.difference
    value = None if math.isnan(found.value) else found.value
    return [
        _number(value, sign=True, percent=table.percent),
        _interval(found.low, found.high, percent=table.percent),
        _probability(found.p),
        _probability(pair.p_holm),
    ]


def _marked(table: Table) -> str:
    """The metric's name, with marks if it is the task's headline, and if lower is better."""
    lower = f" {LOWER}" if table.lower else ""
    return f"{HEADLINE if table.headline else ''}{one_line(table.metric)}{lower}"


def _counts(table: Table) -> str:
    if not table.clusters:
        return f"{table.documents:,} documents"
    if table.clusters == table.documents:
        return f"{table.documents:,} documents, each its own cluster"
    unit = table.unit if table.clusters == 1 else several(table.unit)
    return f"{table.documents:,} documents, {table.clusters:,} {unit}"


def _level(report: Report) -> str:
    return f"{100 * (1 - report.settings.alpha):g} %"


def _number(value: float | None, *, sign: bool = False, percent: bool = False) -> str:
    if value is None:
        return NONE
    digits = 1 if percent else 3
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"


def _interval(
    low: float | None, high: float | None, *, sign: bool = True, percent: bool = False
) -> str:
    if low is None or high is None:
        return NONE
    return (
        f"[{_number(low, sign=sign, percent=percent)}, {_number(high, sign=sign, percent=percent)}]"
    )


def _probability(p: float | None) -> str:
    if p is None:
        return NONE
    return f"{p:.3f}" if p >= LEAST_SHOWN_P else f"{p:.0e}"
