"""Standard errors for documents that share a source.

Documents about one noun, one database or one dish are not independent, and treating them as
independent makes intervals too narrow (Miller 2024, arXiv 2411.00640, section 2.2).
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol

_TWO = 2
"""With fewer clusters there is no variance between them, and so no error."""


class Clustered(Protocol):
    """A number with its cluster."""

    @property
    def cluster(self) -> str:
        """The name of the cluster."""

    def __float__(self) -> float: ...


class ClusteredValue(float):
    """A document's score with the cluster that the document belongs to.

    It is a float in every respect, so lm-eval's means, logs and JSON take it as one; the
    aggregation of the standard error reads :attr:`cluster`.
    """

    cluster: str

    def __new__(cls, value: float, cluster: str) -> "ClusteredValue":
        """Args: the score, and any name of the cluster that is unique within the task."""
        self = super().__new__(cls, value)
        self.cluster = cluster
        return self

    def __reduce__(self) -> tuple[type["ClusteredValue"], tuple[float, str]]:
        """For pickling: ranks send their scores to each other."""
        return (ClusteredValue, (float(self), self.cluster))


def clustered_standard_error(values: Iterable[Clustered]) -> float | None:
    """Standard error of the mean of ``values``, clustered.

    The sandwich estimator for a mean, with the correction G / (G - 1) for a small number G
    of clusters: sqrt(G / (G - 1) * sum over clusters of (sum of deviations)²) / n. With one
    value per cluster it is the usual s / sqrt(n). Sums are exact (``math.fsum``), so the result
    does not depend on the order of values, which varies between ranks.

    Returns:
        The standard error, or None for fewer than two clusters, where it is undefined.
    """
    scores = list(values)
    if not scores:
        return None
    mean = math.fsum(map(float, scores)) / len(scores)
    deviations: dict[str, list[float]] = defaultdict(list)
    for score in scores:
        deviations[score.cluster].append(float(score) - mean)
    groups = len(deviations)
    if groups < _TWO:
        return None
    squares = math.fsum(math.fsum(cluster) ** 2 for cluster in deviations.values())
    return math.sqrt(groups / (groups - 1) * squares) / len(scores)
