"""F1 from counts of components: exact, and the same in whatever order documents arrive."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from lm_eval_ext.stats import Spread, cluster_bootstrap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Counts:
    """Components of one document, or of several.

    Attributes:
        tp: Gold components that the prediction has.
        predicted: Components of the prediction; a fraction where they are estimated.
        gold: Components of the gold name.
    """

    tp: int
    predicted: Fraction
    gold: int

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.tp + other.tp, self.predicted + other.predicted, self.gold + other.gold)

    @property
    def exact_f1(self) -> Fraction:
        """2 TP / (predicted + gold), the harmonic mean of precision and recall.

        0 where there is nothing to count: without a right component F1 is 0 by convention.
        """
        total = self.predicted + self.gold
        return Fraction(2 * self.tp) / total if total else Fraction(0)

    @property
    def f1(self) -> float:
        """F1 as a float, from 0 to 1."""
        return float(self.exact_f1)


def micro_f1(documents: Iterable[Counts]) -> float | None:
    """F1 of the counts summed over documents: the paper's figure (section 5.1).

    Returns:
        None without a document.
    """
    total = None
    for counts in documents:
        total = counts if total is None else total + counts
    return None if total is None else total.f1


def mean_f1(documents: Iterable[Counts]) -> float | None:
    """The mean of the documents' own F1: what the authors' code computes.

    Returns:
        None without a document.
    """
    scores = [counts.exact_f1 for counts in documents]
    return float(sum(scores, Fraction(0)) / len(scores)) if scores else None


def micro_f1_spread(documents: Iterable[tuple[str, Counts]]) -> Spread | None:
    """How far the micro F1 may be off: a bootstrap over clusters.

    Args:
        documents: Each with its cluster, the dish: recipes of one dish are no independent
            draws.

    Returns:
        None for fewer than two dishes.
    """
    import numpy as np

    clusters: dict[str, Counts] = {}
    for cluster, counts in documents:
        clusters[cluster] = clusters[cluster] + counts if cluster in clusters else counts
    totals = {
        cluster: np.array([counts.tp, counts.predicted, counts.gold], dtype=np.float64)
        for cluster, counts in clusters.items()
    }
    return cluster_bootstrap(totals, _f1_of_sums)


def _f1_of_sums(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    import numpy as np

    tp, predicted, gold = np.moveaxis(sums, -1, 0)
    total = predicted + gold
    values: NDArray[np.float64] = 2 * tp / np.where(total > 0, total, np.nan)
    return values
