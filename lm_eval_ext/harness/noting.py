"""Intervals beside the metrics, for the results file.

lm-eval computes a task's metrics before it dumps the task's configuration. So the aggregations
note what they saw, and the configuration's metadata take it into the results file, where lm-eval
ignores it: ``configs[TASK].metadata.intervals["METRIC,FILTER"]``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any

from lm_eval_ext.harness.metrics import ESTIMATES, in_clusters
from lm_eval_ext.harness.names import RANGE
from lm_eval_ext.stats.intervals import NO_LIMITS, Estimate, Limits, interval

Aggregation = Callable[[Iterable[Any]], Any]
Noted = dict[str, list[dict[str, Any] | None]]
"""By metric, what was noted about it: once for each filter."""


def noting(
    aggregations: Mapping[str, Aggregation],
    entries: Sequence[Mapping[str, Any]],
    noted: Noted,
) -> dict[str, Aggregation]:
    """The same aggregations; those of ours with intervals also fill ``noted``."""
    kinds = {entry["metric"]: entry for entry in entries}

    def watched(metric: str, aggregation: Aggregation) -> Aggregation:
        entry = kinds.get(metric, {})
        estimate = ESTIMATES.get(entry.get("aggregation") or "")
        if estimate is None:
            return aggregation
        limits = limits_of(entry)

        @wraps(aggregation)
        def aggregate(values: Iterable[Any]) -> Any:
            given = list(values)
            known = [value for value in given if value is not None]
            noted.setdefault(metric, []).append(note(estimate(known), limits, known))
            return aggregation(given)

        return aggregate

    return {metric: watched(metric, function) for metric, function in aggregations.items()}


def limits_of(entry: Mapping[str, Any]) -> Limits:
    """The legal values of a metric, by its entry in the ``metric_list``."""
    low, high = entry.get(RANGE) or NO_LIMITS
    return low, high


def note(
    estimate: Estimate | None, limits: Limits, values: Sequence[Any] = ()
) -> dict[str, Any] | None:
    """What the results file says about an estimate, or about values that allow none.

    Returns:
        None for values without clusters, which a user's own function may give.
    """
    level, clustered = in_clusters(list(values))
    if estimate is not None:
        counts = (estimate.documents, estimate.clusters)
    elif all(hasattr(value, "cluster") for value in clustered):
        counts = (len(clustered), len({value.cluster for value in clustered}))
    else:
        return None
    noted: dict[str, Any] = dict(zip(("documents", "clusters"), counts, strict=True))
    if level:
        noted["level"] = level
    found = interval(estimate, limits)
    if found is not None:
        noted |= {"low": found.low, "high": found.high, "method": found.method}
    return noted


def by_filter(noted: Noted, filters: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What was noted, by ``metric,filter``; lm-eval goes through the filters in their order."""
    return {
        f"{metric},{name}": found
        for metric, of_metric in noted.items()
        for name, found in zip(filters, of_metric[-len(filters) :], strict=False)
        if found is not None
    }
