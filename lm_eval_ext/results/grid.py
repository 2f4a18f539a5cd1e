"""Tables of text for a terminal, and the same for a document."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_ext import __version__
from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.marks import Standing
from lm_eval_ext.stats.measures import Chance
from lm_eval_ext.stats.statistics import NONE, number
from lm_eval_ext.text import broken, one_line

if TYPE_CHECKING:
    from pandas import DataFrame

Section: TypeAlias = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A heading, and the columns and rows of the table below it (no columns: no table)."""

LOWER = " ↓"
"""The sign behind the name of a metric of which lower is better."""

LOWER_LEGEND = f"{LOWER.strip()} lower is better"
"""What the sign means."""

MARKS: Mapping[Standing, str] = {
    "best": "*",
    "unproven": "°",
    "untested": "?",
    "beaten": " ",
    "alone": " ",
    "": " ",
}
"""What stands behind a value, by how it stands in its table."""

MEANINGS: Mapping[Standing, str] = {
    "best": "significantly better than chance, and not significantly beaten",
    "unproven": "not significantly beaten, but not shown to be better than chance",
    "untested": "could not be tested",
    "beaten": "significantly beaten",
    "alone": "the only model in its column, so not tested",
    "": "",
}
"""The same in words: one rule for the terminal, Markdown, LaTeX, the page and frames."""

_UNMARKED: tuple[Standing, ...] = ("beaten", "alone")
"""How values without a mark stand."""

_TESTS = "tests at 5 %, adjusted for models and columns"
"""How values are tested against chance."""

WIDTH = 80
"""Columns of the text, or more where the terminal has more."""

_MAX_HEADING = 24
"""Characters of a line of a heading, if there is room; names of rows have twice as many."""

_MIN_HEADING = 10
"""Characters of a line of a heading in a narrow table."""

_COMMAND = re.compile(r"(\w+: )?lm-eval-ext ")
"""How a note begins that is a command, if need be behind a word that says what it shows."""

_GAP = "  "
"""What stands between columns."""

_NUMBER_STARTS = "+-[<0123456789N"
"""How a number starts, or what stands for it.

The bracket must be here: an interval starts with it (:func:`interval_text`).
"""


def chance_words(chances: Iterable[Chance | None]) -> str:
    """Return what chance is in a table with these levels of chance; "" if none is known.

    The value is among the words if all columns have the same.
    """
    levels = dict.fromkeys(chance for chance in chances if chance is not None)
    meanings = list(dict.fromkeys(chance.meaning for chance in levels))
    if not meanings:
        return ""
    *first_meanings, last_meaning = meanings
    words = last_meaning
    if first_meanings:
        words = f"{', '.join(first_meanings)} or {last_meaning}"
    shown_values = {value(chance.value, chance.unit).strip() for chance in levels}
    if len(meanings) == 1 and len(shown_values) == 1:
        (shown_value,) = shown_values
        return f"{shown_value}, {words}"
    return words


def chance_note(chances: Iterable[Chance | None]) -> list[str]:
    """Return the line that says what chance is in a table; [] if it is not known."""
    words = chance_words(chances)
    return [f"chance is {words}"] if words else []


def legend(standings: Iterable[Standing], chances: Iterable[Chance | None]) -> list[str]:
    """Explain the marks of a table in which values stand like this; [] if there are none.

    A table of one model has no marks, which nobody misses.

    Args:
        standings: How the values stand.
        chances: The level of chance of each column.
    """
    shown_standings = set(standings)
    lines = []
    for standing in ("best", "unproven", "untested"):
        if standing in shown_standings:
            lines.append(f"{MARKS[standing]} {MEANINGS[standing]}")
    unmarked = [MEANINGS[standing] for standing in _UNMARKED if standing in shown_standings]
    has_competitors = bool(shown_standings - {"alone", ""})
    if unmarked and has_competitors:
        lines.append(f"no mark: {', or '.join(unmarked)}")
    if shown_standings & {"best", "unproven"}:
        lines += [f"{note}; {_TESTS}" for note in chance_note(chances)]
    return lines


def metric_heading(name: str, *, lower_is_better: bool) -> str:
    """Return the name of a metric with a sign where lower is better."""
    return name + LOWER if lower_is_better else name


def value(amount: float | None, unit: str, standing: Standing = "") -> str:
    """Return a number with its unit and mark; marks are a column of their own."""
    shown_value = number(amount, unit)
    if unit == "percent" and shown_value != NONE:
        shown_value += " %"
    return shown_value + MARKS[standing]


def interval_text(low: float | None, high: float | None, unit: str, *, signed: bool = False) -> str:
    """Return both ends of an interval; "" where there are none.

    ``_NUMBER_STARTS`` must hold its bracket, so that a table aligns intervals as numbers.
    """
    ends = [number(end, unit, signed=signed) for end in (low, high)]
    return "" if NONE in ends else f"[{', '.join(ends)}]"


def published_name(label: str) -> str:
    """Return how tables and figures name a published system.

    Brackets at the end of a label already say where its values are from, as in "GPT-3.5 (paper)".
    """
    return label if label.endswith(")") else f"{label} (published)"


def matrix(
    cells: Mapping[str, Mapping[str, str]], *, turned: bool
) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of a table; a dash stands for a missing cell.

    Args:
        cells: The cells by row and column.
        turned: Whether rows become columns.
    """
    columns: dict[str, None] = {}
    for row_cells in cells.values():
        columns.update(dict.fromkeys(row_cells))
    lines = [["", *columns]]
    for row, row_cells in cells.items():
        lines.append([row, *[row_cells.get(name, "-") for name in columns]])
    if turned:
        lines = [list(column) for column in zip(*lines, strict=True)]
    return lines[0], lines[1:]


def note_section(lines: Iterable[str]) -> Section:
    """Return text without a table; each line once."""
    return "\n".join(dict.fromkeys(lines)), (), ()


def text(sections: Iterable[Section], width: int = 0) -> str:
    """Return sections for a terminal, of this width or of the terminal's.

    A note that is a command, or a word and a command, stays on one line, so that it can be
    copied.
    """
    width = width or max(WIDTH, get_terminal_size((WIDTH, 0)).columns)
    lines: list[str] = []
    for heading, columns, rows in sections:
        for line in heading.splitlines():
            if _COMMAND.match(line):
                lines.append(line)
            else:
                lines += wrap(line, width, break_long_words=False, break_on_hyphens=False)
        if columns:
            lines += _table_lines(columns, rows, width)
        if not lines or lines[-1]:
            lines.append("")
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


@dataclass(frozen=True)
class _Layout:
    """A table with its names broken into lines: cells and headings may have several.

    Attributes:
        headings: The heading of each column.
        rows: The cells of each row.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    @cached_property
    def columns(self) -> list[tuple[str, ...]]:
        """The cells of each column, the heading first."""
        return list(zip(self.headings, *self.rows, strict=True))

    @cached_property
    def sizes(self) -> list[int]:
        """The characters that each column needs."""
        return [max(map(len, "\n".join(column).split("\n"))) for column in self.columns]

    @property
    def width(self) -> int:
        """The characters of a line."""
        return sum(self.sizes) + len(_GAP) * (len(self.sizes) - 1)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table. Columns of numbers are aligned on the right."""
        signs = ["<"]
        for _, *cells in self.columns[1:]:
            is_numeric = all(cell[:1] in _NUMBER_STARTS for cell in cells)
            signs.append(">" if is_numeric else "<")
        yield from self._row_lines(_from_below(self.headings), signs)
        yield "─" * self.width
        for row in self.rows:
            yield from self._row_lines(row, signs)

    def _row_lines(self, cells: Sequence[str], signs: Sequence[str]) -> Iterator[str]:
        for texts in zip_longest(*[cell.split("\n") for cell in cells], fillvalue=""):
            padded = []
            for cell, sign, size in zip(texts, signs, self.sizes, strict=True):
                padded.append(f"{cell:{sign}{size}}")
            yield _GAP.join(padded)


def _table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> Iterator[str]:
    """Yield the lines of a table; of one that is too wide, as two tables below each other.

    Names break where they have no room, but not inside a word.
    """
    layout = _fitting_layout(columns, rows, width)
    if layout.width <= width or len(columns) <= 2:  # noqa: PLR2004
        yield from layout.lines()
        return
    half = 1 + len(columns) // 2
    for columns_of_half in (slice(1, half), slice(half, None)):
        half_rows = [[row[0], *row[columns_of_half]] for row in rows]
        yield from _table_lines([columns[0], *columns[columns_of_half]], half_rows, width)
        yield ""


def _fitting_layout(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> _Layout:
    """Return the layout with the longest lines that fits the width; otherwise the narrowest."""
    for length in range(_MAX_HEADING, _MIN_HEADING - 1, -1):
        headings = [broken(name, length) for name in columns]
        named_rows = [[_indented(broken(name, 2 * length)), *cells] for name, *cells in rows]
        layout = _Layout(headings, named_rows)
        if layout.width <= width:
            break
    return layout


def _from_below(headings: Sequence[str]) -> list[str]:
    """Return headings with empty lines above, so that their last lines are side by side."""
    height = max(heading.count("\n") for heading in headings)
    return ["\n" * (height - heading.count("\n")) + heading for heading in headings]


def _indented(name: str) -> str:
    """Return a name of several lines with all of them indented as the first."""
    indent = " " * (len(name) - len(name.lstrip(" ")))
    return name.replace("\n", "\n" + indent)


def csv(table: "DataFrame") -> str:
    """Return a table for programs, with all digits; a spreadsheet takes no text for a formula."""
    safe = table.replace(r"^[=+\-@\t]", r"'\g<0>", regex=True)
    return str(safe.to_csv(index=False))


def markdown(sections: Iterable[Section]) -> str:
    """Return sections for a document."""
    lines: list[str] = []
    for heading, columns, rows in sections:
        texts = map(escape_markdown, heading.splitlines())
        # Notes are a list, since lines of text run together into one paragraph.
        lines += texts if columns else [f"- {line}" for line in texts]
        if columns:
            lines += ["", _markdown_row(columns), f"|{' --- |' * len(columns)}"]
            lines += map(_markdown_row, rows)
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _markdown_row(cells: Iterable[str]) -> str:
    lines = (cell.replace("\n", " ") for cell in cells)
    return f"| {' | '.join(map(escape_markdown, lines))} |"


def escape_markdown(text: str) -> str:
    """Return text in which a model's name is neither mark-up of Markdown nor HTML."""
    return re.sub(r"[\\`*_\[\]<>|#~]", r"\\\g<0>", text)


# For papers.

_LATEX_MARKS = {MARKS["best"]: "", MARKS["unproven"]: r"\circ", MARKS["untested"]: "?"}
"""Marks as LaTeX shows them above the line."""

_LATEX_CHARACTERS = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "|": r"\textbar{}", '"': "''", "↓": r"$\downarrow$", "°": r"$^{\circ}$",
        "`": "{`}", "[": "{[}", "]": "{]}", "*": "{*}", "-": "{-}",
        "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    }
)  # fmt: skip

MAX_LATEX_COLUMNS = 8
"""Columns for which a page has room."""


@dataclass(frozen=True)
class _LatexLayout:
    """How a table is set in LaTeX. Widths are in points.

    Attributes:
        width: The width that it has room for.
        environment: What it floats in.
        size: The size of its text, and that of the second lines of its cells.
        second_size: The size of the second lines of its cells.
        gap: The space on both sides of a column.
        max_name: Characters of a line of a row's name.
        max_heading: Characters of a line of a heading.
    """

    width: int
    environment: str
    size: str
    second_size: str
    gap: int
    max_name: int
    max_heading: int


_LATEX_LAYOUTS = (
    _LatexLayout(210, "table", "", r"\scriptsize", 6, 32, 18),
    _LatexLayout(330, "table*", "", r"\scriptsize", 6, 32, 18),
    _LatexLayout(340, "table*", r"\footnotesize", r"\tiny", 4, 24, 12),
    _LatexLayout(450, "table*", r"\scriptsize", r"\tiny", 3, 20, 9),
)
"""From the most legible: one column of a page of two, a page of one, the same in small letters, and
a page of two, whose text is wider. The last one takes what fits in none."""

_CHARACTER_WIDTHS = {"": 4.8, r"\footnotesize": 4.1, r"\scriptsize": 3.7, r"\tiny": 3.1}
"""The mean width of a character of LaTeX's own fonts by its size, in points."""


def _latex_layout(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> _LatexLayout:
    """Return the most legible layout in which a table has room, or the last one."""
    for layout in _LATEX_LAYOUTS:
        if _estimated_width(headings, rows, layout) <= layout.width:
            return layout
    return _LATEX_LAYOUTS[-1]


def _estimated_width(
    headings: Sequence[str], rows: Sequence[Sequence[str]], layout: _LatexLayout
) -> float:
    """Return about how wide a table is in a layout."""
    character = _CHARACTER_WIDTHS[layout.size]
    second_character = _CHARACTER_WIDTHS[layout.second_size]
    names = [row[0] for row in rows]
    width = character * _longest_line(names, layout.max_name)
    for index, heading in enumerate(headings, start=1):
        column_width = character * _longest_line([heading], layout.max_heading)
        for row in rows:
            value_line, *second_lines = row[index].split("\n")
            column_width = max(column_width, character * len(value_line.rstrip()))
            for line in second_lines:
                column_width = max(column_width, second_character * len(line.rstrip()))
        width += column_width
    return width + 2 * layout.gap * len(headings)


def _longest_line(texts: Iterable[str], max_line: int) -> int:
    """Return the length of the longest line of texts that are broken into lines."""
    lengths = [0]
    for text in texts:
        lengths += [len(line) for line in broken(one_line(text), max_line).split("\n")]
    return max(lengths)


def latex(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str,
    *,
    label: str,
    notes: Sequence[str] = (),
    comments: Iterable[str] = (),
) -> str:
    """Return the source of a table with booktabs: the best is bold, second lines are small.

    Args:
        columns: The columns, as in a section.
        rows: The rows, as in a section.
        caption: Plain text.
        label: The table's label, without ``tab:``.
        notes: What readers have to know of the table, such as its :func:`legend`; they stand below
            it in small letters.
        comments: Lines of the source that LaTeX passes over.

    Raises:
        OptionError: There are more than :data:`MAX_LATEX_COLUMNS` columns.
    """
    import pandas as pd

    _, *headings = columns
    if len(headings) > MAX_LATEX_COLUMNS:
        raise OptionError(
            f"{len(headings)} columns, and a page has room for {MAX_LATEX_COLUMNS}; name fewer "
            "results, or choose with --tasks, --metric or --where of compare: "
            + ", ".join(headings)
        )
    table_rows = list(rows)
    layout = _latex_layout(headings, table_rows)
    names: list[str] = []
    body: list[list[str]] = []
    for name, *cells in table_rows:
        lines = _latex_lines(cells, layout.second_size)
        indent = r"\quad " if name.startswith(" ") else ""
        names += [indent + _stacked(name, layout.max_name, "l"), *[""] * (len(lines) - 1)]
        body += lines
    stacked_headings = [_stacked(heading, layout.max_heading, "r") for heading in headings]
    table = pd.DataFrame(body, names, stacked_headings)
    source: str = table.style.to_latex(
        hrules=True,
        position="t",
        position_float="centering",
        environment=layout.environment,
        column_format="l" + "r" * len(headings),
        caption=escape(f"{caption}."),
        label=f"tab:{label}",
    )
    setting = f"\\setlength{{\\tabcolsep}}{{{layout.gap}pt}}\n"
    if layout.size:
        setting += f"{layout.size}\n"
    source = source.replace("\\begin{tabular}", f"{setting}\\begin{{tabular}}", 1)
    if notes:
        source = source.replace("\\end{tabular}\n", f"\\end{{tabular}}\n{_latex_note(notes)}", 1)
    origin = f"lm-eval-ext {__version__}; see the signatures for what the values depend on"
    comment_lines = [f"% {one_line(line)}\n" for line in (origin, *comments)]
    return "".join(comment_lines) + source


def _latex_note(notes: Sequence[str]) -> str:
    """Return notes as a paragraph below a table."""
    words = "; ".join(notes).replace(f"{MARKS['best']} ", "bold: ", 1)
    return f"\\par\\smallskip\n\\parbox{{\\linewidth}}{{\\footnotesize {escape(words)}.}}\n"


def escape(text: str) -> str:
    """Return any text as LaTeX shows it, on one line."""
    return one_line(text).translate(_LATEX_CHARACTERS)


def _latex_cell(text: str) -> str:
    """Return a number with its mark, or an interval: the best is bold, other marks are raised."""
    bare = text.rstrip()
    if bare == "-":
        return "--"
    mark = bare[-1:] if bare[-1:] in _LATEX_MARKS else ""
    shown_value = escape(bare.removesuffix(mark))
    shown_value = shown_value.replace("{-}", "$-$").replace("+", "$+$").replace(r" \%", r"\,\%")
    if not mark:
        return shown_value
    if mark == MARKS["best"]:
        return f"\\textbf{{{shown_value}}}"
    return f"{shown_value}\\rlap{{$^{{{_LATEX_MARKS[mark]}}}$}}"


def _latex_lines(cells: Sequence[str], small: str) -> list[list[str]]:
    """Return a row's cells by lines; those below the first line have a smaller size."""
    lines: list[list[str]] = []
    for texts in zip_longest(*[cell.split("\n") for cell in cells], fillvalue=""):
        line = list(map(_latex_cell, texts))
        if lines:
            line = [f"{small} {cell}" if cell else "" for cell in line]
        lines.append(line)
    return lines


def _stacked(name: str, max_line: int, side: str) -> str:
    """Return a name over several lines where it is long; ``side`` is l or r."""
    lines = [escape(line) for line in broken(one_line(name), max_line).split("\n")]
    if len(lines) == 1:
        return lines[0]
    stacked = r" \\ ".join(lines)
    return rf"\shortstack[{side}]{{{stacked}}}"
