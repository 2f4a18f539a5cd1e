"""Resampling clusters: the error of a figure that is no mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_eval_ext.stats.resampling import resampled_sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
