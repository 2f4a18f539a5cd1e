"""Overestimation: accuracy on Gen without substitution minus accuracy with it (section 1).

One model answers both versions of each example, so the interval of the difference is paired.
"""

from collections.abc import Sequence
from typing import Any

from lm_eval_ext.benchmarks.cogs.records import types_of
from lm_eval_ext.benchmarks.cogs.score import ALL, EXACT, results_by_scope, scopes, score
from lm_eval_ext.harness.metrics import metric_entries
from lm_eval_ext.stats import intervals

WITHOUT, WITH, DIFFERENCE = "without", "with", "difference"
"""Exact match without substitution, with it, and the first minus the second."""


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
    return dict(results_by_scope(doc, scores, names))


def metric_list(
    cogs_corpus: str = "cogs", cogs_split: str = "gen", **_: Any
) -> list[dict[str, Any]]:
    """lm-eval's hook: the metrics, named as :func:`process_results` names them."""
    names = _reported(cogs_corpus, cogs_split)
    accuracies = metric_entries(
        f"{metric}/{scope}" for metric in (WITHOUT, WITH) for scope in names
    )
    differences = [f"{DIFFERENCE}/{scope}" for scope in names]
    return [
        *accuracies,
        *metric_entries(differences, higher_is_better=False, limits=intervals.DIFFERENCE),
    ]
