"""A comparison as text, Markdown, CSV, JSON or LaTeX."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from shutil import get_terminal_size
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from lm_eval_ext.compare import latex
from lm_eval_ext.compare.comparison import Report, Table
from lm_eval_ext.stats.statistics import NONE, Figure, Pair, number
from lm_eval_ext.text import broken, one_line, several

if TYPE_CHECKING:
    from pandas import DataFrame

Section: TypeAlias = tuple[str, list[str], list[list[str]]]
"""A heading, and the columns and rows of the table below it (no columns: no table)."""

WIDTH = 80
"""Columns of the text, or more where the terminal has more."""

_TWO = 2
"""Systems; their values stand in one row with the difference."""

_NAME = 24
"""Characters after which a name is broken."""

ALL = "all tasks"
"""The heading of tables that have nothing in common."""

_LEAST_P = 0.001
"""Smaller p-values are shown as powers."""

_FORMULA = ("=", "+", "-", "@", "\t")

BEST, LOWER = "*", "↓"
"""No other system is significantly better; lower is better."""


def frames(report: Report) -> "tuple[DataFrame, DataFrame]":
    """Figures, a row for each table and system; and pairs, a row for each two systems."""
    import pandas as pd

    figures, pairs = [], []
    for one in report.tables:
        same = {"task": one.task, "metric": one.metric, "part": one.part, "title": one.title,
                "unit": one.measure.unit, "documents": one.counts[0], "clusters": one.counts[1],
                "cluster": one.unit}  # fmt: skip
        for system, found in one.figures.items():
            figures.append(
                {**same, "system": system, "value": found.value, "low": found.low,
                 "high": found.high, "best": system in one.best,
                 "group": one.letters.get(system)}
            )  # fmt: skip
        for pair in one.pairs:
            pairs.append(
                {**same, "first": pair.first, "second": pair.second,
                 "value_first": one.figures[pair.first].value,
                 "value_second": one.figures[pair.second].value,
                 **asdict(pair.difference), "difference": _finite(pair.difference.value),
                 "p_holm": pair.p_holm}
            )  # fmt: skip
    kept = [column for column in (pairs[0] if pairs else {}) if column != "value"]
    return pd.DataFrame(figures), pd.DataFrame(pairs, columns=kept)


def _as_text(report: Report) -> str:
    """Tables for a terminal, at most as wide as it, or :data:`WIDTH`."""
    return text(sections(report))


def text(found: Iterator[Section], width: int = 0) -> str:
    """Sections for a terminal."""
    import io

    from rich.console import Console

    out = io.StringIO()
    width = width or max(WIDTH, get_terminal_size((WIDTH, 0)).columns)
    console = Console(
        file=out, width=width, color_system=None, highlight=False, markup=False, emoji=False
    )
    for heading, columns, rows in found:
        console.print(heading)
        if columns:
            console.print(_grid(columns, rows))
        console.print()
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip() + "\n"


def _grid(columns: list[str], rows: list[list[str]]) -> Any:
    """Numbers are aligned on the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        cells = [row[place] for row in rows]
        right = place > 0 and all(cell[:1] in "+-[0123456789N" for cell in cells)
        short = right or max(map(len, cells), default=0) <= len("[+0.000, +0.000]")
        table.add_column(
            broken(column, _NAME), justify="right" if right else "left", overflow="fold",
            no_wrap=short and place > 0,
        )  # fmt: skip
    for row in rows:
        table.add_row(broken(row[0], _NAME), *row[1:])
    return table


def markdown(found: Iterator[Section]) -> str:
    """Sections for a document."""
    lines: list[str] = []
    for heading, columns, rows in found:
        lines += [_escaped(line) for line in heading.splitlines()]
        if columns:
            rule = f"|{' --- |' * len(columns)}"
            lines += ["", _line(columns), rule, *map(_line, rows)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """Escapes text for Markdown, so that a model's name is neither mark-up nor HTML."""
    for character in "\\`*_[]<>|#~":
        text = text.replace(character, "\\" + character)
    return text


def _as_csv(report: Report) -> str:
    """One row per pair of systems, with all digits; no text is a spreadsheet's formula."""
    _, pairs = frames(report)
    text = pairs.map(
        lambda one: "'" + one if isinstance(one, str) and one.startswith(_FORMULA) else one
    ).to_csv(index=False)
    return str(text)


def _as_json(report: Report) -> str:
    figures, pairs = (one.astype(object).where(one.notna(), None) for one in frames(report))
    content = {
        "settings": asdict(report.settings),
        "signatures": report.signatures,
        "refused": [asdict(refusal) for refusal in report.refused],
        "figures": figures.to_dict("records"),
        "pairs": pairs.to_dict("records"),
        "notes": [
            {"task": one.task, "metric": one.metric, "part": one.part, "note": one.note}
            for one in report.tables
            if one.note
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _as_latex(report: Report) -> str:
    """One table: systems by questions, with the difference of two, and published values."""
    import pandas as pd

    rows, below, told = [], [], []
    for one in report.tables:
        unit, column = one.measure.unit, _row_name(one, report.tables)
        told.append(f"{column}: {one.title} ({_counts(one)})")
        for system, found in one.figures.items():
            rows.append((system, column, unit, found.value, found.low, found.high,
                         system in one.best))  # fmt: skip
        if len(one.figures) == _TWO and one.pairs:
            pair, cells = one.pairs[0], _pair(one, one.pairs[0])
            below += [
                (f"{pair.first} less {pair.second}", column, cells[0]),
                ("p", column, cells[3]),
            ]
        below += [(name, column, number(value, unit)) for name, value in one.published.items()]
    columns = ["model", "column", "unit", "value", "low", "high", "best"]
    heading = _heading(report.tables)
    return latex.table(
        pd.DataFrame(rows, columns=columns),
        caption=f"{'; '.join(told)}." if heading == ALL else f"{heading}.",
        label="compare",
        below=below,
        comments=list(report.signatures.values()),
        alpha=report.settings.alpha,
    )


FORMATS: Mapping[str, Callable[[Report], str]] = MappingProxyType(
    {
        "text": _as_text,
        "markdown": lambda report: markdown(sections(report)),
        "csv": _as_csv,
        "json": _as_json,
        "latex": _as_latex,
    }
)


def sections(report: Report) -> Iterator[Section]:
    """Yields the parts of the text and Markdown output, from top to bottom."""
    tables = list(report.tables)
    if tables and all(len(one.figures) == _TWO for one in tables):
        for pair in dict.fromkeys(tuple(_named(one)) for one in tables):
            yield _of_two([one for one in tables if tuple(_named(one)) == pair], pair, report)
    elif len(tables) == 1:
        yield from _of_many(tables[0], report)
    elif tables:
        yield _matrix(tables)
    if notes := list(_notes(tables, report)):
        yield "\n".join(notes), [], []
    for refusal in report.refused:
        lines = [f"not compared: {one_line(refusal.reason)}"]
        lines += [f"  {one_line(name)}: {text}" for name, text in refusal.signatures.items()]
        yield "\n".join(lines), [], []


def _named(table: Table) -> list[str]:
    """Systems in the order in which they were named."""
    return [table.pairs[0].first, table.pairs[0].second] if table.pairs else sorted(table.figures)


def _of_two(tables: Sequence[Table], names: Sequence[str], report: Report) -> Section:
    """Both values and their difference in one row."""
    adjusted = any(pair.p_holm != pair.difference.p for one in tables for pair in one.pairs)
    rows = []
    for one in tables:
        values = [_value(one, name) for name in names]
        found = _pair(one, one.pairs[0]) if one.pairs else [NONE] * 4
        rows.append([_row_name(one, tables), *values, *(found if adjusted else found[:3])])
    columns = ["", *map(one_line, names), "diff", _level(report), "p"]
    return _heading(tables), [*columns, *["p (Holm)"] * adjusted], rows


def _of_many(table: Table, report: Report) -> Iterator[Section]:
    """A row for each system, and below them those that are published; then all pairs."""
    rows = [
        [one_line(name), _value(table, name), _interval(found, table), table.letters.get(name, "")]
        for name, found in table.figures.items()
    ]
    rows += [
        [f"{one_line(name)} (published)", number(value, table.measure.unit), "", ""]
        for name, value in table.published.items()
    ]
    yield _heading([table]), ["system", "value", _level(report), "group"], rows
    if table.pairs:
        columns = ["first", "second", "diff", _level(report), "p", "p (Holm)"]
        yield (
            "differences, first less second",
            columns,
            [
                [one_line(pair.first), one_line(pair.second), *_pair(table, pair)]
                for pair in table.pairs
            ],
        )


def _matrix(tables: Sequence[Table]) -> Section:
    """A row for each question and a column for each system, or the other way round."""
    systems = list(dict.fromkeys(name for one in tables for name in one.figures))
    heads = [_row_name(one, tables) for one in tables]
    cells = [
        [f"{_value(one, name)} {one.letters.get(name, '')}".strip() if name in one.figures else "-"
         for name in systems]
        for one in tables
    ]  # fmt: skip
    if len(tables) > len(systems):
        return (
            _heading(tables),
            ["", *map(one_line, systems)],
            [[head, *row] for head, row in zip(heads, cells, strict=True)],
        )
    return (
        _heading(tables),
        ["", *heads],
        [[one_line(name), *(row[place] for row in cells)] for place, name in enumerate(systems)],
    )


def _heading(tables: Sequence[Table]) -> str:
    """What all tables have in common."""
    tasks, titles, counts = (
        list(dict.fromkeys(found))
        for found in zip(*((one.task, one.title, _counts(one)) for one in tables), strict=True)
    )
    kept = [one for one in (tasks, titles, counts) if len(one) == 1]
    return one_line(" · ".join(one[0] for one in kept)) or ALL


def _row_name(table: Table, tables: Sequence[Table]) -> str:
    several_tasks = len({one.task for one in tables}) > 1
    several_titles = not several_tasks and len({one.title for one in tables}) > 1
    named = [table.task * several_tasks, table.title * several_titles, table.part]
    lower = f" {LOWER}" if table.measure.lower_is_better else ""
    return one_line(", ".join(filter(None, named)) or table.task) + lower


def _notes(tables: Sequence[Table], report: Report) -> Iterator[str]:
    named: dict[str, list[str]] = {}
    for one in tables:
        if one.note:
            named.setdefault(one.note, []).append(_row_name(one, tables))
    for note, names in named.items():
        yield one_line(f"{', '.join(names)}: {note}")
    titles = {one.task.partition(",")[0]: one.title for one in tables}
    if len(titles) > 1:
        yield "\n".join(f"{one_line(task)}: {one_line(title)}" for task, title in titles.items())
    if any(one.best for one in tables):
        yield f"{BEST} no other is significantly better at {report.settings.alpha:g} (Holm)"
    if any(one.letters and len(one.figures) > _TWO for one in tables):
        yield "systems that share a letter are not significantly different"
        if len(tables) > 1:
            yield "all pairs of one task: --tasks TASK; of all: --format csv"


def _pair(table: Table, pair: Pair) -> list[str]:
    found, unit = pair.difference, table.measure.unit
    bounds = [number(end, unit, signed=True) for end in (found.low, found.high)]
    return [
        number(_finite(found.value), unit, signed=True),
        NONE if found.low is None else f"[{bounds[0]}, {bounds[1]}]",
        _probability(found.p),
        _probability(pair.p_holm),
    ]


def _value(table: Table, system: str) -> str:
    found = table.figures[system].value
    unit = " %" if table.measure.unit == "percent" and found is not None else ""
    return number(found, table.measure.unit) + unit + BEST * (system in table.best)


def _interval(found: Figure, table: Table) -> str:
    if found.low is None or found.high is None:
        return NONE
    return f"[{number(found.low, table.measure.unit)}, {number(found.high, table.measure.unit)}]"


def _counts(table: Table) -> str:
    documents, clusters = table.counts
    if clusters in (0, documents):
        return f"{documents:,} documents"
    unit = table.unit if clusters == 1 else several(table.unit)
    return f"{documents:,} documents, {clusters:,} {unit}"


def _level(report: Report) -> str:
    return f"{100 * (1 - report.settings.alpha):g} %"


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value


def _probability(p: float | None) -> str:
    if p is None:
        return NONE
    return f"{p:.3f}" if p >= _LEAST_P else f"{p:.0e}"
