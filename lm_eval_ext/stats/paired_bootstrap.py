"""The difference of two figures that are no means, by a bootstrap of whole clusters."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lm_eval_ext.stats.paired import Difference, share_as_far
from lm_eval_ext.stats.resampling import resampled_sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
