"""Ranks with ties, from tests or from intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from lm_eval_ext.leaderboard.board import Rank
from lm_eval_ext.results.files import Score
from lm_eval_ext.stats.paired import holm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Z95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""

_ROUNDING = 1e-12
"""Smaller differences and variances come from rounding."""


@dataclass(frozen=True)
class Scored:
    """A model's scores on the documents of a task, with the cluster of each document."""

    values: Sequence[float]
    clusters: Sequence[str]


def paired_ranks(
    scored: Mapping[str, Scored], *, higher: bool = True, alpha: float = 0.05
) -> dict[str, Rank]:
    """Ranks models by the means of paired, clustered differences on the same documents.

    Every pair is tested: the mean difference, divided by its clustered standard error, against
    Student's t with one degree of freedom fewer than clusters (Miller 2024, arXiv 2411.00640,
    section 4); Holm's method over all pairs. A model's rank is one more than the number of
    models that are significantly better. ``lm-eval-ext compare`` has the exact tests for a
    pair; these are fast enough for a table of many models.
    """
    import numpy as np
    from scipy import stats

    labels = list(scored)
    if not labels:
        return {}
    values = np.array([scored[label].values for label in labels], dtype=np.float64)
    _, numbers = np.unique(np.asarray(scored[labels[0]].clusters), return_inverse=True)
    count = int(numbers.max()) + 1
    means = values.mean(axis=1)
    sums = _by_cluster(values - means[:, None], numbers, count)
    products = sums @ sums.T
    pairs = list(combinations(range(len(labels)), 2))
    p_values = []
    for one, two in pairs:
        spread = max(float(products[one, one] + products[two, two] - 2 * products[one, two]), 0.0)
        difference = float(means[one] - means[two])
        if abs(difference) < _ROUNDING:
            p_values.append(1.0)
        elif count == 1:
            p_values.append(1.0)  # the variance of one cluster cannot be estimated
        elif spread < _ROUNDING:
            p_values.append(0.0)  # all clusters differ by the same amount
        else:
            error = math.sqrt(spread * count / (count - 1)) / values.shape[1]
            p_values.append(2 * float(stats.t.sf(abs(difference) / error, count - 1)))
    different = {pair: p < alpha for pair, p in zip(pairs, holm(p_values), strict=True)}
    return _ranks(labels, means.tolist(), different, higher=higher)


def interval_ranks(scores: Mapping[str, Score], *, higher: bool = True) -> dict[str, Rank]:
    """Ranks models by their intervals: one is better if the two do not overlap.

    For metrics that aren't averages of documents' scores. It finds fewer differences than a
    paired test would. Models without a finite value get no rank.
    """
    known = {
        label: score
        for label, score in scores.items()
        if score.value is not None and math.isfinite(score.value)
    }
    labels = list(known)
    bounds = [interval_of(known[label]) for label in labels]
    different = {}
    for one, two in combinations(range(len(labels)), 2):
        first, second = bounds[one], bounds[two]
        apart = first and second and (first[0] > second[1] or second[0] > first[1])
        different[one, two] = bool(apart)
    return _ranks(labels, [known[label].value or 0.0 for label in labels], different, higher=higher)


def interval_of(score: Score) -> tuple[float, float] | None:
    """The 95 % interval: its own, or two standard errors around the value."""
    if score.interval is not None:
        return score.interval
    if score.value is None or score.stderr is None or not math.isfinite(score.stderr):
        return None
    return score.value - Z95 * score.stderr, score.value + Z95 * score.stderr


def _by_cluster(
    values: "NDArray[np.float64]", numbers: "NDArray[np.intp]", count: int
) -> "NDArray[np.float64]":
    import numpy as np

    return np.stack([np.bincount(numbers, weights=row, minlength=count) for row in values])


def _ranks(
    labels: Sequence[str],
    means: Sequence[float],
    different: Mapping[tuple[int, int], bool],
    *,
    higher: bool,
) -> dict[str, Rank]:
    sign = 1 if higher else -1
    better = dict.fromkeys(range(len(labels)), 0)
    tied = dict.fromkeys(range(len(labels)), False)
    for (one, two), differs in different.items():
        if differs:
            worse = two if sign * means[one] > sign * means[two] else one
            better[worse] += 1
        else:
            tied[one] = tied[two] = True
    return {
        label: Rank(best=better[place] + 1, tied=tied[place]) for place, label in enumerate(labels)
    }
