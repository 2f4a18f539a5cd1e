"""A comparison as text, Markdown, CSV, JSON or LaTeX."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from lm_eval_ext.compare import latex
from lm_eval_ext.compare.comparison import KEY, TABLE, Report, Row
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.grid import Section, markdown, text
from lm_eval_ext.stats.statistics import NONE, number
from lm_eval_ext.text import one_line, several

FORMATS = ("text", "markdown", "csv", "json", "latex")

BEST, LOWER = "*", "↓"
"""No other system is significantly better; lower is better."""

_LEAST_P = 0.001
"""Of p-values that are printed."""

_FORMULA = ("=", "+", "-", "@", "\t")

_TITLE = KEY.index("title")
_key = itemgetter(*KEY)
Key: TypeAlias = tuple[str, ...]


def rendered(report: Report, format_: str) -> str:
    """A comparison in one of :data:`FORMATS`."""
    match format_:
        case "csv":
            return _csv(report.pairs)
        case "json":
            refused = [{"reason": str(one), "signatures": one.signatures} for one in report.refused]
            return _json({**vars(report), "settings": asdict(report.settings), "refused": refused})
        case "latex":
            return _latex(report)
    return (text if format_ == "text" else markdown)(_sections(report))


def rendered_seeds(rows: Sequence[Row], format_: str) -> str:
    """What :func:`~lm_eval_ext.compare.comparison.by_seed` found.

    Raises:
        OptionError: There is no such format of it.
    """
    match format_:
        case "csv":
            return _csv(rows)
        case "json":
            return _json(rows)
        case "latex":
            raise OptionError("--by-seed has no format latex; use text, markdown, csv or json")
    columns = "condition", "seeds", "mean", "sd", "95 %"
    found: list[Section] = []
    for key, own in groupby(rows, TABLE):
        lines = [
            [one_line(row["condition"]), str(row["seeds"]), _value({**row, "value": row["mean"]}),
             _number(row, "sd"), _interval(row)]
            for row in own
        ]  # fmt: skip
        found.append((one_line(" · ".join(filter(None, key))), columns, lines))
    return (text if format_ == "text" else markdown)(found)


def _csv(rows: Sequence[Row]) -> str:
    """With all digits; no text is a spreadsheet's formula."""
    import pandas as pd

    frame = pd.DataFrame(rows).map(
        lambda one: "'" + one if isinstance(one, str) and one.startswith(_FORMULA) else one
    )
    return str(frame.to_csv(index=False))


def _json(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _sections(report: Report) -> Iterator[Section]:
    """Yields the parts of the text and Markdown output, from top to bottom."""
    heading, names = _named(report)
    level = f"{100 * (1 - report.settings.alpha):g} %"
    if len(names) == 1:
        yield from _one(report, heading, level)
    elif names:
        yield heading, *_matrix(report, names, level)
    if notes := list(dict.fromkeys(_notes(report, names))):
        yield "\n".join(notes), (), ()
    for refusal in report.refused:
        lines = [f"{one_line(name)}: {text}" for name, text in refusal.signatures.items()]
        yield "\n  ".join([f"not compared: {one_line(str(refusal))}", *lines]), (), ()


def _named(report: Report) -> tuple[str, dict[Key, str]]:
    """What all tables have in common, and what names each of them."""
    some = {_key(row): row for row in report.figures}
    counts = dict.fromkeys(map(_count, some.values()))
    differ = [len(set(column)) > 1 for column in zip(*some, strict=True)]
    common = [one for one, many in zip(next(iter(some)), differ, strict=True) if not many]
    # Where every task has its own metric, the task says enough.
    differ[_TITLE] &= len({(*key[:_TITLE], *key[_TITLE + 1 :]) for key in some}) < len(some)
    names = {
        key: one_line(", ".join(one for one, own in zip(key, differ, strict=True) if one and own))
        + f" {LOWER}" * row["lower_is_better"]
        for key, row in some.items()
    }
    told = [*common, *counts] if len(counts) == 1 else common
    return one_line(" · ".join(filter(None, told))), names


def _one(report: Report, heading: str, level: str) -> Iterator[Section]:
    """A row for each system and published value, and below them all pairs."""
    rows = [
        [one_line(row["system"]), _value(row), _interval(row), row["group"]]
        for row in report.figures
    ]
    rows += [
        [f"{one_line(row['system'])} (published)", _value(row), "", ""] for row in report.published
    ]
    yield heading, ("system", "value", level, "group"), rows
    if report.pairs:
        columns = "first", "second", "diff", level, "p", "p (Holm)"
        yield (
            "differences, first less second",
            columns,
            [
                [one_line(row["first"]), one_line(row["second"]), *_pair(row)]
                for row in report.pairs
            ],
        )


def _matrix(report: Report, names: Mapping[Key, str], level: str) -> tuple[list[str], list[Key]]:
    """Questions by systems, with the difference of two; rows are what there is more of."""
    import pandas as pd

    systems = report.systems
    two = len(systems) == 2  # noqa: PLR2004
    wide = max(len(row["group"]) for row in report.figures)
    cells: dict[str, dict[str, str]] = {name: {} for name in names.values()}
    for row in report.pairs * two:
        systems = [row["first"], row["second"]]
        cells[names[_key(row)]] |= zip(("diff", level, "p", "p (Holm)"), _pair(row), strict=True)
    for row in report.figures:
        letters = "" if two else f" {row['group']:{wide}}"
        cells[names[_key(row)]] |= {
            row["system"]: f"{_value(row)}{letters}", "documents": _count(row).partition(" ")[0]
        }  # fmt: skip
    frame = pd.DataFrame(cells).fillna("-")
    adjusted = any(row["p_holm"] != row["p"] for row in report.pairs)
    columns = ["diff", level, "p", *["p (Holm)"] * adjusted] if two and report.pairs else []
    counted = ["documents"] * (len(set(frame.loc["documents"])) > 1)
    frame = frame.loc[[*(name for name in systems if name in frame.index), *columns, *counted]]
    if two or len(names) > len(systems):
        frame = frame.T
    return ["", *map(one_line, frame)], [tuple(map(str, row)) for row in frame.itertuples()]


def _notes(report: Report, names: Mapping[Key, str]) -> Iterator[str]:
    rows = report.figures
    for row in rows:
        if row["note"]:
            yield one_line(f"{names[_key(row)] or row['task']}: {row['note']}")
    tasks = {row["task"]: row["title"] for row in rows}
    if len(set(tasks.values())) > 1:
        yield from (one_line(f"{task}: {title}") for task, title in tasks.items())
        yield "all pairs of a task, and published values: --tasks TASK"
    if any(row["lower_is_better"] for row in rows):
        yield f"{LOWER} lower is better"
    if any(row["best"] for row in rows):
        yield f"{BEST} no other is significantly better at {report.settings.alpha:g} (Holm)"
    if any(row["group"] for row in rows) and (len(names) == 1 or len(report.systems) > 2):  # noqa: PLR2004
        yield "systems that share a letter are not significantly different"


def _latex(report: Report) -> str:
    """One table: systems by questions, with the difference of two, and values published on one."""
    heading, names = _named(report)

    def column(row: Row) -> str:
        return names[_key(row)] or str(row["title"])

    below = []
    for row in report.pairs * (len(report.systems) == 2):  # noqa: PLR2004
        difference, _, p, _ = _pair(row)
        about = (f"{row['first']} less {row['second']}", difference), ("p", p)
        below += [(name, column(row), text) for name, text in about]
    told = {row["task"]: f"{row['title']} ({_count(row)})" for row in report.figures}
    if len(told) == 1:
        below += [(row["system"], column(row), _number(row, "value")) for row in report.published]
    caption = "; ".join(f"{task}: {title}" for task, title in told.items())
    return latex.table(
        [
            {**row, "model": row["system"], "column": column(row)}
            for row in sorted(report.figures, key=lambda row: report.systems.index(row["system"]))
        ],
        caption=f"{heading.replace(' · ', ', ') if len(told) == 1 else caption}.",
        label="compare",
        below=below,
        comments=list(report.signatures.values()),
        alpha=report.settings.alpha,
    )


def _pair(row: Row) -> tuple[str, str, str, str]:
    """The difference, its interval, and both p-values."""
    return (
        _number(row, "difference", signed=True),
        _interval(row, signed=True) or NONE,
        _probability(row["p"]),
        _probability(row["p_holm"]),
    )


def _number(row: Row, name: str, *, signed: bool = False) -> str:
    return number(row[name], row["unit"], signed=signed)


def _value(row: Row) -> str:
    percent = " %" if row["unit"] == "percent" and row["value"] is not None else ""
    return _number(row, "value") + percent + (BEST if row.get("best") else " ")


def _interval(row: Row, *, signed: bool = False) -> str:
    low, high = (_number(row, name, signed=signed) for name in ("low", "high"))
    return "" if row["low"] is None else f"[{low}, {high}]"


def _count(row: Row) -> str:
    total = "" if row["total"] is None else f"/{row['total']:,}"
    told = f"{row['documents']:,}{total} documents"
    if row["clusters"] in (0, row["documents"]):
        return told
    unit = row["cluster"] if row["clusters"] == 1 else several(row["cluster"])
    return f"{told}, {row['clusters']:,} {unit}"


def _probability(p: float | None) -> str:
    if p is None:
        return NONE
    return f"{p:.3f}" if p >= _LEAST_P else f"<{_LEAST_P}"
