"""A row of the tables: the same work done in two ways, in turn, in one run; and their page."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")
Times: TypeAlias = tuple[list[float], list[float]]
"""Seconds of the baseline and of ours, round by round."""

TITLES = {
    "prefix": "Measured: `hf-prefix` against `hf`",
    "peers": "Measured: `hf-prefix` against servers",
    "sql": "SQL verdicts",
    "start": "Before the first request",
    "page": "The leaderboard's page",
}


class DifferError(Exception):
    """The two ways gave different results, so their times cannot be compared."""


@dataclass(frozen=True)
class Row:
    """A piece of work; times are seconds, round by round."""

    work: str
    size: int
    """Requests, predictions or samples."""
    baseline: str
    """The other way of doing it; empty, as are its times, where only ours is measured."""
    theirs: list[float]
    ours: list[float]
    same: str = ""
    """In which respect the two results were found equal; empty where there are none."""
    sharing: float | None = None
    """Tokens for each distinct one."""
    peak: list[float] = field(default_factory=list)
    """Largest memory of the two processes in MiB, the baseline's first."""

    @property
    def ratios(self) -> list[float]:
        """How many times as fast ours is, round by round."""
        return [a / b for a, b in zip(self.theirs, self.ours, strict=True)]

    @property
    def cells(self) -> list[str]:
        """A line of the table."""
        both = [times for times in (self.theirs, self.ours) if times]
        rates = (self.size / median(times) for times in both)
        low, middle, high = (
            f"{f(self.ratios):.3g}" if both[1:] else "" for f in (min, median, max)
        )
        return [
            self.work,
            f"{self.size:,}",
            self.baseline,
            f"{median(self.theirs):.3g} s" if middle else "",
            f"{median(self.ours):.3g} s",
            " and ".join(f"{rate:,.2f}" for rate in rates),
            f"**{middle}** ({low} to {high})" if middle else "",
            f"{self.sharing:.1f}" if self.sharing else "",
            " and ".join(f"{mib:,.0f}" for mib in self.peak),
        ]


COLUMNS = [
    "work", "size", "baseline", "baseline's time", "our time", "per second (both)",
    "times as fast (range)", "tokens per distinct one", "peak memory, MiB",
]  # fmt: skip


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


def table(rows: Sequence[Row]) -> str:
    """Returns a part's table without its empty columns, and how results were compared."""
    columns = zip(COLUMNS, *(row.cells for row in rows), strict=True)
    used = [column for column in columns if any(column[1:])]
    head, *lines = zip(*used, strict=True)
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))
    compared = "; ".join(dict.fromkeys(row.same for row in rows if row.same))
    return f"{text}\n\nResults: {compared}." if compared else text


def render(record: Mapping[str, Any]) -> str:
    """Returns all parts as Markdown, each with its machine."""
    return "\n\n".join(
        f"## {TITLES[part]}\n\n{table([Row(**row) for row in found['rows']])}\n\n*{found['about']}*"
        for part, found in record.items()
    )
