"""Metrics in lm-eval's format, with clustered standard errors.

lm-eval computes standard errors only for aggregations of its own, and takes documents for
independent. A metric called ``NAME_stderr``, listed after ``NAME``, overwrites lm-eval's value in
that column (docs/statistics.md).

Averages come from :func:`metric_entries` and :func:`document_results`. Metrics that aren't
averages are registered with :func:`register_statistic` and :func:`register_uncertainty`. All have
the same value to the last digit in whatever order the documents arrive, and a name in lm-eval's
registry: results files would show the source code of a function.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from lm_eval.api.registry import register_aggregation

from lm_eval_ext.harness.names import HIGH, LOW, NONE, STDERR
from lm_eval_ext.stats import Clustered, ClusteredValue, Uncertainty, clustered_standard_error

__all__ = ["HIGH", "LOW", "NONE", "STDERR", "document_results", "metric_entries"]

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
    error = clustered_standard_error(value for value in values if value is not None)
    return NONE if error is None else error


def metric_entries(names: Iterable[str], *, higher_is_better: bool = True) -> list[dict[str, Any]]:
    """Returns the ``metric_list`` for these metrics and their standard errors."""
    entries: list[dict[str, Any]] = []
    for name in names:
        entries += [
            {"metric": name, "aggregation": MEAN, "higher_is_better": higher_is_better},
            {
                "metric": name + STDERR,
                "aggregation": CLUSTERED_STDERR,
                "higher_is_better": False,
            },
        ]
    return entries


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


def register_uncertainty(name: str, uncertainty: Callable[[Values], Uncertainty | None]) -> None:
    """Registers the standard error and the bounds of the interval of a statistic.

    lm-eval asks for the three one after the other; they are computed once.

    Args:
        name: The statistic's; the three names get the suffixes of :mod:`.names`.
        uncertainty: Computes all three; None where they are undefined.
    """
    remembered = once(uncertainty)

    def register(ending: str, part: Callable[[Uncertainty], float]) -> None:
        def statistic(values: Values) -> float | None:
            found = remembered(values)
            return None if found is None else part(found)

        register_statistic(name + ending, statistic)

    register(STDERR, lambda found: found.stderr)
    register(LOW, lambda found: found.low)
    register(HIGH, lambda found: found.high)


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
