"""A row of the table: the same work done in two ways, in turn, in one run."""

import gc
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")
Times: TypeAlias = tuple[list[float], list[float]]
"""Seconds of the baseline and of ours, round by round."""


class DifferError(Exception):
    """The two ways gave different results, so their times cannot be compared."""


@dataclass(frozen=True)
class Row:
    """One size of one piece of work.

    Attributes:
        work: What was done.
        size: How much of it.
        unit: What the size counts, such as "prompts".
        baseline: The other way of doing it.
        theirs: Seconds of the baseline, round by round.
        ours: Seconds of ours, in the same rounds.
        same: In which respect the two results were found equal; empty where there are none.
        limit: The largest possible ratio, or None.
        peak: Largest memory of the two processes in MiB, the baseline's first.
        note: A remark below the table.
    """

    work: str
    size: int
    unit: str
    baseline: str
    theirs: list[float]
    ours: list[float]
    same: str = ""
    limit: float | None = None
    peak: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def ratios(self) -> list[float]:
        """How many times as fast ours is, round by round."""
        return [a / b for a, b in zip(self.theirs, self.ours, strict=True)]

    @property
    def ratio(self) -> float:
        """Their median."""
        return median(self.ratios)

    @property
    def seconds_more(self) -> float:
        """How many seconds more ours takes (median)."""
        return median(b - a for a, b in zip(self.theirs, self.ours, strict=True))

    def as_dict(self) -> dict[str, Any]:
        """Returns the arguments of :class:`Row`, for JSON."""
        return asdict(self)


def growth(rows: list[Row]) -> float | None:
    """Returns the exponent b if our time grows with size**b from the first size to the last.

    None if these are equal.
    """
    first, last = rows[0], rows[-1]
    if first.size == last.size:
        return None
    return math.log(median(last.ours) / median(first.ours)) / math.log(last.size / first.size)


def turns(rounds: int) -> Iterator[int]:
    """Yields 0 for the baseline and 1 for ours, each once a round; the first alternates."""
    for number in range(rounds):
        yield from (0, 1) if number % 2 == 0 else (1, 0)


def in_turn(
    rounds: int, theirs: Callable[[], Result], ours: Callable[[], Result]
) -> tuple[Times, Result, Result]:
    """Measures both, round by round.

    Returns:
        The times, and the last result of each.
    """
    seconds: Times = ([], [])
    results: dict[int, Result] = {}
    for side in turns(rounds):
        gc.collect()
        began = time.perf_counter()
        results[side] = (theirs, ours)[side]()
        seconds[side].append(time.perf_counter() - began)
    return seconds, results[0], results[1]
