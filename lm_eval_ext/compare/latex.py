"""Tables for papers: LaTeX with booktabs, and no other package.

Rows are models, columns metrics of a task or tasks. Numbers of a column have as many decimals and
stand below each other, intervals beside them. The best value is bold, and all that the tests of
:mod:`.systems` do not tell apart from it.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lm_eval_ext import __version__
from lm_eval_ext.cards import readable
from lm_eval_ext.compare.report import Report, Table
from lm_eval_ext.harness.names import NONE
from lm_eval_ext.text import one_line, several

_TWO = 2
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': "''", "`": "{`}", "[": "{[}", "]": "{]}", "*": "{*}",
    **{sign: f"\\{sign}" for sign in "&%$#_"},
}  # fmt: skip

_MOST = 5
"""Parts of columns (a number, an interval) that fit into one column of a page."""

_HEADING = 18
"""Characters of a line of a heading."""

_LEAST_P = 0.001


def escape(text: str) -> str:
    """Any text as LaTeX shows it, on one line."""
    shown = "".join(_SPECIAL.get(character, character) for character in one_line(text))
    return shown.replace("--", "-{}-")


@dataclass(frozen=True)
class Cell:
    """A number as text, its interval as text, and whether it is bold."""

    number: str = ""
    interval: str = ""
    bold: bool = False


@dataclass(frozen=True)
class Paper:
    """A table; names and caption are plain text.

    Attributes:
        label: Of the table, without ``tab:``.
        caption: Below it.
        columns: A heading for each; the same group stands once above neighbours.
        rows: By section, which rules divide: a name and a cell per column.
        comments: Lines of the source that LaTeX passes over.
    """

    label: str
    caption: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[tuple[str, Sequence[Cell]]]]
    comments: Sequence[str] = ()


def render(table: Paper) -> str:
    """The source of a ``table`` environment."""
    pairs = [
        any(cells[place].interval for section in table.rows for _, cells in section)
        for place in range(len(table.columns))
    ]
    kind = "table*" if len(pairs) + sum(pairs) > _MOST else "table"
    spec = "l" + "".join("r@{\\,}l" if pair else "r" for pair in pairs)
    body = "\n\\midrule\n".join(
        "\n".join(_line(name, cells, pairs) for name, cells in section)
        for section in table.rows
        if section
    )
    comments = "".join(f"% {one_line(line)}\n" for line in table.comments)
    return (
        f"{comments}\\begin{{{kind}}}[t]\n\\centering\n\\small\n\\begin{{tabular}}{{{spec}}}\n"
        f"\\toprule\n{_head(table.columns, pairs)}\n\\midrule\n{body}\n\\bottomrule\n"
        f"\\end{{tabular}}\n\\caption{{{escape(table.caption)}}}\n"
        f"\\label{{tab:{_label(table.label)}}}\n\\end{{{kind}}}\n"
    )


def _head(columns: Sequence[tuple[str, str]], pairs: Sequence[bool]) -> str:
    """The headings, with a line of groups above them if there is more than one."""
    widths = [_TWO if pair else 1 for pair in pairs]
    names = [
        f"\\multicolumn{{{width}}}{{c}}{{{_stacked(name)}}}"
        for (_, name), width in zip(columns, widths, strict=True)
    ]
    lines = [f" & {' & '.join(names)} \\\\"]
    groups = [group for group, _ in columns]
    if len(set(groups)) > 1:
        cells, rules, start, place = [], [], _TWO, 0
        while place < len(groups):
            last = place
            while last + 1 < len(groups) and groups[last + 1] == groups[place]:
                last += 1
            width = sum(widths[place : last + 1])
            cells.append(f"\\multicolumn{{{width}}}{{c}}{{{escape(groups[place])}}}")
            rules.append(f"\\cmidrule(lr){{{start}-{start + width - 1}}}")
            start, place = start + width, last + 1
        lines = [f" & {' & '.join(cells)} \\\\", "".join(rules), *lines]
    return "\n".join(lines)


def _stacked(name: str) -> str:
    """A heading over several lines, where it is long."""
    lines = [escape(line) for line in textwrap.wrap(one_line(name), _HEADING)]
    return lines[0] if len(lines) == 1 else "\\shortstack{" + " \\\\ ".join(lines) + "}"


def _line(name: str, cells: Sequence[Cell], pairs: Sequence[bool]) -> str:
    found = [escape(name)]
    for cell, pair in zip(cells, pairs, strict=True):
        number = _signed(cell.number)
        found.append(f"\\textbf{{{number}}}" if cell.bold and number else number)
        if pair:
            found.append(f"{{\\scriptsize {_signed(cell.interval)}}}" if cell.interval else "")
    return f"{' & '.join(found)} \\\\"


def _signed(text: str) -> str:
    return escape(text).replace("-", "$-$").replace("+", "$+$")


def _label(text: str) -> str:
    """Letters, digits and hyphens, which LaTeX takes as they are."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in one_line(text))
    return "-".join(filter(None, plain.split("-")))


def number(value: float | None, *, percent: bool, sign: bool = False) -> str:
    """Three decimals, or one of a percentage."""
    if value is None:
        return NONE
    digits = 1 if percent else 3
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"


def _interval(low: float | None, high: float | None, *, percent: bool, sign: bool = False) -> str:
    if low is None or high is None:
        return ""
    ends = (number(end, percent=percent, sign=sign) for end in (low, high))
    return f"[{', '.join(ends)}]"


def by_task(report: Report) -> str:
    """A table for each task: a row per model, a column per metric, and published values."""
    tasks = dict.fromkeys(table.task for table in report.tables)
    return "\n".join(
        render(_of_task(task, [one for one in report.tables if one.task == task], report))
        for task in tasks
    )


def of_all_tasks(report: Report) -> str:
    """One table: a row per model, a column per task and metric, and published values."""
    columns = [(table.task, readable(table.task, table.metric)) for table in report.tables]
    tasks = list(dict.fromkeys(table.task for table in report.tables))
    on = tasks[0] if len(tasks) == 1 else "all tasks"
    sizes = {table.task: f"{table.task} {table.documents:,}" for table in report.tables}
    caption = f"Models on {on}. Documents: {', '.join(sizes.values())}."
    return render(_paper("leaderboard", caption, columns, report.tables, report))


def _of_task(task: str, tables: Sequence[Table], report: Report) -> Paper:
    columns = [("", readable(one.task.partition(",")[0], one.metric)) for one in tables]
    counts = sorted({(table.documents, table.clusters, table.unit) for table in tables})
    size = "; ".join(
        f"{documents:,} documents" + (f", {clusters:,} {several(unit)}" if clusters else "")
        for documents, clusters, unit in counts
    )
    caption = f"{task}: {size}."
    return _paper(task, caption, columns, tables, report)


def _paper(
    label: str,
    caption: str,
    columns: Sequence[tuple[str, str]],
    tables: Sequence[Table],
    report: Report,
) -> Paper:
    systems = list(dict.fromkeys(name for table in tables for name in table.values))
    published = list(dict.fromkeys(name for table in tables for name in table.published))
    own = [(name, [_cell(table, name) for table in tables]) for name in systems]
    theirs = [(name, [_published(table, name) for table in tables]) for name in published]
    pairs = _differences(tables, systems)
    notes = _notes(tables, report, pairs=bool(pairs), published=bool(theirs))
    signatures = [report.signatures[one] for one in report.signatures if _concerns(one, tables)]
    made = f"lm-eval-ext {__version__}; see the signatures for what the values depend on"
    sections = [own, pairs, theirs]
    return Paper(label, f"{caption} {notes}", columns, sections, [made, *signatures])


def _concerns(task: str, tables: Iterable[Table]) -> bool:
    return any(task in table.task.replace(" · ", ", ").split(", ") for table in tables)


def _cell(table: Table, system: str) -> Cell:
    if system not in table.values:
        return Cell()
    found = table.intervals.get(system)
    low, high = (found.low, found.high) if found else (None, None)
    return Cell(
        number(table.values[system], percent=table.percent),
        _interval(low, high, percent=table.percent),
        bold=_is_best(table.groups, table.values, system),
    )


def _is_best(groups: Mapping[str, str], values: Mapping[str, float | None], system: str) -> bool:
    """Whether a system is the best, or cannot be told apart from it; values are best first."""
    best = next(iter(values))
    return bool(set(groups.get(best, "")) & set(groups.get(system, "")))


def _published(table: Table, label: str) -> Cell:
    value = table.published.get(label)
    return Cell() if value is None else Cell(number(value, percent=table.percent))


def _differences(tables: Sequence[Table], systems: Sequence[str]) -> list[tuple[str, list[Cell]]]:
    """Of two systems: their differences, and p."""
    if len(systems) != _TWO or not all(table.pairs for table in tables):
        return []
    cells, chances = [], []
    for table in tables:
        pair = table.pairs[0]
        found = pair.difference
        value = None if math.isnan(found.value) else found.value
        interval = _interval(found.low, found.high, percent=table.percent, sign=True)
        cells.append(Cell(number(value, percent=table.percent, sign=True), interval))
        chances.append(Cell(_chance(pair.p_holm)))
    first, second = tables[0].pairs[0].first, tables[0].pairs[0].second
    return [(f"{first} less {second}", cells), ("p", chances)]


def _chance(p: float | None) -> str:
    if p is None:
        return NONE
    return f"{p:.3f}" if p >= _LEAST_P else f"<{_LEAST_P:g}"


def _notes(tables: Sequence[Table], report: Report, *, pairs: bool, published: bool) -> str:
    alpha = report.settings.alpha
    notes = []
    if any(found for table in tables for found in table.intervals.values()):
        notes.append(f"Brackets: {100 * (1 - alpha):g} % intervals, clustered.")
    if any(table.groups and table.pairs for table in tables):
        every = (pair.difference.test for table in tables for pair in table.pairs)
        tests = sorted({test for test in every if test})
        notes.append(
            "Bold: the best value, and all that are not significantly different from it (paired "
            f"test: {' or '.join(tests)}; p < {alpha:g}, adjusted by Holm's method)."
        )
    if published:
        notes.append("Last rows: published values.")
    return " ".join(notes)
