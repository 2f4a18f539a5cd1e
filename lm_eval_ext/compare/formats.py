"""Comparisons as text, Markdown, CSV, JSON or LaTeX with booktabs, for people and programs."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from statistics import fmean, stdev

from lm_eval_ext.compare.comparison import Report, Table
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.grid import (
    LOWER_LEGEND,
    Section,
    csv,
    interval_text,
    latex,
    legend,
    markdown,
    matrix,
    metric_heading,
    note_section,
    published_name,
    text,
    value,
)
from lm_eval_ext.results.overview import UNTESTED_BETTER
from lm_eval_ext.results.show import grouped
from lm_eval_ext.stats.intervals import ALPHA
from lm_eval_ext.stats.paired import Test
from lm_eval_ext.stats.statistics import NONE, Pair, number, probability
from lm_eval_ext.text import counted, named_briefly, one_line

LEVEL = "95 %"

_FORMATS_WITH_INTERVALS = ("markdown", "latex")
"""Formats whose tables of several questions have intervals by default."""


def rendered(report: Report, format_: str, *, intervals: bool | None = None) -> str:
    """Return a comparison as text in a format.

    Args:
        report: The comparison.
        format_: As of :func:`run`; so is ``intervals``.
        intervals: Whether a table of several questions has intervals.
    """
    has_intervals = format_ in _FORMATS_WITH_INTERVALS if intervals is None else intervals
    if format_ == "latex":
        return _latex(report, has_intervals=has_intervals)
    pairs = []
    for table in report.tables:
        subject = _subject(table)
        for pair in table.pairs:
            pairs.append({**subject, **vars(pair)})
    content = asdict(report)
    for table_content in content["tables"]:
        tests = table_content.pop("tests") or {}
        table_content["p_above_chance"] = tests.get("p_values", {})
    return _shown(_sections(report, has_intervals=has_intervals), pairs, content, format_)


@dataclass(frozen=True)
class _SeedRow:
    """Mean and spread over the seeds of a condition, as CSV and JSON have them.

    Attributes:
        task: The task's name.
        title: The question's title.
        part: The part of the task.
        condition: What the models share beside the seed.
        unit: The unit of the values.
        seeds: The number of seeds with a value.
        mean: The mean of the values; None if there is none.
        sd: The standard deviation, with n - 1 below; None for one seed.
        low: The lower end of the interval of the mean; None if there is none.
        high: The upper end.
    """

    task: str
    title: str
    part: str
    condition: str
    unit: str
    seeds: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None


def rendered_seeds(report: Report, format_: str) -> str:
    """Return mean and spread over the seeds of each condition, and the interval of the mean.

    For the interval, documents are averaged over seeds and clustered as the task's. A measure that
    is no mean of documents has none.

    Raises:
        OptionError: The format is LaTeX.
    """
    if format_ == "latex":
        raise OptionError("--by-seed has no format latex; use text, markdown, csv or json")
    report.tables.sort(key=attrgetter("task", "title", "part"))
    names = _names(report.tables)
    lines = []
    records = []
    for name, table in zip(names, report.tables, strict=True):
        row = _seed_row(table)
        records.append(asdict(row))
        cells = (
            value(row.mean, row.unit),
            number(row.sd, row.unit),
            interval_text(row.low, row.high, row.unit),
        )
        lines.append([name or one_line(row.condition), str(row.seeds), *cells])
    columns = ("condition", "seeds", "mean", "sd", LEVEL)
    sections = [(_heading(report.tables), columns, lines), *_footnotes(report, names)]
    return _shown(sections, records, records, format_)


def _seed_row(table: Table) -> _SeedRow:
    values = [estimate.value for estimate in table.figures.values() if estimate.value is not None]
    return _SeedRow(
        task=table.task,
        title=table.title,
        part=table.part,
        condition=table.model,
        unit=table.unit,
        seeds=len(values),
        mean=fmean(values) if values else None,
        sd=stdev(values) if len(values) > 1 else None,
        low=table.pooled.low if table.pooled else None,
        high=table.pooled.high if table.pooled else None,
    )


def _shown(
    sections: Iterable[Section],
    records: Sequence[Mapping[str, object]],
    content: object,
    format_: str,
) -> str:
    """Return the sections for people; for programs the records (CSV) or the content (JSON)."""
    import pandas as pd

    if format_ == "json":
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if format_ == "csv":
        return csv(pd.DataFrame(records))
    return text(sections) if format_ == "text" else markdown(sections)


def _sections(report: Report, *, has_intervals: bool) -> Iterator[Section]:
    """Yield the sections of the text and Markdown output, from top to bottom."""
    names = _names(report.tables)
    heading = _heading(report.tables)
    if len(names) == 1:
        yield from _single_table(report.tables[0], heading)
    else:
        columns, lines = _matrix(report, names, has_intervals=has_intervals)
        yield heading, columns, lines
    yield from _footnotes(report, names)


def _footnotes(report: Report, names: Sequence[str]) -> Iterator[Section]:
    """Yield the section of notes."""
    yield note_section([*_notes(report, names), *report.remarks])


def _subject(table: Table) -> dict[str, str]:
    """Return what a table is about."""
    return {
        "task": table.task,
        "model": table.model,
        "title": table.title,
        "part": table.part,
    }


def _varying(tables: Sequence[Table]) -> set[str]:
    """Return the keys of subjects that have several values among tables."""
    reference = _subject(tables[0])
    varying = set()
    for table in tables:
        for key, word in _subject(table).items():
            if word != reference[key]:
                varying.add(key)
    return varying


def _heading(tables: Sequence[Table]) -> str:
    """Return what all tables have in common, such as the task and the number of documents."""
    subject = _subject(tables[0])
    varying = _varying(tables)
    words = _words(subject, subject.keys() - varying)
    counts = {table.count for table in tables}
    if len(counts) == 1:
        (count,) = counts
        if "part" in varying:
            count += " in each part"
        elif "task" in varying:
            count += " in each task"
        words.append(count)
    return one_line(" · ".join(words))


def _names(tables: Sequence[Table]) -> list[str]:
    """Return what tells each table from the others; "" for a single one."""
    varying = _varying(tables)
    if len({(table.task, table.model, table.part) for table in tables}) == len(tables):
        varying.discard("title")  # where every task has its own metric, the task says enough
    names = []
    for table in tables:
        name = one_line(", ".join(_words(_subject(table), varying)))
        names.append(metric_heading(name, lower_is_better=table.lower_is_better))
    return names


def _words(subject: Mapping[str, str], keys: Collection[str]) -> list[str]:
    return [word for key, word in subject.items() if word and key in keys]


def _single_table(table: Table, heading: str) -> Iterator[Section]:
    """Yield a row for each system and published value, and below them all pairs."""
    unit = table.unit
    rows = []
    for name, estimate in table.figures.items():
        shown_value = value(estimate.value, unit, table.standings.get(name, ""))
        rows.append([one_line(name), shown_value, interval_text(estimate.low, estimate.high, unit)])
    for name, amount in table.published.items():
        rows.append([published_name(one_line(name)), value(amount, unit), ""])
    value_heading = metric_heading("value", lower_is_better=table.lower_is_better)
    yield heading, ("system", value_heading, LEVEL), rows
    columns, lines = _differences(table)
    if lines:
        yield "differences", ("systems", *columns), lines


def _differences(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the columns of differences, and each system with those from others below it."""
    columns = list(_PAIR_COLUMNS)
    if len(table.pairs) == 1:
        columns.remove(_ADJUSTED)  # one test needs no adjustment
    lines = []
    for minuend, pairs in groupby(table.pairs, attrgetter("first")):
        lines.append([one_line(minuend), *[""] * len(columns)])
        for pair in pairs:
            cells = _pair_cells(pair, table.unit)
            shown_cells = [cells[column] for column in columns]
            lines.append([f"  less {one_line(pair.second)}", *shown_cells])
    return columns, lines


def _matrix(
    report: Report, names: Sequence[str], *, has_intervals: bool, is_paper: bool = False
) -> tuple[list[str], list[list[str]]]:
    """Return questions by systems, with the difference of two; the more numerous are the rows.

    If they are shown, intervals stand below the values.
    """
    systems = _shown_systems(report)
    has_two_systems = len(systems) == 2  # noqa: PLR2004
    has_counts = not is_paper and len({table.count for table in report.tables}) > 1
    has_published = is_paper and len(report.signatures) == 1
    is_adjusted = any(pair.p_holm != pair.p for table in report.tables for pair in table.pairs)
    cells: dict[str, dict[str, str]] = {}
    for name, table in zip(names, report.tables, strict=True):
        row: dict[str, str] = {}
        for system in systems:
            row[one_line(system)] = _value_cell(table, system, has_interval=has_intervals)
        if has_published:
            for publication, amount in table.published.items():
                row[published_name(publication)] = value(amount, table.unit)
        if has_two_systems:
            for pair in table.pairs:
                row |= _pair_cells(pair, table.unit)
            if not is_adjusted:
                row.pop(_ADJUSTED, None)
        if has_counts:
            row["docs"] = table.count.partition(" ")[0]
        cells[one_line(name)] = row
    return matrix(cells, turned=not has_two_systems and len(names) <= len(systems))


def _shown_systems(report: Report) -> list[str]:
    """Return the systems of a table: for a single question those with a value, the best first.

    Two keep the order in which they were named, which is that of their difference.
    """
    if len(report.tables) > 1:
        return list(report.systems)
    estimates = report.tables[0].figures
    if len(estimates) > 2:  # noqa: PLR2004
        return list(estimates)
    return [system for system in report.systems if system in estimates]


def _value_cell(table: Table, system: str, *, has_interval: bool) -> str:
    """Return a system's value, if it has one; the interval is on a second line."""
    estimate = table.figures.get(system)
    if estimate is None:
        return "-"
    shown_value = value(estimate.value, table.unit, table.standings.get(system, ""))
    ends = interval_text(estimate.low, estimate.high, table.unit)
    return f"{shown_value}\n{ends}" if has_interval and ends else shown_value


def _notes(report: Report, names: Sequence[str]) -> Iterator[str]:
    tables = report.tables
    yield from _table_notes(tables, names)
    yield from _test_notes(tables)
    titles = {table.task: _title_with_chance(table, tables) for table in tables}
    if len(set(titles.values())) > 1:
        for task, title in titles.items():
            yield one_line(f"{task}: {title}")
        if any(table.pairs for table in tables):
            yield "all pairs of a task, and published values: --tasks TASK"
    yield from _legend(tables)


def _title_with_chance(table: Table, tables: Sequence[Table]) -> str:
    """Return the title of a table, with what chance is where other tables have another."""
    chances = {other.chance for other in tables}
    if table.chance is None or len(chances) == 1:
        return table.title
    return f"{table.title} (chance {value(table.chance.value, table.unit).strip()})"


def _table_notes(tables: Sequence[Table], names: Sequence[str]) -> Iterator[str]:
    """Yield why a table has no value, interval or test, and where two of them disagree."""
    reasons = [(name, table.note) for name, table in zip(names, tables, strict=True)]
    yield from map(one_line, grouped(reasons, len(tables)))
    doubtful = [(name, _untested_better(table)) for name, table in zip(names, tables, strict=True)]
    yield from map(one_line, grouped(doubtful, len(tables)))
    disagreeing = []
    for name, table in zip(names, tables, strict=True):
        has_pairs = len(tables) == 1 or len(table.figures) == 2  # noqa: PLR2004
        for pair in table.pairs if has_pairs else ():
            if _is_contradictory(pair):
                concerned = f"{pair.first} less {pair.second}"
                disagreeing.append(f"{name}, {concerned}" if len(tables) > 1 else concerned)
    if disagreeing:
        yield one_line(
            f"{named_briefly(disagreeing)}: interval and p disagree at the border, because they "
            "are different methods; p decides"
        )


def _untested_better(table: Table) -> str:
    """Say which systems may not be best because a better value could not be tested; "" if none."""
    if table.tests is None:
        return ""
    systems = []
    betters: dict[str, None] = {}
    for system, standing in table.standings.items():
        better_systems = table.tests.untested_betters(system)
        is_tested = system in table.tests.p_values
        if standing == "untested" and is_tested and better_systems:
            systems.append(system)
            betters |= dict.fromkeys(better_systems)
    if not systems:
        return ""
    reason = UNTESTED_BETTER.format(models=named_briefly(list(betters)))
    return f"{named_briefly(systems)}: not called best, since {reason}"


def _test_notes(tables: Sequence[Table]) -> Iterator[str]:
    """Yield by which test the p-values that are shown were computed, and for what adjusted."""
    if len(tables) > 1 and any(len(table.figures) > 2 for table in tables):  # noqa: PLR2004
        return  # the table has no p-values
    tests: dict[str, None] = {}
    is_adjusted = False
    for table in tables:
        for pair in table.pairs:
            is_adjusted = is_adjusted or pair.p_holm != pair.p
            if pair.test is not None:
                tests[_TEST_WORDS[pair.test].format(cluster=table.cluster)] = None
    if tests:
        yield f"p-values: {'; '.join(tests)}"
    if is_adjusted:
        compared = "models" if tables[0].model else "pairs"  # two tasks are compared within each
        yield f"p-values (Holm): adjusted for all {compared}"


def _is_contradictory(pair: Pair) -> bool:
    """Return whether only one of the interval and the test shows a difference at 5 %."""
    if pair.low is None or pair.high is None or pair.p is None:
        return False
    is_shown_by_interval = pair.low > 0 or pair.high < 0
    return is_shown_by_interval != (pair.p < ALPHA)


def _legend(tables: Sequence[Table]) -> Iterator[str]:
    """Yield what the signs and marks of the tables mean."""
    if any(table.lower_is_better for table in tables):
        yield LOWER_LEGEND
    standings = [standing for table in tables for standing in table.standings.values()]
    yield from legend(standings, [table.chance for table in tables])


def _latex(report: Report, *, has_intervals: bool) -> str:
    """Return one table: systems by questions, with the difference of two, and published values."""
    tables = [replace(table, part=table.words) for table in report.tables]
    names = _names(tables)
    if len(names) == 1:
        names = [f"value{names[0]}"]  # at most the sign that lower is better
    paper_report = replace(report, tables=tables)
    columns, rows = _matrix(paper_report, names, has_intervals=has_intervals, is_paper=True)
    caption = _heading(tables).replace(" · ", ", ")
    titles = {table.task: f"{table.title} ({table.count})" for table in tables}
    notes = [
        *_legend(tables),
        *_table_notes(tables, names),
        *_test_notes(tables),
        *report.remarks,
    ]
    if len(titles) > 1:
        caption = f"{counted(len(report.systems), 'system')} on {counted(len(titles), 'task')}"
        notes = [*(f"{task}: {title}" for task, title in titles.items()), *notes]
    if has_intervals and any("[" in cell for row in rows for cell in row):
        caption += f", with {LEVEL} intervals"
    metrics = {table.metric for table in tables}
    label = "compare"
    if len(titles) == 1:
        label += f"-{tables[0].task}"
    if len(metrics) == 1:
        label += f"-{tables[0].metric}"
    text = latex(
        columns,
        rows,
        caption,
        label=label,
        notes=notes,
        comments=list(chain.from_iterable(report.signatures.values())),
    )
    if len(tables) > 1 or len(tables[0].pairs) < 2:  # noqa: PLR2004
        return text  # the difference of two systems is in the table itself
    difference_columns, differences = _differences(tables[0])
    return text + latex(
        ("", *difference_columns),
        differences,
        f"Differences, {caption}",
        label=f"{label}-differences",
    )


_ADJUSTED = "p (Holm)"

_TEST_WORDS: Mapping[Test, str] = {
    "mcnemar": "McNemar's exact test, paired by document",
    "sign-flip": "paired sign-flip test of the differences by {cluster}",
    "swap": "paired randomization test, in which the systems change places by {cluster}",
}
"""The tests of :mod:`lm_eval_ext.stats.paired` in words; the word for a cluster is put in."""

_PAIR_COLUMNS = ("diff", LEVEL, "p", _ADJUSTED)


def _pair_cells(pair: Pair, unit: str) -> dict[str, str]:
    """Return the difference of two systems, its interval, and both p-values."""
    cells = (
        number(pair.value, unit, signed=True),
        interval_text(pair.low, pair.high, unit, signed=True) or NONE,
        probability(pair.p),
        probability(pair.p_holm),
    )
    return dict(zip(_PAIR_COLUMNS, cells, strict=True))
