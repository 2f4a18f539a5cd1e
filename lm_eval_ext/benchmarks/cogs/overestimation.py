"""Overestimation: accuracy on Gen without substitution minus accuracy with it (section 1).

One model answers both versions of each example, so the interval of the difference is paired.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from lm_eval_ext.benchmarks.cogs.records import types_of
from lm_eval_ext.benchmarks.cogs.score import ALL, EXACT, results_by_scope, scopes, score
from lm_eval_ext.harness.metrics import HIGH, LOW, metric_entries, register_uncertainty
from lm_eval_ext.stats import ClusteredValue, Uncertainty, cluster_bootstrap

WITHOUT, WITH, DIFFERENCE = "without", "with", "difference"
"""Exact match without substitution, with it, and the first minus the second."""

BOOTSTRAP = "lm_eval_ext_cogs_bootstrap"
"""The interval's name in lm-eval's registry of aggregations."""


def interval(values: Iterable[ClusteredValue]) -> Uncertainty | None:
    """Standard error and interval of the mean by resampling clusters; None for fewer than two."""
    import numpy as np

    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for value in values:
        # Exact, and so independent of the order: differences of 0/1 scores are integers.
        sums[value.cluster][0] += value
        sums[value.cluster][1] += 1
    totals = {cluster: np.array(pair) for cluster, pair in sums.items()}
    return cluster_bootstrap(totals, lambda resampled: resampled[:, 0] / resampled[:, 1])


register_uncertainty(BOOTSTRAP, interval)


def _reported(corpus: str, split: str) -> tuple[str, ...]:
    """All examples and the two kinds; other tasks report single types."""
    types = types_of(corpus, split)
    return tuple(scope for scope in scopes(corpus, split) if scope not in types) or (ALL,)


def process_results(doc: dict[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """lm-eval's hook: scores both answers to a document, the unmodified one first."""
    without, with_ = (
        float(score(answer, gold)[EXACT]) for answer, gold in zip(results, doc["form"], strict=True)
    )
    scores = {WITHOUT: without, WITH: with_, DIFFERENCE: without - with_}
    names = _reported(doc["corpus"], doc["split"])
    found = results_by_scope(doc, scores, names)
    bounds = {
        f"{DIFFERENCE}/{scope}{end}": found[f"{DIFFERENCE}/{scope}"]
        for scope in names
        for end in (LOW, HIGH)
    }
    return {**found, **bounds}


def metric_list(
    cogs_corpus: str = "cogs", cogs_split: str = "gen", **_: Any
) -> list[dict[str, Any]]:
    """lm-eval's hook: the metrics, named as :func:`process_results` names them."""
    names = _reported(cogs_corpus, cogs_split)
    accuracies = metric_entries(
        f"{metric}/{scope}" for metric in (WITHOUT, WITH) for scope in names
    )
    differences = [f"{DIFFERENCE}/{scope}" for scope in names]
    bounds = [
        {"metric": name + end, "aggregation": BOOTSTRAP + end, "higher_is_better": False}
        for name in differences
        for end in (LOW, HIGH)
    ]
    return [*accuracies, *metric_entries(differences, higher_is_better=False), *bounds]
