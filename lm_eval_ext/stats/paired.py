"""Two systems on the same documents: the difference, its interval and a test.

A difference per document removes the documents' difficulty, so a paired interval is narrower
than two intervals side by side suggest (Miller 2024, arXiv 2411.00640, section 4). Documents
that share a source stay together, in intervals and in tests. For many comparisons at once there
are adjusted p-values, and groups of systems that are not significantly different.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lm_eval_ext.stats.clustered import ClusteredValue
from lm_eval_ext.stats.intervals import (
    NO_LIMITS,
    Estimate,
    Interval,
    Limits,
    Method,
    interval,
    jackknife,
    mean_estimate,
)
from lm_eval_ext.stats.randomisation import Test, difference_of, paired_tests, swap_test

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lm_eval_ext.stats.randomisation import Statistic


@dataclass(frozen=True)
class Difference:
    """The first system minus the second; None for what could not be computed.

    ``p`` is the two-sided p-value under the null hypothesis that both are equally good.
    """

    value: float
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    method: Method | None = None
    p: float | None = None
    test: Test | None = None


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[str],
    *,
    tested: tuple[float, Test] | None = None,
    limits: Limits = NO_LIMITS,
    alpha: float = 0.05,
    seed: int = 0,
) -> Difference:
    """Compares the means of two systems on the same documents.

    ``limits`` are those of the difference. The interval is that of the documents' differences
    (:func:`~lm_eval_ext.stats.intervals.interval`), the test
    :func:`~lm_eval_ext.stats.randomisation.paired_tests`; ``tested`` is what it found, if many
    systems were tested together.

    Returns:
        Only the value for fewer than two clusters.

    Raises:
        ValueError: If there is no document, or the three do not have the same length.
    """
    differences = [
        ClusteredValue(a - b, cluster)
        for a, b, cluster in zip(first, second, clusters, strict=True)
    ]
    if not differences:
        raise ValueError("no documents to compare")
    value = math.fsum(differences) / len(differences)
    estimate = mean_estimate(differences)
    if estimate is None:
        return Difference(value)
    p, test = tested or paired_tests([first, second], clusters, seed=seed)[0]
    return _difference(value, estimate, interval(estimate, limits, alpha=alpha), p, test)


def paired_statistic(
    first: "Mapping[str, NDArray[np.float64]]",
    second: "Mapping[str, NDArray[np.float64]]",
    statistic: "Statistic",
    clusters: Sequence[str],
    *,
    limits: Limits = NO_LIMITS,
    alpha: float = 0.05,
    seed: int = 0,
) -> Difference:
    """Compares two systems on a metric that is a function of sums over clusters.

    ``first``, ``second`` and ``statistic`` are those of
    :func:`~lm_eval_ext.stats.randomisation.swap_test`, which is the test; ``clusters`` those
    of the documents. The standard error is that of the jackknife, both systems without the
    same cluster.

    Returns:
        NaN for a value that is undefined; None for what else could not be computed.

    Raises:
        ValueError: If the two do not have the same clusters.
    """
    import numpy as np

    p = swap_test(first, second, statistic, seed=seed)
    both = {name: np.stack([first[name], second[name]]) for name in first}
    total = sum(both.values())
    value = float(difference_of(np.asarray(total)[None], statistic)[0])
    estimate = jackknife(both, lambda sums: difference_of(sums, statistic), Counter(clusters))
    found = interval(estimate, limits, alpha=alpha)
    return _difference(value, estimate, found, p, "swap" if p is not None else None)


def _difference(
    value: float,
    estimate: Estimate | None,
    found: Interval | None,
    p: float | None,
    test: Test | None,
) -> Difference:
    return Difference(
        value,
        estimate.stderr if estimate else None,
        found.low if found else None,
        found.high if found else None,
        found.method if found else None,
        p,
        test,
    )


def difference_limits(limits: Limits) -> Limits:
    """The limits of a difference of two values within ``limits``."""
    low, high = limits
    return NO_LIMITS if low is None or high is None else (low - high, high - low)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values so that the probability of any false finding stays below the level.

    Holm (1979): the smallest is multiplied by the number of tests, the next by one less, and
    so on; none may be below the one before. They are returned in the given order.
    """
    adjusted = [1.0] * len(p_values)
    least = 0.0
    ranked = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for rank, place in enumerate(ranked):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted


def letters(count: int, different: Collection[tuple[int, int]]) -> list[str]:
    """The compact letter display of Piepho (2004, doi 10.1198/1061860043515).

    Two systems share a letter exactly if they are not in ``different``. Systems are numbered from
    0, the best one first; the result is each one's letters, such as ``"ab"``.
    """
    columns = [frozenset(range(count))] if count else []
    for first, second in sorted(tuple(sorted(pair)) for pair in different):
        split = [
            part
            for column in columns
            for part in (
                (column - {first}, column - {second}) if {first, second} <= column else (column,)
            )
        ]
        distinct = list(dict.fromkeys(split))
        columns = [one for one in distinct if not any(one < other for other in distinct)]
    columns.sort(key=sorted)
    names = [_letter(place) for place in range(len(columns))]
    return [
        "".join(name for name, column in zip(names, columns, strict=True) if system in column)
        for system in range(count)
    ]


def _letter(place: int) -> str:
    """A to z in small letters, then with numbers: a1 to z1 and so on."""
    turn, rest = divmod(place, 26)
    return chr(ord("a") + rest) + (str(turn) if turn else "")
