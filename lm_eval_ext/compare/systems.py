"""Several systems on one metric and the same documents: their values, tests and differences.

The tests here stand behind both ``lm-eval-ext compare`` and the leaderboard's ranks.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lm_eval_ext.results.samples import Sample, SampleStatistic, Totals
from lm_eval_ext.stats import ClusteredValue
from lm_eval_ext.stats.intervals import (
    NO_LIMITS,
    Interval,
    Limits,
    interval,
    jackknife,
    mean_estimate,
)
from lm_eval_ext.stats.paired import (
    Difference,
    difference_limits,
    holm,
    paired_difference,
    paired_statistic,
)
from lm_eval_ext.stats.randomisation import paired_tests, swap_test


@dataclass(frozen=True)
class Systems:
    """The samples of every system on the same documents, to compute one metric from.

    Attributes:
        key: The metric's, in the samples.
        samples: By system.
        clusters: Of the documents.
        statistic: How to compute the metric; None for the average of documents' scores.
        limits: Of legal values of the metric.
        seed: Of random exchanges.
    """

    key: str
    samples: Mapping[str, Sequence[Sample]]
    clusters: Sequence[str]
    statistic: SampleStatistic | None = None
    limits: Limits = NO_LIMITS
    seed: int = 0

    def value(self, name: str) -> float | None:
        """A system's value; None where it is undefined."""
        if self.statistic is None:
            scores = self.scores(name)
            return math.fsum(scores) / len(scores)
        totals = self._totals(name, self.statistic)
        whole: Any = sum(totals.values())
        (value,) = self.statistic.statistic(whole[None])
        return None if math.isnan(value) else float(value)

    def interval(self, name: str, alpha: float) -> Interval | None:
        """The interval of a system's value, as in a results file of these documents."""
        if self.statistic is None:
            scores = zip(self.scores(name), self.clusters, strict=True)
            found = mean_estimate(ClusteredValue(score, cluster) for score, cluster in scores)
        else:
            sizes = Counter(self.clusters)
            totals = self._totals(name, self.statistic)
            found = jackknife(totals, self.statistic.statistic, sizes)
        return interval(found, self.limits, alpha=alpha)

    def pairs(self) -> list[tuple[str, str]]:
        """Every two systems."""
        return list(combinations(self.samples, 2))

    def tests(self) -> list[float | None]:
        """The p-value of every pair; None for fewer than two clusters, or an undefined value."""
        if len(set(self.clusters)) < 2:  # noqa: PLR2004
            return [None for _ in self.pairs()]
        if self.statistic is None:
            scores = [self.scores(name) for name in self.samples]
            return [p for p, _ in paired_tests(scores, self.clusters, seed=self.seed)]
        function = self.statistic.statistic
        totals = {name: self._totals(name, self.statistic) for name in self.samples}
        return [
            swap_test(totals[one], totals[two], function, seed=self.seed)
            for one, two in self.pairs()
        ]

    def difference(self, first: str, second: str, alpha: float) -> Difference:
        """The first system's value minus the second's, its interval and the same test."""
        limits = difference_limits(self.limits)
        if self.statistic is None:
            one, two = (self.scores(name) for name in (first, second))
            return paired_difference(
                one, two, self.clusters, limits=limits, alpha=alpha, seed=self.seed
            )
        return paired_statistic(
            self._totals(first, self.statistic),
            self._totals(second, self.statistic),
            self.statistic.statistic,
            self.clusters,
            limits=limits,
            alpha=alpha,
            seed=self.seed,
        )

    def scores(self, name: str) -> list[float]:
        """A system's scores of the documents, for a metric that is their mean."""
        found = (sample.scores[self.key] for sample in self.samples[name])
        return [score for score in found if score is not None]

    def _totals(self, name: str, statistic: SampleStatistic) -> Totals:
        return statistic.totals(self.samples[name], self.key, self.clusters)


def lacking(statistic: SampleStatistic | None, key: str, samples: Sequence[Sample]) -> list[str]:
    """The metrics that a statistic needs and the samples lack: an older version logged them."""
    needed = statistic.needs(key) if statistic else ()
    return [name for name in needed if any(name not in sample.scores for sample in samples)]


def adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values adjusted by Holm's method for all of them; None stays None."""
    found = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else next(found) for p in p_values]
