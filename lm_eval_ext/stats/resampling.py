"""Drawing clusters with replacement, and adding up what was drawn."""

from typing import TYPE_CHECKING, Any

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
