"""Drawing clusters with replacement, and adding up what was drawn.

Resampling clusters: the error of a figure that is no mean.

The difference of two figures that are no means, by a bootstrap of whole clusters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_eval_ext.stats.paired import Difference, share_as_far

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_AT_A_TIME = 1 << 17
"""Clusters drawn at a time: as many as a processor's cache holds the counts of."""


def resampled_sums(
    stacked: "NDArray[np.float64]", iterations: int, seed: int
) -> "NDArray[np.float64]":
    """Returns what resamples add up to.

    Each draws as many clusters as there are, with replacement. Clusters are drawn one by one
    and counted, which for many of them is some ten times as fast as drawing the counts.

    Args:
        stacked: One row per cluster: what it holds, of any shape.
        iterations: Resamples.
        seed: Of the generator.

    Returns:
        One row per resample, of the shape that a cluster has.
    """
    import numpy as np

    clusters = len(stacked)
    flat: Any = stacked.reshape(clusters, -1)
    rng = np.random.default_rng(seed)
    sums = np.empty((iterations, flat.shape[1]))
    rows = max(1, _AT_A_TIME // clusters)
    for start in range(0, iterations, rows):
        size = min(rows, iterations - start)
        drawn = rng.integers(0, clusters, size=(size, clusters))
        drawn += np.arange(size)[:, None] * clusters
        counts = np.bincount(drawn.ravel(), minlength=size * clusters).reshape(size, clusters)
        sums[start : start + size] = counts.astype(np.float64) @ flat
    return sums.reshape(iterations, *stacked.shape[1:])


ITERATIONS = 1000
"""Resamples: enough for two digits of a standard error."""

LEVEL = 0.95
"""Of the intervals."""


@dataclass(frozen=True)
class Spread:
    """How far a figure may be off.

    Attributes:
        stderr: The standard deviation over resamples.
        low: The interval's lower bound (percentile).
        high: Its upper bound.
    """

    stderr: float
    low: float
    high: float


def cluster_bootstrap(
    totals: "Mapping[str, NDArray[np.float64]]",
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
    *,
    iterations: int = ITERATIONS,
    seed: int = 0,
) -> Spread | None:
    """Bootstraps a figure that is a function of sums over clusters.

    Whole clusters are drawn with replacement, since documents of one cluster are no
    independent draws (Miller 2024, arXiv 2411.00640, section 2.2). The order of clusters and
    of the documents in them changes nothing: clusters are sorted by name first.

    Args:
        totals: By cluster, whatever the figure needs, summed: arrays of one shape.
        statistic: Gives the figure from sums over all clusters; it gets an array with one more
            axis in front, of resamples, and returns a value per resample (NaN: undefined).
        iterations: Resamples.
        seed: Of the generator; a figure and its error are reproducible.

    Returns:
        None for fewer than two clusters, and where fewer than half of the resamples define it.
    """
    import numpy as np

    names = sorted(totals)
    if len(names) < 2:  # noqa: PLR2004
        return None
    stacked: Any = np.stack([totals[name] for name in names])
    values = statistic(resampled_sums(stacked, iterations, seed))
    values = values[~np.isnan(values)]
    if len(values) < iterations / 2:
        return None
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Spread(float(np.std(values, ddof=1)), float(low), float(high))


PAIRED_ITERATIONS = 10_000
"""Resamples: bounds are good to a few per cent of the interval's width."""


def paired_cluster_bootstrap(
    first: "Mapping[str, NDArray[np.float64]]",
    second: "Mapping[str, NDArray[np.float64]]",
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
    *,
    alpha: float = 0.05,
    seed: int = 0,
    iterations: int = PAIRED_ITERATIONS,
) -> Difference | None:
    """Compares a function of sums over clusters, both systems on the same drawn clusters.

    The interval is that of percentiles. The p is that of a randomisation test as
    :func:`~lm_eval_ext.stats.paired.sign_flip` is one: in each cluster the two systems may change
    places, and the figures are computed anew. (A p out of the bootstrap itself would be far too
    small for a handful of clusters, whose resamples hardly differ.)

    Args:
        first: Of the first system, by cluster: what the figure needs, summed; arrays of one
            shape.
        second: Of the second system, for the same clusters.
        statistic: As :func:`~lm_eval_ext.stats.cluster_bootstrap` takes it.
        alpha: 1 minus the interval's level.
        seed: Of the generator.
        iterations: Resamples.

    Returns:
        None where a figure is undefined on all documents. Only the value for fewer than two
        clusters, and where fewer than half of the resamples define both figures.

    Raises:
        ValueError: If the two do not have the same clusters.
    """
    import numpy as np

    if first.keys() != second.keys():
        raise ValueError("the two systems do not have the same clusters")
    names = sorted(first)
    both: Any = np.stack([[first[name], second[name]] for name in names])
    (value,) = _differences(both.sum(axis=0)[None], statistic)
    if np.isnan(value):
        return None
    if len(names) < 2:  # noqa: PLR2004
        return Difference(float(value))
    values = _differences(resampled_sums(both, iterations, seed), statistic)
    values = values[~np.isnan(values)]
    if len(values) < iterations / 2:
        return Difference(float(value))
    low, high = np.quantile(values, [alpha / 2, 1 - alpha / 2])
    stderr = float(np.std(values, ddof=1))
    p = _swap(both, statistic, float(value), seed)
    return Difference(float(value), stderr, float(low), float(high), p, "swap")


def _swap(
    both: "NDArray[np.float64]",
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
    seen: float,
    seed: int,
) -> float:
    """The share of exchanges of the systems in clusters that make a difference as large."""
    import numpy as np

    gaps = both[:, 1] - both[:, 0]
    moved = gaps[np.any(gaps != 0, axis=tuple(range(1, gaps.ndim)))]
    if not len(moved):
        return 1.0
    total = both.sum(axis=0)

    def totals(codes: "NDArray[np.int8]") -> "NDArray[np.float64]":
        exchanged = np.tensordot(codes.astype(np.float64), moved, axes=1)
        return _differences(
            np.stack([total[0] + exchanged, total[1] - exchanged], axis=1), statistic
        )

    return share_as_far(totals, len(moved), seen, seed=seed)


def _differences(
    sums: "NDArray[np.float64]",
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
) -> "NDArray[np.float64]":
    """First figure less the second, for sums of shape (resample, system, ...)."""
    return statistic(sums[:, 0]) - statistic(sums[:, 1])
