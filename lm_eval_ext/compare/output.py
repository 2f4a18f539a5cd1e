"""A comparison as text, Markdown, CSV, JSON or LaTeX."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter

from lm_eval_ext.compare import latex
from lm_eval_ext.compare.comparison import Report, Row, Table
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.grid import BEST, LOWER, Section, interval, markdown, matrix, text, value
from lm_eval_ext.stats.intervals import ALPHA
from lm_eval_ext.stats.statistics import NONE, Pair, number
from lm_eval_ext.text import one_line

FORMATS = ("text", "markdown", "csv", "json", "latex")

LEVEL = "95 %"

_LEAST_P = 0.001
"""Of p-values that are printed."""

_FORMULA = ("=", "+", "-", "@", "\t")


def rendered(report: Report, format_: str) -> str:
    """A comparison in one of :data:`FORMATS`."""
    if format_ == "latex":
        return _latex(report)
    pairs = [
        {"task": one.task, "model": one.model, "title": one.title, "part": one.part, **vars(pair)}
        for one in report.tables
        for pair in one.pairs
    ]
    return _data(pairs, asdict(report), format_) or _shown(_sections(report), format_)


def rendered_seeds(rows: Sequence[Row], format_: str) -> str:
    """What :func:`~lm_eval_ext.compare.comparison.by_seed` found.

    Raises:
        OptionError: There is no such format of it.
    """
    if format_ == "latex":
        raise OptionError("--by-seed has no format latex; use text, markdown, csv or json")
    columns = "condition", "seeds", "mean", "sd", LEVEL
    found: list[Section] = []
    for key, own in groupby(rows, itemgetter("task", "title", "part")):
        lines = [
            [one_line(row["condition"]), str(row["seeds"]), value(row["mean"], row["unit"]),
             number(row["sd"], row["unit"]), interval(row["low"], row["high"], row["unit"])]
            for row in own
        ]  # fmt: skip
        found.append((one_line(" · ".join(filter(None, key))), columns, lines))
    return _data(rows, rows, format_) or _shown(found, format_)


def _data(rows: Sequence[Row], content: object, format_: str) -> str:
    """For programs, with all digits; no text of the CSV is a spreadsheet's formula."""
    import pandas as pd

    if format_ == "json":
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    frame = pd.DataFrame(rows).map(
        lambda one: "'" + one if isinstance(one, str) and one.startswith(_FORMULA) else one
    )
    return str(frame.to_csv(index=False)) if format_ == "csv" else ""


def _shown(found: "Iterator[Section] | list[Section]", format_: str) -> str:
    return text(found) if format_ == "text" else markdown(found)


def _sections(report: Report) -> Iterator[Section]:
    """Yields the parts of the text and Markdown output, from top to bottom."""
    heading, names = _named(report.tables)
    if len(names) == 1:
        yield from _one(report.tables[0], heading)
    elif names:
        yield heading, *_matrix(report, names)
    if notes := list(dict.fromkeys(_notes(report, names))):
        yield "\n".join(notes), (), ()
    for why, signatures in report.refused.items():
        lines = [f"{one_line(name)}: {text}" for name, text in signatures.items()]
        yield "\n  ".join([f"not compared: {one_line(why)}", *lines]), (), ()


def _named(tables: Sequence[Table]) -> tuple[str, list[str]]:
    """What all tables have in common, and what names each of them."""
    keys = [(one.task, one.model, one.title, one.part) for one in tables]
    differ = [len(set(column)) > 1 for column in zip(*keys, strict=True)]
    common = [one for one, many in zip(keys[0] if keys else (), differ, strict=True) if not many]
    if len({(task, model, part) for task, model, _, part in keys}) == len(keys) > 1:
        differ[2] = False  # where every task has its own metric, the task says enough
    names = [
        one_line(", ".join(one for one, own in zip(key, differ, strict=True) if one and own))
        + LOWER * table.lower_is_better
        for key, table in zip(keys, tables, strict=True)
    ]
    counts = {one.count for one in tables}
    told = [*common, *counts] if len(counts) == 1 else common
    return one_line(" · ".join(filter(None, told))), names


def _one(table: Table, heading: str) -> Iterator[Section]:
    """A row for each system and published value, and below them all pairs."""
    unit = table.unit
    rows = [
        [one_line(name), value(one.value, unit, best=name in table.best),
         interval(one.low, one.high, unit), table.groups.get(name, "")]
        for name, one in table.figures.items()
    ]  # fmt: skip
    rows += [
        [f"{one_line(name)} (published)", value(one, unit), "", ""]
        for name, one in table.published.items()
    ]
    yield heading, ("system", "value", LEVEL, "group"), rows
    if table.pairs:
        yield (
            "differences, first less second",
            ("first", "second", "diff", LEVEL, "p", "p (Holm)"),
            [[one_line(one.first), one_line(one.second), *_pair(one, unit)] for one in table.pairs],
        )


def _matrix(report: Report, names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Questions by systems, with the difference of two; rows are what there is more of."""
    tables, systems = report.tables, list(report.systems)
    two = len(systems) == 2  # noqa: PLR2004
    wide = max(len(letters) for one in tables for letters in ["", *one.groups.values()])
    counts = {one.count for one in tables}
    adjusted = any(one.p_holm != one.p for table in tables for one in table.pairs)
    cells: dict[str, dict[str, str]] = {}
    for name, table in zip(names, tables, strict=True):
        unit = table.unit
        own = cells[one_line(name)] = {}
        for system in systems:
            if one := table.figures.get(system):
                letters = "" if two else f" {table.groups.get(system, ''):{wide}}"
                shown = value(one.value, unit, best=system in table.best)
                own[one_line(system)] = f"{shown}{letters}"
        for pair in table.pairs if two else ():
            heads = ("diff", LEVEL, "p", "p (Holm)")[: 3 + adjusted]
            own |= zip(heads, _pair(pair, unit), strict=False)
        if len(counts) > 1:
            own["docs"] = table.count.partition(" ")[0]
    return matrix(cells, turned=not two and len(names) <= len(systems))


def _notes(report: Report, names: Sequence[str]) -> Iterator[str]:
    tables = report.tables
    for name, one in zip(names, tables, strict=True):
        if one.note:
            yield one_line(f"{name or one.task}: {one.note}")
    tasks = {one.task: one.title for one in tables}
    if len(set(tasks.values())) > 1:
        yield from (one_line(f"{task}: {title}") for task, title in tasks.items())
        yield "all pairs of a task, and published values: --tasks TASK"
    if any(one.lower_is_better for one in tables):
        yield f"{LOWER.strip()} lower is better"
    if any(one.best for one in tables):
        yield f"{BEST} no other is significantly better at {ALPHA:g} (Holm)"
    if any(one.groups for one in tables) and (len(names) == 1 or len(report.systems) > 2):  # noqa: PLR2004
        yield "systems that share a letter are not significantly different"


def _latex(report: Report) -> str:
    """One table: systems by questions, with the difference of two, and values published on one."""
    heading, names = _named(report.tables)
    told = {one.task: f"{one.title} ({one.count})" for one in report.tables}
    single = len(told) == 1
    rows, below = [], []
    for name, table in zip(names, report.tables, strict=True):
        column, unit = name or table.title, table.unit
        for system, figure in table.figures.items():
            best = system in table.best
            rows.append(
                {**vars(figure), "model": system, "column": column, "unit": unit, "best": best}
            )
        for one in table.pairs if len(report.systems) == 2 else ():  # noqa: PLR2004
            difference, _, p, _ = _pair(one, unit)
            less = f"{one.first} less {one.second}"
            below += [(less, column, difference), ("p", column, p)]
        for who, published in table.published.items() if single else ():
            below.append((who, column, number(published, unit)))
    caption = "; ".join(f"{task}: {title}" for task, title in told.items())
    return latex.table(
        sorted(rows, key=lambda row: report.systems.index(row["model"])),
        caption=f"{heading.replace(' · ', ', ') if single else caption}.",
        label="compare",
        below=below,
        comments=list(report.signatures.values()),
    )


def _pair(one: Pair, unit: str) -> tuple[str, str, str, str]:
    """The difference, its interval, and both p-values."""
    return (
        number(one.value, unit, signed=True),
        interval(one.low, one.high, unit, signed=True) or NONE,
        _probability(one.p),
        _probability(one.p_holm),
    )


def _probability(p: float | None) -> str:
    if p is None:
        return NONE
    return f"{p:.3f}" if p >= _LEAST_P else f"<{_LEAST_P}"
