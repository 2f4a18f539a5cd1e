"""Two systems on the same documents: the difference, its interval and a test.

A difference per document removes the documents' difficulty, so a paired interval is narrower
than two intervals side by side suggest (Miller 2024, arXiv 2411.00640, section 4). Documents
that share a source stay together, in intervals and in tests. For many comparisons at once there
are adjusted p-values, and groups of systems that are not significantly different.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lm_eval_ext.stats.clustered import ClusteredValue, clustered_standard_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Test = Literal["mcnemar", "sign-flip", "swap"]

EXACT_UP_TO = 16
"""For up to so many clusters that differ, all 2**k assignments of signs are tried."""

DRAWS = 20_000
"""Assignments that are drawn where there are more: p is good to about 0.003 at 0.05."""

_CHUNK = 500_000
"""Signs in memory at a time."""

_TIE = 1e-9
"""Sums that differ by less, relatively, are equal but for rounding."""


@dataclass(frozen=True)
class Difference:
    """The first system minus the second; None for what could not be computed.

    ``p`` is the two-sided p-value under the null hypothesis that both are equally good.
    """

    value: float
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    test: Test | None = None


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[str],
    *,
    alpha: float = 0.05,
    seed: int = 0,
) -> Difference:
    """Compares the means of two systems on the same documents.

    The interval is value ± t · SE, with the clustered standard error of the documents'
    differences and Student's t with as many degrees of freedom as there are clusters, less
    one. The test is McNemar's, exact, if all scores are 0 or 1 and no cluster has two
    documents; otherwise :func:`sign_flip` on the clusters' sums.

    Returns:
        Only the value for fewer than two clusters.

    Raises:
        ValueError: If there is no document, or the three do not have the same length.
    """
    from scipy import stats

    pairs = list(zip(first, second, strict=True))
    differences = [
        ClusteredValue(a - b, cluster) for (a, b), cluster in zip(pairs, clusters, strict=True)
    ]
    if not differences:
        raise ValueError("no documents to compare")
    value = math.fsum(differences) / len(differences)
    stderr = clustered_standard_error(differences)
    if stderr is None:
        return Difference(value)
    groups = len(set(clusters))
    reach = float(stats.t.ppf(1 - alpha / 2, groups - 1)) * stderr
    binary = all(score in (0.0, 1.0) for pair in pairs for score in pair)
    if binary and groups == len(pairs):
        test: Test = "mcnemar"
        p = mcnemar(sum(d > 0 for d in differences), sum(d < 0 for d in differences))
    else:
        test = "sign-flip"
        p = sign_flip(cluster_sums(differences), seed=seed)
    return Difference(value, stderr, value - reach, value + reach, p, test)


def cluster_sums(differences: Sequence[ClusteredValue]) -> list[float]:
    """The sum of the differences of each cluster, in the order of the clusters' names."""
    members: dict[str, list[float]] = {}
    for difference in differences:
        members.setdefault(difference.cluster, []).append(difference)
    return [math.fsum(members[name]) for name in sorted(members)]


def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's exact test (1947), two-sided, on the documents that one system alone gets right.

    It is 1.0 where there are no such documents.
    """
    from scipy import stats

    discordant = only_first + only_second
    if not discordant:
        return 1.0
    return float(stats.binomtest(only_first, discordant, 0.5).pvalue)


def sign_flip(sums: Sequence[float], *, seed: int = 0) -> float:
    """Fisher's randomisation test for paired differences, of the sum of each cluster.

    If two systems are alike, which is called the first is arbitrary in every cluster, so all
    signs are equally likely. The p is the share of assignments whose total is at least as far from
    0 as the observed one: of all assignments for up to ``EXACT_UP_TO`` clusters that differ,
    otherwise of ``DRAWS`` random ones and the observed one (Phipson and Smyth 2010).
    """
    import numpy as np

    moved = np.array(sorted(value for value in sums if value), dtype=np.float64)
    if not len(moved):
        return 1.0

    def totals(codes: "NDArray[np.int8]") -> "NDArray[np.float64]":
        return (1.0 - 2.0 * codes) @ moved

    return randomisation_p(totals, len(moved), math.fsum(moved), seed=seed)


def randomisation_p(
    totals: "Callable[[NDArray[np.int8]], NDArray[np.float64]]",
    clusters: int,
    observed: float,
    *,
    seed: int = 0,
) -> float:
    """The p-value: the share of assignments whose total is at least as far from 0 as observed.

    Args:
        totals: From assignments to totals. An assignment is a row, with 1 for each cluster whose
            two systems are exchanged. An undefined total counts as extreme.
        clusters: The number of clusters that differ.
        observed: The total where no systems are exchanged.
        seed: Of the draws, where not all assignments are tried.
    """
    import numpy as np

    least = abs(observed) * (1 - _TIE)
    rows = max(1, _CHUNK // clusters)

    def count_extreme(codes: "NDArray[np.int8]") -> int:
        return int(np.sum(~(np.abs(totals(codes)) < least)))

    found = 0
    if clusters <= EXACT_UP_TO:
        # Exchanging all clusters only changes the sign, so one cluster can be fixed.
        count = 1 << (clusters - 1)
        for start in range(0, count, rows):
            numbers = np.arange(start, min(start + rows, count))[:, None]
            found += count_extreme((numbers >> np.arange(clusters) & 1).astype(np.int8))
        return found / count
    rng = np.random.default_rng(seed)
    for start in range(0, DRAWS, rows):
        size = (min(rows, DRAWS - start), clusters)
        found += count_extreme(rng.integers(0, 2, size=size, dtype=np.int8))
    return (1 + found) / (1 + DRAWS)


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
