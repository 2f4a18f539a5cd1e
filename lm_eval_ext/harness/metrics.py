"""Metrics in lm-eval's format, with clustered standard errors and intervals.

lm-eval computes standard errors only for aggregations of its own, and takes documents for
independent. A metric called ``NAME_stderr``, listed after ``NAME``, overwrites lm-eval's value in
that column (docs/statistics.md). The column holds a number; the interval goes into the results
file with the task's metadata (:mod:`.noting`).

Averages come from :func:`metric_entries` and :func:`document_results`. Metrics that aren't
averages are registered with :func:`register_statistic` and :func:`register_estimate`. All have
the same value to the last digit in whatever order the documents arrive, and a name in lm-eval's
registry: results files would show the source code of a function.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from lm_eval.api.registry import register_aggregation

from lm_eval_ext.harness.names import NONE, RANGE, STDERR
from lm_eval_ext.stats import Clustered, ClusteredValue, Estimate, clustered_standard_error
from lm_eval_ext.stats.intervals import UNIT, Limits, level_of, mean_estimate

__all__ = ["NONE", "STDERR", "document_results", "metric_entries"]

MEAN = "lm_eval_ext_mean"
CLUSTERED_STDERR = "lm_eval_ext_clustered_stderr"
"""Names in lm-eval's registry of aggregations."""


@register_aggregation(MEAN)  # type: ignore[untyped-decorator]
def _aggregate_mean(values: Iterable[float | None]) -> float | str:
    """The mean, by exact summation: the last digit does not depend on the order of ranks.

    None is the value of a document that the metric does not concern. Every document must give
    every metric: lm-eval's ranks exchange values metric by metric.
    """
    scores = [value for value in values if value is not None]
    return math.fsum(scores) / len(scores) if scores else NONE


@register_aggregation(CLUSTERED_STDERR)  # type: ignore[untyped-decorator]
def _aggregate_stderr(values: Iterable[Clustered | None]) -> float | str:
    error = clustered_standard_error(
        in_clusters([value for value in values if value is not None])[1]
    )
    return NONE if error is None else error


def metric_entries(
    names: Iterable[str], *, higher_is_better: bool = True, limits: Limits = UNIT
) -> list[dict[str, Any]]:
    """Returns the ``metric_list`` for these means and their standard errors.

    ``limits`` are the least and the largest legal value; shares and F1 need none given.
    """
    entries: list[dict[str, Any]] = []
    for name in names:
        entries += [
            entry(name, MEAN, higher_is_better=higher_is_better, limits=limits),
            entry(name + STDERR, CLUSTERED_STDERR, higher_is_better=False),
        ]
    return entries


def entry(
    name: str, aggregation: str, *, higher_is_better: bool, limits: Limits | None = None
) -> dict[str, Any]:
    """One entry of a ``metric_list``."""
    made = {"metric": name, "aggregation": aggregation, "higher_is_better": higher_is_better}
    return made if limits is None else {**made, RANGE: list(limits)}


def document_results(
    scores: Mapping[str, float | None], cluster: str
) -> dict[str, ClusteredValue | None]:
    """Returns what ``process_results`` hands to lm-eval for one document.

    Args:
        scores: By metric; the same keys for every document. None where the metric does not apply
            to the document, which then does not count in it.
        cluster: The cluster of the document.
    """
    results: dict[str, ClusteredValue | None] = {}
    for name, score in scores.items():
        value = None if score is None else ClusteredValue(score, cluster)
        results[name] = value
        results[name + STDERR] = value
    return results


Values = list[Any]
"""Of the documents, without those that are None."""
Result = TypeVar("Result")


def register_statistic(name: str, statistic: Callable[[Values], float | None]) -> None:
    """Registers an aggregation that ignores documents without a value.

    Args:
        name: In the registry.
        statistic: Computes it; None where it is undefined.
    """

    def aggregate(values: Iterable[Any]) -> float | str:
        found = statistic([value for value in values if value is not None])
        return NONE if found is None else found

    register_aggregation(name)(aggregate)


def in_clusters(values: Values) -> tuple[int, Values]:
    """The level of clusters to use, and the values in them.

    A value may name finer clusters (``finer``) for the case that all come from one cluster.
    """
    names = [(one.cluster, *one.finer) for one in values if getattr(one, "finer", ())]
    if not names or len(names) < len(values):
        return 0, values
    level = level_of(list(zip(*names, strict=True)))
    if not level:
        return 0, values
    return level, [one.within(own[level]) for one, own in zip(values, names, strict=True)]


def _mean_estimate(values: Values) -> Estimate | None:
    """None for scores without clusters, which a user's own function may give."""
    clustered = all(hasattr(one, "cluster") for one in values)
    return mean_estimate(in_clusters(values)[1]) if clustered else None


ESTIMATES: dict[str, Callable[[Values], Estimate | None]] = {MEAN: _mean_estimate}
"""By aggregation: what the interval is made from."""


def register_estimate(name: str, estimate: Callable[[Values], Estimate | None]) -> None:
    """Registers the standard error of a statistic, and what its interval is made from.

    Args:
        name: The statistic's; the standard error's has the suffix of :mod:`.names`.
        estimate: Computes it; None where it is undefined.
    """
    ESTIMATES[name] = remembered = once(lambda values: estimate(in_clusters(values)[1]))

    def stderr(values: Values) -> float | None:
        found = remembered(values)
        return None if found is None else found.stderr

    register_statistic(name + STDERR, stderr)


def once(function: Callable[[Values], Result]) -> Callable[[Values], Result]:
    """Remembers the result for the last list of values; only the very same objects match it."""
    last: list[tuple[Values, Result]] = []

    def remembered(values: Values) -> Result:
        if not last or not _same(last[0][0], values):
            last[:] = [(values, function(values))]
        return last[0][1]

    return remembered


def _same(one: Values, other: Values) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
