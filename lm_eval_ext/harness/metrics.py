"""Metrics in lm-eval's shape: a mean over documents with a clustered standard error.

Both are the same to the last digit in whatever order the documents arrive.

lm-eval computes standard errors only for aggregations of its own and takes documents for
independent. It does leave a way: a metric called ``NAME_stderr``, listed after ``NAME``,
overwrites what it put into that column (fact sheet, "harness").

Figures that are no means, with their errors, under names in lm-eval's registry.

Results files show these names, where a function's would be source code.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from lm_eval.api.registry import register_aggregation

from lm_eval_ext.harness.names import HIGH, LOW, NONE, STDERR
from lm_eval_ext.stats import Clustered, ClusteredValue, Spread, clustered_standard_error

__all__ = ["HIGH", "LOW", "NONE", "STDERR", "document_results", "metric_entries"]

MEAN = "lm_eval_ext_mean"
CLUSTERED_STDERR = "lm_eval_ext_clustered_stderr"
"""Names in lm-eval's registry of aggregations: results files show them, not source code."""


@register_aggregation(MEAN)  # type: ignore[untyped-decorator]
def _aggregate_mean(values: Iterable[float | None]) -> float | str:
    """The mean, by exact summation: the last digit does not depend on the order of ranks.

    None stands for a document that the metric does not concern: every document must give every
    metric, or lm-eval's ranks miss each other's.
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


def document_results(scores: Mapping[str, float], cluster: str) -> dict[str, ClusteredValue]:
    """Returns what ``process_results`` hands to lm-eval for one document.

    Args:
        scores: By metric; the same keys for every document.
        cluster: The cluster of the document.
    """
    results: dict[str, ClusteredValue] = {}
    for name, score in scores.items():
        value = ClusteredValue(score, cluster)
        results[name] = value
        results[name + STDERR] = value
    return results


Values = list[Any]
Result = TypeVar("Result")


def register_figure(name: str, figure: Callable[[Values], float | None]) -> None:
    """Registers an aggregation.

    Args:
        name: In the registry.
        figure: Gets the documents' values without those that are None, and returns None where
            the figure does not exist.
    """

    def aggregate(values: Iterable[Any]) -> float | str:
        found = figure([value for value in values if value is not None])
        return NONE if found is None else found

    register_aggregation(name)(aggregate)


def register_spread(name: str, spread: Callable[[Values], Spread | None]) -> None:
    """Registers a figure's standard error and the bounds of its interval.

    lm-eval asks for the three one after the other; the spread is computed once.

    Args:
        name: The figure's; the three are called as it is, with the endings of their kind.
        spread: As the figure of :func:`register_figure`.
    """
    remembered = once(spread)

    def register(ending: str, part: Callable[[Spread], float]) -> None:
        def figure(values: Values) -> float | None:
            found = remembered(values)
            return None if found is None else part(found)

        register_figure(name + ending, figure)

    register(STDERR, lambda found: found.stderr)
    register(LOW, lambda found: found.low)
    register(HIGH, lambda found: found.high)


def once(function: Callable[[Values], Result]) -> Callable[[Values], Result]:
    """Remembers the last result, and the values it is of, for as long as the very same come."""
    last: list[tuple[Values, Result]] = []

    def remembered(values: Values) -> Result:
        if not last or not _same(last[0][0], values):
            last[:] = [(values, function(values))]
        return last[0][1]

    return remembered


def _same(one: Values, other: Values) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
