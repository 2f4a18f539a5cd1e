"""Tables of text for a terminal, and the same for a document."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_ext import __version__
from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.marks import Standing
from lm_eval_ext.stats.statistics import NONE, number
from lm_eval_ext.text import broken, one_line

if TYPE_CHECKING:
    from pandas import DataFrame

Section: TypeAlias = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A heading, and the columns and rows of the table below it (no columns: no table)."""

LOWER = " ↓"
"""Lower is better."""

MARKS: Mapping[Standing, str] = {
    "best": "*",
    "unproven": "°",
    "untested": "?",
    "beaten": " ",
    "": " ",
}
"""What stands behind a value, by how it stands in its table."""

MEANINGS: Mapping[Standing, str] = {
    "best": "significantly better than chance, and not significantly beaten",
    "unproven": "not significantly beaten, but not shown to be better than chance",
    "untested": "could not be tested",
    "beaten": "significantly beaten",
    "": "",
}
"""The same in words: one rule for the terminal, Markdown, LaTeX, the page and frames."""

CHANCE = (
    "chance is what guessing scores: 0 for a gain, and what a trivial answer scores where the "
    "card says so (tests at 5 %, adjusted for models and columns)"
)

WIDTH = 80
"""Columns of the text, or more where the terminal has more."""

_WIDEST, _LEAST = 24, 9
"""Between how many characters a line of a heading has; names of rows have twice as many."""

_GAP, _NUMBER = "  ", "+-[<0123456789N"
"""Between columns; how a number starts, or what stands for it."""


def legend(shown: Iterable[Standing]) -> list[str]:
    """Explain the marks of a table in which values stand like this; [] if there are none."""
    there = set(shown)
    signs = []
    for standing in ("best", "unproven", "untested"):
        if standing in there:
            signs.append(f"{MARKS[standing]} {MEANINGS[standing]}")
    if "beaten" in there:
        signs.append(f"no mark: {MEANINGS['beaten']}")
    if there & {"best", "unproven"}:
        signs.append(CHANCE)
    return signs


def value(found: float | None, unit: str, standing: Standing = "") -> str:
    """Return a number with its unit and mark; marks are a column of their own."""
    shown = number(found, unit)
    if unit == "percent" and shown != NONE:
        shown += " %"
    return shown + MARKS[standing]


def interval(low: float | None, high: float | None, unit: str, *, signed: bool = False) -> str:
    """Both ends; "" where there are none."""
    ends = [number(end, unit, signed=signed) for end in (low, high)]
    return "" if NONE in ends else f"[{', '.join(ends)}]"


def matrix(
    cells: Mapping[str, Mapping[str, str]], *, turned: bool
) -> tuple[list[str], list[list[str]]]:
    """Columns and rows from cells by row and column; ``turned``: by column and row."""
    columns = list(dict.fromkeys(name for own in cells.values() for name in own))
    lines = [[row, *(own.get(name, "-") for name in columns)] for row, own in cells.items()]
    lines.insert(0, ["", *columns])
    head, *body = map(list, zip(*lines, strict=True)) if turned else lines
    return head, body


def notes(lines: Iterable[str]) -> Section:
    """Text without a table; each line once."""
    return "\n".join(dict.fromkeys(lines)), (), ()


def text(found: Iterable[Section], width: int = 0) -> str:
    """Sections for a terminal."""
    width = width or max(WIDTH, get_terminal_size((WIDTH, 0)).columns)
    lines: list[str] = []
    for heading, columns, rows in found:
        for line in heading.splitlines():
            lines += wrap(line, width, break_long_words=False, break_on_hyphens=False)
        lines += _grid(columns, rows, width) if columns else ()
        lines += [""] * (lines[-1:] != [""])
    return "\n".join(map(str.rstrip, lines)).rstrip() + "\n"


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Numbers stand on the right. Names break where they have no room, but not inside a word."""
    for most in range(_WIDEST, _LEAST, -1):
        heads = [broken(one, most) for one in columns]
        lines = [[_indented(broken(name, 2 * most)), *others] for name, *others in rows]
        texts = list(zip(heads, *lines, strict=True))
        sizes = [max(map(len, "\n".join(column).split("\n"))) for column in texts]
        if sum(sizes) + len(_GAP) * (len(sizes) - 1) <= width:
            break
    else:
        if len(columns) > 2:  # noqa: PLR2004
            half = 1 + len(columns) // 2
            for some in (slice(1, half), slice(half, None)):
                left = [[row[0], *row[some]] for row in (columns, *rows)]
                yield from (*_grid(left[0], left[1:], width), "")
            return
    numbers = (all(one[:1] in _NUMBER for one in own) for _, *own in texts[1:])
    signs = ["<", *("<>"[one] for one in numbers)]
    high = max(head.count("\n") for head in heads)
    lines.insert(0, ["\n" * (high - head.count("\n")) + head for head in heads])
    for place, row in enumerate(lines):
        for parts in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
            cells = zip(parts, signs, sizes, strict=True)
            yield _GAP.join(f"{one:{sign}{size}}" for one, sign, size in cells)
        if not place:
            yield "─" * (sum(sizes) + len(_GAP) * (len(sizes) - 1))


def _indented(name: str) -> str:
    """Its lines, all indented as the first."""
    return name.replace("\n", "\n" + " " * (len(name) - len(name.lstrip(" "))))


def csv(found: "DataFrame") -> str:
    """A table for programs, with all digits; no text is a spreadsheet's formula."""
    return str(found.replace(r"^[=+\-@\t]", r"'\g<0>", regex=True).to_csv(index=False))


def markdown(found: Iterable[Section]) -> str:
    """Sections for a document."""
    lines: list[str] = []
    for heading, columns, rows in found:
        lines += map(escape_markdown, heading.splitlines())
        if columns:
            lines += ["", _line(columns), f"|{' --- |' * len(columns)}", *map(_line, rows)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(escape_markdown, cells))} |"


def escape_markdown(text: str) -> str:
    """Escapes text for Markdown, so that a model's name is neither mark-up nor HTML."""
    return re.sub(r"[\\`*_\[\]<>|#~]", r"\\\g<0>", text)


# For papers.

_SHOWN = {MARKS["best"]: "", MARKS["unproven"]: r"\circ", MARKS["untested"]: "?"}
"""Marks as LaTeX shows them above the line."""

_SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "|": r"\textbar{}", '"': "''", "↓": r"$\downarrow$", "°": r"$^{\circ}$",
        **{sign: f"{{{sign}}}" for sign in "`[]*-"}, **{sign: f"\\{sign}" for sign in "&%$#_"},
    }
)  # fmt: skip

MOST_COLUMNS = 8
"""That a page is wide enough for."""

_STACKED, _NAMED, _ONE_COLUMN = 18, 32, 2
"""Characters of a line of a heading and of a row's name; columns that fit one column of text."""


def latex(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str,
    *,
    label: str,
    explained: Sequence[str] = (),
    comments: Iterable[str] = (),
) -> str:
    """The source of a table with booktabs: the best is bold, second lines are small.

    Args:
        columns: As a section's.
        rows: As a section's.
        caption: Plain text; what the marks mean is added.
        label: Of the table, without ``tab:``.
        explained: The marks, from :func:`legend`.
        comments: Lines of the source that LaTeX passes over.

    Raises:
        OptionError: There are more than :data:`MOST_COLUMNS` columns.
    """
    import pandas as pd

    _, *heads = columns
    if len(heads) > MOST_COLUMNS:
        raise OptionError(
            f"{len(heads)} columns, and a page has room for {MOST_COLUMNS}; name fewer results, or "
            f"choose with --tasks, --metric or --where of compare: {', '.join(heads)}"
        )
    index, body = [], []
    for name, *cells in rows:
        lines = zip_longest(*(cell.split("\n") for cell in cells), fillvalue="")
        for place, own in enumerate(lines):
            index.append("" if place else _stacked(name, _NAMED, "l"))
            body.append([r"\scriptsize " * bool(place and one) + _cell(one) for one in own])
    made = pd.DataFrame(body, index, list(map(_stacked, heads)))
    if explained:
        caption += "; " + "; ".join(explained).replace(f"{MARKS['best']} ", "bold: ", 1)
    source = made.style.to_latex(
        hrules=True,
        position="t",
        position_float="centering",
        environment="table*" if len(heads) > _ONE_COLUMN else "table",
        column_format="l" + "r" * len(heads),
        caption=escape(f"{caption}."),
        label=f"tab:{label}",
    )
    made_by = f"lm-eval-ext {__version__}; see the signatures for what the values depend on"
    return "".join(f"% {one_line(line)}\n" for line in [made_by, *comments]) + str(source)


def escape(text: str) -> str:
    """Any text as LaTeX shows it, on one line."""
    return one_line(text).translate(_SPECIAL)


def _cell(text: str) -> str:
    """A number with its mark, or an interval: the best is bold, other marks stand outside."""
    bare = text.rstrip()
    if bare == "-":
        return "--"
    mark = bare[-1:] if bare[-1:] in _SHOWN else ""
    shown = escape(bare.removesuffix(mark))
    shown = shown.replace("{-}", "$-$").replace("+", "$+$").replace(r" \%", r"\,\%")
    if mark == MARKS["best"]:
        return f"\\textbf{{{shown}}}"
    return shown + (f"\\rlap{{$^{{{_SHOWN[mark]}}}$}}" if mark else "")


def _stacked(name: str, most: int = _STACKED, side: str = "r") -> str:
    """A name over several lines, where it is long."""
    lines = list(map(escape, broken(one_line(name), most).split("\n")))
    stacked = " \\\\ ".join(lines)
    return f"\\shortstack[{side}]{{{stacked}}}" if len(lines) > 1 else stacked
