"""Micro F1: the counts of components behind it, its error, and how samples give it again.

Micro F1 comes from counts summed over all recipes (paper, section 5.1). Counts are exact
fractions, so the order of the recipes does not matter. They are logged for each recipe as metrics
of their own: with them ``lm-eval-ext compare`` computes micro F1 for any set of recipes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.diner.glossary import KINDS
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.harness.metrics import (
    STDERR,
    document_results,
    entry,
    metric_entries,
    register_estimate,
    register_statistic,
)
from lm_eval_ext.results.samples import Sample, SampleStatistic, Totals
from lm_eval_ext.stats.intervals import UNIT, Estimate, jackknife

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MICRO = "micro_f1"
TP, PREDICTED, GOLD = "true_positives", "predicted", "gold"
"""Components per recipe."""


@dataclass(frozen=True)
class Counts:
    """Numbers of components, of one recipe or summed over several.

    Attributes:
        tp: True positives: gold components that the prediction has.
        predicted: Components of the prediction; a fraction where the number is estimated.
        gold: Components of the gold name.
    """

    tp: int
    predicted: Fraction
    gold: int

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.tp + other.tp, self.predicted + other.predicted, self.gold + other.gold)

    @property
    def exact_f1(self) -> Fraction:
        """2 TP / (predicted + gold), the harmonic mean of precision and recall; 0 for 0/0."""
        total = self.predicted + self.gold
        return Fraction(2 * self.tp) / total if total else Fraction(0)

    @property
    def f1(self) -> float:
        """F1 as a float, from 0 to 1."""
        return float(self.exact_f1)


def micro_f1(documents: Iterable[Counts]) -> float | None:
    """The paper's score: F1 of the counts summed over documents; None without a document."""
    found = list(documents)
    return reduce(add, found).f1 if found else None


def mean_f1(documents: Iterable[Counts]) -> float | None:
    """The mean of the documents' F1; None without a document."""
    scores = [one.exact_f1 for one in documents]
    return float(sum(scores, Fraction(0)) / len(scores)) if scores else None


def micro_f1_estimate(documents: Iterable[tuple[str, Counts]]) -> Estimate | None:
    """Micro F1 and its standard error, by leaving out each dish in turn.

    Args:
        documents: Each with its cluster, the dish: recipes of one dish are not independent.

    Returns:
        None for fewer than two dishes.
    """
    clusters: dict[str, Counts] = {}
    sizes: dict[str, int] = {}
    for dish, one in documents:
        clusters[dish] = clusters[dish] + one if dish in clusters else one
        sizes[dish] = sizes.get(dish, 0) + 1
    return jackknife(
        {dish: _sums(one.tp, one.predicted, one.gold) for dish, one in clusters.items()},
        f1_of_sums,
        sizes,
    )


def _sums(*counts: float | Fraction) -> "NDArray[np.float64]":
    import numpy as np

    return np.array([float(count) for count in counts])


def f1_of_sums(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Micro F1 from sums of shape (..., 3): TP, predicted, gold; NaN for 0/0."""
    import numpy as np

    tp, predicted, gold = np.moveaxis(sums, -1, 0)
    total = predicted + gold
    values: NDArray[np.float64] = 2 * tp / np.where(total > 0, total, np.nan)
    return values


class Counted(float):
    """The F1 of one answer, with the counts that it comes from and its dish.

    A float, so that lm-eval's logs and JSON take it as one.
    """

    counts: Counts
    cluster: str

    def __new__(cls, found: Counts, cluster: str) -> "Counted":
        """Takes the counts and, as cluster, the gold name."""
        self = super().__new__(cls, found.f1)
        self.counts, self.cluster = found, cluster
        return self

    def __reduce__(self) -> tuple[type["Counted"], tuple[Counts, str]]:
        """For pickling: ranks send their scores to each other."""
        return (Counted, (self.counts, self.cluster))


_AGGREGATION = "diner_micro_f1"


def micro_entries(names: Iterable[str]) -> list[dict[str, Any]]:
    """The ``metric_list`` of micro F1 under these names."""
    return [
        made
        for name in names
        for made in (
            entry(name, _AGGREGATION, higher_is_better=True, limits=UNIT),
            entry(name + STDERR, _AGGREGATION + STDERR, higher_is_better=False),
        )
    ]


def micro_results(found: Mapping[str, Counts | None], dish: str) -> dict[str, Any]:
    """A recipe's values for them."""
    return {
        name + ending: None if one is None else Counted(one, dish)
        for name, one in found.items()
        for ending in ("", STDERR)
    }


def count_entries(kinds: Iterable[str]) -> list[dict[str, Any]]:
    """The ``metric_list`` of the counts, in total and of each kind."""
    parts = ["", *(f":{kind}" for kind in kinds)]
    return metric_entries(
        (count + part for part in parts for count in (TP, PREDICTED, GOLD)), limits=(0.0, None)
    )


def count_results(total: Counts, by_kind: Mapping[str, Counts | None], dish: str) -> dict[str, Any]:
    """A recipe's counts; None for a kind that its name lacks."""
    found: dict[str, float | None] = {}
    for part, one in {"": total, **{f":{kind}": one for kind, one in by_kind.items()}}.items():
        values = (None, None, None) if one is None else (one.tp, float(one.predicted), one.gold)
        found |= dict(zip((TP + part, PREDICTED + part, GOLD + part), values, strict=True))
    return document_results(found, dish)


def _counts_behind(metric: str) -> tuple[str, ...]:
    """The logged counts of a micro F1; those of a category are the counts of its recipes."""
    kind = metric.partition(":")[2]
    part = f":{kind}" if kind in (*KINDS, *ASKED_KINDS) else ""
    return (TP + part, PREDICTED + part, GOLD + part)


def _logged_totals(samples: Sequence[Sample], metric: str, clusters: Sequence[str]) -> Totals:
    columns: dict[str, list[list[float]]] = {}
    for sample, dish in zip(samples, clusters, strict=True):
        own = columns.setdefault(dish, [[], [], []])
        for column, name in zip(own, _counts_behind(metric), strict=True):
            column.append(sample.scores[name] or 0.0)
    return {dish: _sums(*map(math.fsum, own)) for dish, own in columns.items()}


LOGGED_MICRO_F1 = SampleStatistic(_logged_totals, f1_of_sums, _counts_behind)
"""Micro F1 from logged samples; the card names it for ``lm-eval-ext compare``."""


def _not_empty(values: Iterable[Counted]) -> list[Counted]:
    """The values with any gold or predicted component; the others do not change the micro F1."""
    return [value for value in values if value.counts.gold or value.counts.predicted]


register_statistic(_AGGREGATION, lambda values: micro_f1(one.counts for one in _not_empty(values)))
register_estimate(
    _AGGREGATION,
    lambda values: micro_f1_estimate((one.cluster, one.counts) for one in _not_empty(values)),
)
