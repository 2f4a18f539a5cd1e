"""Tables for papers: LaTeX with booktabs, and no other package."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_ext import __version__
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.grid import interval, value
from lm_eval_ext.stats.intervals import ALPHA
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "`": "{`}", "[": "{[}", "]": "{]}", "*": "{*}",
    **{sign: f"\\{sign}" for sign in "&%$#_"},
}  # fmt: skip

MIDRULE = "\\midrule\n"

MOST_COLUMNS = 8
"""That a page is wide enough for."""

_INTERVALS, _ONE_COLUMN = 4, 2
"""Columns up to which intervals stand below the values, and up to which one column of text is wide
enough."""


def escape(text: str) -> str:
    """Any text as LaTeX shows it, on one line."""
    shown = "".join(_SPECIAL.get(character, character) for character in one_line(text))
    return re.sub('"([^"]*)"', r"``\1''", shown).replace('"', "''").replace("--", "-{}-")


def table(
    rows: Sequence[Mapping[str, Any]],
    *,
    caption: str,
    label: str,
    below: Sequence[tuple[str, str, str]] = (),
    comments: Sequence[str] = (),
) -> str:
    """The source of a table of models by columns; these are the rows where they outnumber models.

    Args:
        rows: With ``model``, ``column``, ``unit``, ``value``, ``low``, ``high`` and ``best``
            (bold).
        caption: Plain text; what marks mean is added.
        label: Of the table, without ``tab:``.
        below: More rows, which a rule divides from the models: name, column and text of a cell.
        comments: Lines of the source that LaTeX passes over.

    Raises:
        OptionError: There are more than :data:`MOST_COLUMNS` columns.
    """
    import pandas as pd

    heads, lines = (list(dict.fromkeys(row[one] for row in rows)) for one in ("column", "model"))
    first = [name for name, _, _ in below[:1]]
    turned = len(heads) > len(lines)
    lines += dict.fromkeys(name for name, _, _ in below)
    down, across = (heads, lines) if turned else (lines, heads)
    if len(across) > MOST_COLUMNS:
        option = "name fewer results" if turned else "choose with --tasks, --metric or --where"
        raise OptionError(
            f"{len(across)} columns, and a page has room for {MOST_COLUMNS}; {option}: "
            f"{', '.join(across)}"
        )
    cells = {(row["model"], row["column"]): _cell(row) for row in rows}
    cells |= {(name, column): (_signed(text), "") for name, column, text in below}
    index, body = [], []
    for name in down:
        own = [cells.get((other, name) if turned else (name, other), ("", "")) for other in across]
        values, bounds = zip(*own, strict=True)
        rule = MIDRULE * (not turned and name in first)
        index.append(f"{rule}{escape(name)}")
        body.append(values)
        if any(bounds) and len(across) <= _INTERVALS:
            index.append("")
            body.append(bounds)
    notes = ["Brackets: 95 % intervals."] * ("" in index)
    if any(row["best"] for row in rows):
        notes.append(
            f"Bold: no other model is significantly better (paired tests, p < {ALPHA:g}, adjusted "
            "by Holm's method)."
        )
    source = pd.DataFrame(body, index, [_stacked(name) for name in across]).style.to_latex(
        hrules=True,
        position="t",
        position_float="centering",
        environment="table*" if len(across) > _ONE_COLUMN else "table",
        column_format="l" + "r" * len(across),
        caption=escape(" ".join([caption, *notes])),
        label=f"tab:{label}",
    )
    made_by = f"lm-eval-ext {__version__}; see the signatures for what the values depend on"
    return "".join(f"% {one_line(line)}\n" for line in [made_by, *comments]) + str(source)


def overview(found: "DataFrame") -> str:
    """The table of models by benchmarks (:func:`~lm_eval_ext.results.overview.overview`)."""
    rows = found.assign(column=found["task"]).to_dict("records")
    told = {row["task"]: row["title"] for row in rows}
    caption = "; ".join(f"{task}: {title}" for task, title in told.items()) + "."
    trials = {row["task"]: row for row in rows if row["scored"] < row["total"]}
    if trials:
        counts = (f"{task} {row['scored']} of {row['total']}" for task, row in trials.items())
        caption += f" Trials: {', '.join(counts)} documents."
    return table(rows, caption=caption, label="overview")


def _cell(row: Mapping[str, Any]) -> tuple[str, str]:
    """The value, and its interval."""
    shown = _signed(value(row["value"], row["unit"]).strip()).replace(r" \%", r"\,\%")
    ends = _signed(interval(row["low"], row["high"], row["unit"]))
    return f"\\textbf{{{shown}}}" if row["best"] else shown, f"\\scriptsize {ends}" if ends else ""


def _signed(text: str) -> str:
    return escape(text).replace("-", "$-$").replace("+", "$+$")


def _stacked(name: str) -> str:
    """A heading over several lines, where it is long."""
    from textwrap import wrap

    wrapped = wrap(one_line(name).replace("_", "_ "), _HEADING)
    lines = [escape(line.replace("_ ", "_")) for line in wrapped]
    return lines[0] if len(lines) == 1 else "\\shortstack[r]{" + " \\\\ ".join(lines) + "}"


_HEADING = 18
"""Characters of a line of a heading."""
