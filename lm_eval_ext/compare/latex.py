"""Tables for papers: LaTeX with booktabs, and no other package."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lm_eval_ext import __version__
from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.statistics import number
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': "''", "`": "{`}", "[": "{[}", "]": "{]}", "*": "{*}",
    **{sign: f"\\{sign}" for sign in "&%$#_"},
}  # fmt: skip

MOST_COLUMNS = 8
"""That a page is wide enough for."""

_INTERVALS, _ONE_COLUMN = 4, 3
"""Columns up to which intervals stand below the values, and up to which one column of text is wide
enough."""


def escape(text: str) -> str:
    """Any text as LaTeX shows it, on one line."""
    shown = "".join(_SPECIAL.get(character, character) for character in one_line(text))
    return shown.replace("--", "-{}-")


def table(
    found: "DataFrame",
    *,
    caption: str,
    label: str,
    below: Sequence[tuple[str, str, str]] = (),
    comments: Sequence[str] = (),
    alpha: float = 0.05,
) -> str:
    """The source of a table of models by columns; these are the rows where they outnumber models.

    Args:
        found: Columns ``model``, ``column``, ``unit``, ``value``, ``low``, ``high`` and ``best``
            (bold).
        caption: Plain text; what marks mean is added.
        label: Of the table, without ``tab:``.
        below: More rows, which a rule divides from the models: name, column and text of a cell.
        comments: Lines of the source that LaTeX passes over.
        alpha: The level of intervals and tests.

    Raises:
        OptionError: There are more than :data:`MOST_COLUMNS` columns.
    """
    import pandas as pd

    heads, models = (list(dict.fromkeys(found[one])) for one in ("column", "model"))
    lines = [*models, *dict.fromkeys(name for name, _, _ in below)]
    turned = len(heads) > len(models)
    wide = len(lines if turned else heads)
    if wide > MOST_COLUMNS:
        what = ", ".join(lines if turned else heads)
        option = "name fewer results" if turned else "choose with --tasks, --metric or --where"
        raise OptionError(
            f"{wide} columns, and a page has room for {MOST_COLUMNS}; {option}: {what}"
        )
    intervals = wide <= _INTERVALS and bool(found["low"].notna().any())
    cells = {(one.model, one.column): _cell(one, intervals=intervals) for one in found.itertuples()}
    cells |= {(name, column): _signed(text) for name, column, text in below}
    made = pd.DataFrame(
        [[cells.get((name, column), "") for column in heads] for name in lines],
        index=[escape(name) for name in lines],
        columns=[_stacked(column) for column in heads],
    )
    style = (made.T if turned else made).style
    notes = [f"Brackets: {100 * (1 - alpha):g} % intervals."] * intervals
    if found["best"].any():
        notes.append(
            f"Bold: no other model is significantly better (paired tests, p < {alpha:g}, adjusted "
            "by Holm's method)."
        )
    source = style.to_latex(
        hrules=True,
        position="t",
        position_float="centering",
        environment="table*" if wide > _ONE_COLUMN else "table",
        column_format="l" + "r" * wide,
        caption=escape(" ".join([caption, *notes])),
        label=f"tab:{label}",
    )
    if below and not turned:
        lines_of = source.splitlines(keepends=True)
        start = next(n for n, line in enumerate(lines_of) if line.startswith(r"\midrule")) + 1
        source = "".join(
            [*lines_of[: start + len(models)], "\\midrule\n", *lines_of[start + len(models) :]]
        )
    made_by = f"lm-eval-ext {__version__}; see the signatures for what the values depend on"
    return "".join(f"% {one_line(line)}\n" for line in [made_by, *comments]) + str(source)


def overview(found: "DataFrame", alpha: float = 0.05) -> str:
    """The table of models by benchmarks (:func:`~lm_eval_ext.results.overview.overview`)."""
    told = found[["task", "title"]].drop_duplicates().itertuples(index=False)
    trials = found[found["scored"] < found["total"]]
    caption = "; ".join(f"{task}: {title}" for task, title in told) + "."
    if len(trials):
        counts = trials[["task", "scored", "total"]].drop_duplicates().itertuples(index=False)
        named = ", ".join(f"{task} {scored} of {total}" for task, scored, total in counts)
        caption += f" Trials: {named} documents."
    return table(found.assign(column=found["task"]), caption=caption, label="overview", alpha=alpha)


def _cell(one: "object", *, intervals: bool) -> str:
    value, unit, low, high, best = (
        getattr(one, key) for key in ("value", "unit", "low", "high", "best")
    )
    percent = r"\,\%" if unit == "percent" and value == value else ""  # noqa: PLR0124 - NaN
    shown = _signed(number(value, unit)) + percent
    shown = f"\\textbf{{{shown}}}" if best else shown
    if not intervals or low is None or low != low:  # noqa: PLR0124 - NaN
        return shown
    bounds = _signed(f"[{number(low, unit)}, {number(high, unit)}]")
    return f"\\shortstack[r]{{{shown} \\\\ \\scriptsize {bounds}}}"


def _signed(text: str) -> str:
    return escape(text).replace("-", "$-$").replace("+", "$+$")


def _stacked(name: str) -> str:
    """A heading over several lines, where it is long."""
    import textwrap

    wrapped = textwrap.wrap(one_line(name).replace("_", "_ "), _HEADING)
    lines = [escape(line.replace("_ ", "_")) for line in wrapped]
    return lines[0] if len(lines) == 1 else "\\shortstack[r]{" + " \\\\ ".join(lines) + "}"


_HEADING = 18
"""Characters of a line of a heading."""
