"""Is an answer the logical form, to the letter or in meaning?

``exact_match`` compares whole logical forms (paper, section 3), after the whitespace
normalisation of :func:`~lm_eval_ext.benchmarks.cogs.forms.normalise`. ``equivalent`` is ours: it
also accepts another order of conjuncts and other numbers of variables.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from lm_eval_ext.benchmarks.cogs.forms import equivalent, normalise
from lm_eval_ext.benchmarks.cogs.records import LEXICAL, STRUCTURAL, kind_of, types_of
from lm_eval_ext.harness.metrics import STDERR, metric_entries
from lm_eval_ext.stats import ClusteredValue

EXACT, EQUIVALENT = "exact_match", "equivalent"
ALL = "all"


def score(answer: str, gold: str) -> dict[str, bool]:
    """Scores one answer; a text that is no logical form is wrong.

    Args:
        answer: What the model wrote.
        gold: The logical form.

    Raises:
        NotAFormError: If the gold is no logical form.
    """
    answer, gold = normalise(answer), normalise(gold)
    return {EXACT: answer == gold, EQUIVALENT: answer == gold or equivalent(answer, gold)}


@cache
def scopes(corpus: str, split: str) -> tuple[str, ...]:
    """The sets of examples that a figure is given for: all, the two kinds, each type."""
    types = types_of(corpus, split)
    if len(types) == 1:
        return (ALL,)
    return (ALL, *((LEXICAL, STRUCTURAL) if _has_kinds(split) else ()), *types)


def _has_kinds(split: str) -> bool:
    return split.startswith("gen")


@cache
def concerned(corpus: str, split: str, type_: str) -> dict[str, bool]:
    """By scope that examples of a type count in: whether standard errors are clustered by type.

    Where a scope has several types, they are the clusters; within one type the examples are.
    """
    several = len(types_of(corpus, split)) > 1
    kinds = {kind_of(type_): True} if _has_kinds(split) else {}
    return {ALL: several, **kinds, **({type_: False} if several else {})}


def results_by_scope(
    doc: dict[str, Any], scores: dict[str, float], names: Sequence[str]
) -> dict[str, ClusteredValue | None]:
    """Gives a document's scores to the scopes that it belongs to, and None to the others.

    Args:
        doc: With ``id``, ``type``, ``corpus`` and ``split``.
        scores: By metric.
        names: The scopes that are reported.
    """
    belongs = concerned(doc["corpus"], doc["split"], doc["type"])
    results: dict[str, ClusteredValue | None] = {}
    for metric, value in scores.items():
        by_cluster = {
            by_type: ClusteredValue(value, doc["type"] if by_type else doc["id"])
            for by_type in (True, False)
        }
        for scope in names:
            found = by_cluster[belongs[scope]] if scope in belongs else None
            results[f"{metric}/{scope}"] = found
            results[f"{metric}/{scope}{STDERR}"] = found
    return results


def process_results(doc: dict[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """lm-eval's hook: scores a document."""
    (answer,) = results
    scores = {metric: float(right) for metric, right in score(answer, doc["form"]).items()}
    return results_by_scope(doc, scores, scopes(doc["corpus"], doc["split"]))


def metric_list(
    cogs_corpus: str = "cogs", cogs_split: str = "gen", **_: Any
) -> list[dict[str, Any]]:
    """lm-eval's ``metric_list`` for a split: the names that :func:`process_results` gives."""
    names = scopes(cogs_corpus, cogs_split)
    return metric_entries(f"{metric}/{scope}" for metric in (EXACT, EQUIVALENT) for scope in names)
