"""``lm-eval-ext compare``: from its options to text, Markdown, CSV, JSON or LaTeX with booktabs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import compress, groupby
from operator import attrgetter
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare.comparison import Report, Table, compare
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.grid import (
    LOWER,
    Section,
    csv,
    interval,
    latex,
    legend,
    markdown,
    matrix,
    notes,
    text,
    value,
)
from lm_eval_ext.results.models import choose_tasks, read_models
from lm_eval_ext.results.overview import overview_rows, representatives
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.show import grouped, overview_table
from lm_eval_ext.stats.intervals import Interval
from lm_eval_ext.stats.statistics import NONE, Pair, number, probability
from lm_eval_ext.text import names_in, one_line


def run(
    paths: Sequence[Path],
    asked: ScoreQuery,
    *,
    tasks: str = "",
    between: str = "",
    seeds: bool = False,
    across_settings: bool = False,
    format_: str = "text",
    out: Path | None = None,
) -> tuple[str, str]:
    """Compares, and writes to the file ``out`` if it is named.

    Args:
        paths: Of results.
        asked: The question.
        tasks: Names, groups or patterns, separated by commas. Without any, and without a question,
            the task that stands for each benchmark.
        between: Two tasks, which are compared within each model.
        seeds: Mean and spread of models that differ in their seed, without tests.
        across_settings: Also runs with different prompts.
        format_: ``text``, ``markdown``, ``csv``, ``json`` or ``latex``.
        out: A file.

    Returns:
        The text to print, and an error message: which tasks could not be compared, or "".

    Raises:
        OptionError: An option is invalid, or there is nothing to compare.
        DataError: A file cannot be read.
    """
    named = names_in(tasks)
    models = read_models(paths, joined=bool(between))
    if seeds:
        report = compare(models, choose_tasks(models, named, min_models=1), asked, seeds=True)
    elif between:
        both = names_in(between)
        if len(both) != 2 or len(set(both)) != 2:  # noqa: PLR2004
            raise OptionError(f"--between {between} must name two tasks, TASK,TASK")
        report = compare(models, both, asked, within=True)
    elif len(models) == 1:
        raise OptionError(
            f"one model alone ({models[0].label}) cannot be compared; name results of two models, "
            "or two tasks of one model with --between TASK,TASK"
        )
    else:
        chosen = choose_tasks(models, named)
        benchmarks = representatives(models)
        if len(benchmarks) > 1 and not named and not asked.is_question:
            chosen = [task for task in benchmarks.values() if task in chosen] or chosen
        report = compare(models, chosen, asked, across_settings=across_settings)
    refused = "; ".join(dict.fromkeys(report.refused))
    if not report.tables:
        raise DataError(refused)
    return _written((rendered_seeds if seeds else rendered)(report, format_), out), refused


def leaderboard(paths: Sequence[Path], out: Path) -> str:
    """Writes the table of models by benchmarks in LaTeX."""
    rows = overview_rows(read_models(paths))
    caption, columns, lines = overview_table(rows)
    if any(row.scored < row.total for row in rows):
        caption.append("below trials the number of their documents")
    signatures = dict.fromkeys(row.signature for row in rows)
    table = latex(
        columns,
        lines,
        "; ".join(caption),
        label="overview",
        explained=legend(row.standing for row in rows),
        comments=signatures,
    )
    return _written(table, out)


def _written(text: str, out: Path | None) -> str:
    if out is None:
        return text
    with atomic_text(out) as file:
        file.write(text)
    return f"{out}\n"


# For people and programs.

LEVEL = "95 %"

_INTERVALS = 4
"""Columns of a paper's table up to which intervals stand below the values."""


def rendered(report: Report, format_: str) -> str:
    """A comparison as text."""
    if format_ == "latex":
        return _latex(report)
    pairs = [
        {"task": one.task, "model": one.model, "title": one.title, "part": one.part, **vars(pair)}
        for one in report.tables
        for pair in one.pairs
    ]
    content = asdict(report)
    for table in content["tables"]:
        tests = table.pop("tests") or {}
        table["p_above_chance"] = tests.get("p_values", {})
    return _shown(_sections(report), pairs, content, format_)


def rendered_seeds(report: Report, format_: str) -> str:
    """Mean and spread over the seeds of each condition, and the interval of the mean.

    Rows have ``task``, ``title``, ``part``, ``condition``, ``unit``, ``seeds`` (how many),
    ``mean``, ``sd`` (n - 1 below; None for one seed), and ``low`` and ``high``: documents are
    averaged over seeds and clustered as the task's. None where there is none, as for what is no
    mean of documents.

    Raises:
        OptionError: There is no such format of it.
    """
    if format_ == "latex":
        raise OptionError("--by-seed has no format latex; use text, markdown, csv or json")
    rows, lines = [], []
    report.tables.sort(key=attrgetter("task", "title", "part"))
    heading, names = _named(report.tables)
    for name, one in zip(names, report.tables, strict=True):
        low, high, _ = one.pooled or Interval()
        values = [own.value for own in one.figures.values() if own.value is not None]
        mean = fmean(values) if values else None
        sd = stdev(values) if len(values) > 1 else None
        rows.append(
            {
                "task": one.task, "title": one.title, "part": one.part, "condition": one.model,
                "unit": one.unit, "seeds": len(values), "mean": mean, "sd": sd,
                "low": low, "high": high,
            }
        )  # fmt: skip
        shown = value(mean, one.unit), number(sd, one.unit), interval(low, high, one.unit)
        lines.append([name or one_line(one.model), str(len(values)), *shown])
    found = heading, ("condition", "seeds", "mean", "sd", LEVEL), lines
    return _shown([found, *_below(report, names)], rows, rows, format_)


def _shown(
    sections: Iterable[Section],
    rows: Sequence[Mapping[str, Any]],
    content: object,
    format_: str,
) -> str:
    """For people; or for programs, with all digits."""
    import pandas as pd

    if format_ == "json":
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if format_ == "csv":
        return csv(pd.DataFrame(rows))
    return text(sections) if format_ == "text" else markdown(sections)


def _sections(report: Report) -> Iterator[Section]:
    """Yields the parts of the text and Markdown output, from top to bottom."""
    heading, names = _named(report.tables)
    if len(names) == 1:
        yield from _one(report.tables[0], heading)
    else:
        yield heading, *_matrix(report, names)
    yield from _below(report, names)


def _below(report: Report, names: Sequence[str]) -> Iterator[Section]:
    """Notes, and what could not be compared."""
    yield notes([*_notes(report, names), *report.remarks])
    yield notes(f"not compared: {one_line(why)}" for why in report.refused)


def _named(tables: Sequence[Table]) -> tuple[str, list[str]]:
    """What all tables have in common, and what names each of them."""
    keys = [(one.task, one.model, one.title, one.part) for one in tables]
    tasks, models, _, parts = columns = list(zip(*keys, strict=True))
    differ = [len(set(column)) > 1 for column in columns]
    common = [one for one, many in zip(keys[0], differ, strict=True) if one and not many]
    if len(set(zip(tasks, models, parts, strict=True))) == len(keys) > 1:
        differ[2] = False  # where every task has its own metric, the task says enough
    names = [
        one_line(", ".join(filter(None, compress(key, differ)))) + LOWER * table.lower_is_better
        for key, table in zip(keys, tables, strict=True)
    ]
    counts = {one.count for one in tables}
    return one_line(" · ".join([*common, *(counts if len(counts) == 1 else ())])), names


def _one(table: Table, heading: str) -> Iterator[Section]:
    """A row for each system and published value, and below them all pairs."""
    unit = table.unit
    rows = [
        [one_line(name), value(one.value, unit, table.standings.get(name, "")),
         interval(one.low, one.high, unit)]
        for name, one in table.figures.items()
    ]  # fmt: skip
    rows += [
        [f"{one_line(name)} (published)", value(one, unit), ""]
        for name, one in table.published.items()
    ]
    yield heading, ("system", "value" + LOWER * table.lower_is_better, LEVEL), rows
    lines = []
    for first, own in groupby(table.pairs, attrgetter("first")):
        lines.append([one_line(first), "", "", "", ""])
        lines += [[f"  less {one_line(one.second)}", *_pair(one, unit)] for one in own]
    if lines:
        yield "differences", ("systems", "diff", LEVEL, "p", "p (Holm)"), lines


def _matrix(
    report: Report, names: Sequence[str], *, paper: bool = False
) -> tuple[list[str], list[list[str]]]:
    """Questions by systems, with the difference of two; rows are what there is more of.

    A ``paper`` has intervals below the values, if there is room.
    """
    tables, systems = report.tables, list(report.systems)
    two = len(systems) == 2  # noqa: PLR2004
    counts = {one.count for one in tables}
    adjusted = any(one.p_holm != one.p for table in tables for one in table.pairs)
    narrow = paper and min(len(names), len(systems)) <= _INTERVALS
    cells: dict[str, dict[str, str]] = {}
    for name, table in zip(names, tables, strict=True):
        unit = table.unit
        own = cells[one_line(name)] = {}
        for system in systems:
            shown = "-"
            if one := table.figures.get(system):
                shown = value(one.value, unit, table.standings.get(system, ""))
                shown += f"\n{interval(one.low, one.high, unit)}".rstrip() * narrow
            own[one_line(system)] = shown
        if paper and len(report.signatures) == 1:
            own |= {f"{who} (published)": value(of, unit) for who, of in table.published.items()}
        for pair in table.pairs if two else ():
            heads = ("diff", LEVEL, "p", "p (Holm)")[: 3 + adjusted]
            own |= zip(heads, _pair(pair, unit), strict=False)
        if len(counts) > 1 and not paper:
            own["docs"] = table.count.partition(" ")[0]
    return matrix(cells, turned=not two and len(names) <= len(systems))


def _notes(report: Report, names: Sequence[str]) -> Iterator[str]:
    tables = report.tables
    own = ((name, one.note) for name, one in zip(names, tables, strict=True))
    yield from map(one_line, grouped(own, len(tables)))
    tasks = {one.task: one.title for one in tables}
    if len(set(tasks.values())) > 1:
        yield from (one_line(f"{task}: {title}") for task, title in tasks.items())
        if any(one.pairs for one in tables):
            yield "all pairs of a task, and published values: --tasks TASK"
    if any(one.lower_is_better for one in tables):
        yield f"{LOWER.strip()} lower is better"
    yield from _legend(tables)


def _legend(tables: Sequence[Table]) -> list[str]:
    return legend(standing for table in tables for standing in table.standings.values())


def _latex(report: Report) -> str:
    """One table: systems by questions, with the difference of two, and values published on one."""
    for one in report.tables:
        one.part = one.words
    heading, names = _named(report.tables)
    told = {one.task: f"{one.title} ({one.count})" for one in report.tables}
    several = "; ".join(f"{task}: {title}" for task, title in told.items())
    caption = several if len(told) > 1 else heading.replace(" · ", ", ")
    columns, rows = _matrix(report, [name or "value" for name in names], paper=True)
    alike = (set(told), {one.metric for one in report.tables})
    label = "-".join(["compare", *(one for own in alike if len(own) == 1 for one in own)])
    return latex(
        columns,
        rows,
        caption,
        label=label,
        explained=_legend(report.tables),
        comments=report.signatures.values(),
    )


def _pair(one: Pair, unit: str) -> tuple[str, str, str, str]:
    """The difference, its interval, and both p-values."""
    return (
        number(one.value, unit, signed=True),
        interval(one.low, one.high, unit, signed=True) or NONE,
        probability(one.p),
        probability(one.p_holm),
    )
