"""A row of the tables: the same work done in two ways, in turn, in one run; and their page."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")

TITLES = {
    "prefix": "Measured: `hf-prefix` against `hf`",
    "peers": "Measured: `hf-prefix` against servers",
    "real": "Measured: `hf-prefix` on real models",
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

    start: list[float] = field(default_factory=list)
    """Seconds of the two before the work, the baseline's first."""

    @property
    def ratios(self) -> list[float]:
        """How many times as fast ours is, round by round."""
        return [theirs / ours for theirs, ours in zip(self.theirs, self.ours, strict=True)]

    @property
    def our_time(self) -> str:
        """The median of our times."""
        return f"{median(self.ours):.3g} s"

    @property
    def speedup(self) -> str:
        """How many times as fast ours is, with the range; "" without a baseline."""
        if not self.theirs:
            return ""
        ratios = self.ratios
        return f"**{median(ratios):.3g}** ({min(ratios):.3g} to {max(ratios):.3g})"

    @property
    def cells(self) -> list[str]:
        """A line of the table."""
        rates = []
        for times in (self.theirs, self.ours):
            if times:
                rates.append(f"{self.size / median(times):,.2f}")
        their_time = ""
        if self.theirs:
            their_time = f"{median(self.theirs):.3g} s"
        sharing = ""
        if self.sharing:
            sharing = f"{self.sharing:.1f}"
        peaks = [f"{mib:,.0f}" for mib in self.peak]
        starts = [f"{seconds:.3g}" for seconds in self.start]
        return [
            self.work,
            f"{self.size:,}",
            self.baseline,
            their_time,
            self.our_time,
            " and ".join(rates),
            self.speedup,
            sharing,
            " and ".join(peaks),
            " and ".join(starts),
        ]


COLUMNS = [
    "work", "size", "baseline", "baseline's time", "our time", "per second (both)",
    "times as fast (range)", "tokens per distinct one", "peak memory, MiB",
    "start, seconds (both)",
]  # fmt: skip


@dataclass(frozen=True)
class Measured(Generic[Result]):
    """The same work done in two ways.

    Attributes:
        theirs: Seconds of the baseline, round by round.
        ours: Seconds of ours, round by round.
        their_result: The last result of the baseline.
        our_result: The last result of ours.
    """

    theirs: list[float]
    ours: list[float]
    their_result: Result
    our_result: Result


def in_turn(
    rounds: int, theirs: Callable[[], Result], ours: Callable[[], Result]
) -> Measured[Result]:
    """Measure both, round by round; the one that goes first alternates."""
    their_seconds: list[float] = []
    our_seconds: list[float] = []
    for number in range(rounds):
        if number % 2 == 0:
            their_result = _timed(theirs, their_seconds)
            our_result = _timed(ours, our_seconds)
        else:
            our_result = _timed(ours, our_seconds)
            their_result = _timed(theirs, their_seconds)
    return Measured(their_seconds, our_seconds, their_result, our_result)


def _timed(work: Callable[[], Result], seconds: list[float]) -> Result:
    """Do a piece of work, and add the seconds that it took."""
    gc.collect()
    started = time.perf_counter()
    result = work()
    seconds.append(time.perf_counter() - started)
    return result


def table(rows: Sequence[Row]) -> str:
    """Return a part's table without its empty columns, and how results were compared."""
    cells = [row.cells for row in rows]
    used = []
    for number in range(len(COLUMNS)):
        if any(line[number] for line in cells):
            used.append(number)
    lines = []
    for line in (COLUMNS, ["---"] * len(COLUMNS), *cells):
        lines.append(_line([line[number] for number in used]))
    text = "\n".join(lines)
    compared = []
    for row in rows:
        if row.same and row.same not in compared:
            compared.append(row.same)
    if compared:
        text += f"\n\nResults: {'; '.join(compared)}."
    return text


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def render(record: Mapping[str, Any]) -> str:
    """Return all parts as Markdown, each with its machine."""
    sections = []
    for topic, results in record.items():
        rows = [Row(**row) for row in results["rows"]]
        sections.append(f"## {TITLES[topic]}\n\n{table(rows)}\n\n*{results['about']}*")
    return "\n\n".join(sections)
