"""A row of the tables: the same work done in two ways, in turn, in one run; and their page."""

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")
Times: TypeAlias = tuple[list[float], list[float]]
"""Seconds of the baseline and of ours, round by round."""

TITLES = {
    "prefix": "Shared prefixes: `hf-prefix` beside `hf`",
    "peers": "Shared prefixes: `hf-prefix` beside other programs",
    "sql": "SQL verdicts",
    "start": "Before the first request",
}

_WHOLE = 10
"""Numbers from here on have no decimals."""
_SMALL_S = 0.1
"""Times below this are shown in milliseconds."""


class DifferError(Exception):
    """The two ways gave different results, so their times cannot be compared."""


@dataclass(frozen=True)
class Row:
    """One size of one piece of work; times are seconds, round by round."""

    work: str
    size: int
    unit: str
    """What the size counts, such as "prompts"."""
    baseline: str
    """The other way of doing it."""
    theirs: list[float]
    ours: list[float]
    same: str = ""
    """In which respect the two results were found equal; empty where there are none."""
    limit: float | None = None
    """The largest possible ratio."""
    peak: list[float] = field(default_factory=list)
    """Largest memory of the two processes in MiB, the baseline's first."""
    note: str = ""
    """A remark below the table."""

    @property
    def ratios(self) -> list[float]:
        """How many times as fast ours is, round by round."""
        return [a / b for a, b in zip(self.theirs, self.ours, strict=True)]

    @property
    def seconds_more(self) -> float:
        """How many seconds more ours takes (median)."""
        return median(b - a for a, b in zip(self.theirs, self.ours, strict=True))


def growth(rows: Sequence[Row]) -> float | None:
    """Returns the exponent b if our time grows with size**b from the first size to the last.

    None if these are equal.
    """
    first, last = rows[0], rows[-1]
    if first.size == last.size:
        return None
    return math.log(median(last.ours) / median(first.ours)) / math.log(last.size / first.size)


def in_turn(
    rounds: int, theirs: Callable[[], Result], ours: Callable[[], Result]
) -> tuple[Times, Result, Result]:
    """Measures both, round by round; the one that goes first alternates.

    Returns:
        The times, and the last result of each.
    """
    seconds: Times = ([], [])
    results: dict[int, Result] = {}
    for number in range(2 * rounds):
        side = (number + number // 2) % 2
        gc.collect()
        began = time.perf_counter()
        results[side] = (theirs, ours)[side]()
        seconds[side].append(time.perf_counter() - began)
    return seconds, results[0], results[1]


def render(record: Mapping[str, Any]) -> str:
    """Returns all parts as Markdown, each with its machine."""
    parts = []
    for part, title in TITLES.items():
        parts.append(f"## {title}")
        found = record.get(part)
        if found is None:
            parts.append("Never measured.")
            continue
        parts += table([Row(**row) for row in found["rows"]])
        if found["problem"]:
            parts.append(f"Not measured: {found['problem']}.")
        about = found["machine"]
        parts.append(
            f"*{about['date']}, {found['rounds']} rounds or more: {about['processor']}, "
            f"{about['cores']} cores, {about['threads']} threads for torch; bench/last.json has "
            "the versions.*"
        )
    return "\n\n".join(parts)


def table(rows: Sequence[Row]) -> list[str]:
    """Returns a part's table, how results were compared, and the notes on each work."""
    limits, peaks = any(row.limit for row in rows), any(any(row.peak) for row in rows)
    starts = not any(row.same for row in rows)  # where milliseconds matter
    columns = ["work", "size", "baseline", "its time", "ours", "times as fast (range)"]
    columns += ["limit"] * limits + ["peak memory"] * peaks
    lines = [columns + (["difference"] if starts else ["growth"]), ["---"] * (len(columns) + 1)]
    for work, same_work in groupby(rows, key=lambda row: row.work):
        sizes = list(same_work)
        for place, row in enumerate(sizes):
            middle, low, high = (f(row.ratios) for f in (median, min, max))
            cells = [
                "" if place else work,
                f"{row.size:,} {row.unit}",
                row.baseline,
                seconds(median(row.theirs)),
                seconds(median(row.ours)),
                f"**{number(middle)}** ({number(low)} to {number(high)})",
            ]
            cells += [f"{row.limit:.1f}" if row.limit else ""] * limits
            cells += [" and ".join(f"{mib:,.0f}" for mib in row.peak) + " MiB"] * peaks
            power = growth(sizes) if place and row is sizes[-1] else None
            grows = "" if power is None else f"n^{power:.2f}"
            lines.append([*cells, difference(row.seconds_more) if starts else grows])
    compared = "; ".join(dict.fromkeys(row.same for row in rows if row.same))
    return [
        "\n".join(f"| {' | '.join(cells)} |" for cells in lines),
        *([f"Both ways agree: {compared}."] if compared else []),
        *dict.fromkeys(f"{row.work}: {row.note}." for row in rows if row.note),
    ]


def number(value: float) -> str:
    """Returns a number with two decimals, or none if it is large."""
    return f"{value:,.0f}" if value >= _WHOLE else f"{value:.2f}"


def seconds(value: float) -> str:
    """Returns a time."""
    return f"{value * 1000:.3g} ms" if value < _SMALL_S else f"{number(value)} s"


def difference(value: float) -> str:
    """Returns a signed difference of times."""
    return f"{value * 1000:+.0f} ms" if abs(value) < _SMALL_S else f"{value:+.2f} s"
