"""Errors and differences of metrics that aren't averages, by a bootstrap of whole clusters.

Such a metric is a function of sums over clusters. Whole clusters are drawn with replacement,
since documents of one cluster are not independent (Miller 2024, arXiv 2411.00640, section 2.2).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_eval_ext.stats.clustered import LEAST_CLUSTERS
from lm_eval_ext.stats.paired import Difference, randomisation_p

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_AT_A_TIME = 1 << 17
"""Clusters drawn at a time, whose counts fit into a processor's cache."""


def resampled_sums(
    stacked: "NDArray[np.float64]", iterations: int, seed: int
) -> "NDArray[np.float64]":
    """The sums of resamples; ``stacked`` has a row of any shape per cluster.

    Each resample draws as many clusters as there are. They are drawn one by one and counted,
    which for many clusters is some ten times as fast as drawing the counts.
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
"""Of intervals."""


@dataclass(frozen=True)
class Uncertainty:
    """A metric's uncertainty: the standard deviation over resamples, and a percentile interval."""

    stderr: float
    low: float
    high: float


def cluster_bootstrap(
    totals: "Mapping[str, NDArray[np.float64]]",
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
    *,
    iterations: int = ITERATIONS,
    seed: int = 0,
) -> Uncertainty | None:
    """Bootstraps a metric that is a function of sums over clusters.

    The order of clusters and of the documents in them has no effect: clusters are sorted by
    name first.

    Args:
        totals: By cluster, the sums that the metric needs: arrays of one shape.
        statistic: From sums over all clusters, with an axis of resamples in front, to a value
            per resample (NaN: undefined).
        iterations: Number of resamples.
        seed: Of the generator.

    Returns:
        None for fewer than two clusters, or if fewer than half of the resamples define it.
    """
    import numpy as np

    stacked = np.stack([totals[name] for name in sorted(totals)]) if totals else np.empty(0)
    return _uncertainty(stacked, statistic, iterations, seed, 1 - LEVEL)


def _uncertainty(
    stacked: "NDArray[np.float64]",
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
    iterations: int,
    seed: int,
    alpha: float,
) -> Uncertainty | None:
    import numpy as np

    if len(stacked) < LEAST_CLUSTERS:
        return None
    values = statistic(resampled_sums(stacked, iterations, seed))
    values = values[~np.isnan(values)]
    if len(values) < iterations / 2:
        return None
    low, high = np.quantile(values, [alpha / 2, 1 - alpha / 2])
    return Uncertainty(float(np.std(values, ddof=1)), float(low), float(high))


PAIRED_ITERATIONS = 10_000
"""Resamples, which give bounds to a few per cent of the interval's width."""


def paired_cluster_bootstrap(
    first: "Mapping[str, NDArray[np.float64]]",
    second: "Mapping[str, NDArray[np.float64]]",
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
    *,
    alpha: float = 0.05,
    seed: int = 0,
    iterations: int = PAIRED_ITERATIONS,
) -> Difference | None:
    """Compares two systems on such a metric, both on the same drawn clusters.

    ``first`` and ``second`` are their totals, as :func:`cluster_bootstrap` takes them. The
    interval is one of percentiles. The p is that of a randomisation test, as in
    :func:`~lm_eval_ext.stats.paired.sign_flip`: in each cluster the two systems may change
    places, and the metric is recomputed. (A p from the bootstrap itself would be far too small
    for a handful of clusters, whose resamples hardly differ.)

    Returns:
        None if the metric is undefined on all documents. Only the value for fewer than two
        clusters, or if fewer than half of the resamples define the metric of both.

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
    uncertainty = _uncertainty(
        both, lambda sums: _differences(sums, statistic), iterations, seed, alpha
    )
    if uncertainty is None:
        return Difference(float(value))
    p = _swap(both, statistic, float(value), seed)
    return Difference(
        float(value), uncertainty.stderr, uncertainty.low, uncertainty.high, p, "swap"
    )


def _swap(
    both: "NDArray[np.float64]",
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
    seen: float,
    seed: int,
) -> float:
    """The share of exchanges of the systems in clusters with a difference as large."""
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

    return randomisation_p(totals, len(moved), seen, seed=seed)


def _differences(
    sums: "NDArray[np.float64]",
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
) -> "NDArray[np.float64]":
    """First value minus the second, for sums of shape (resample, system, ...)."""
    return statistic(sums[:, 0]) - statistic(sums[:, 1])
