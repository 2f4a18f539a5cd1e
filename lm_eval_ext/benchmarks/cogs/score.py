"""Exact match and equivalence of logical forms, over all examples, by kind and by type.

``exact_match`` compares whole logical forms (paper, section 3), after
:func:`~lm_eval_ext.benchmarks.cogs.forms.normalise` of whitespace. ``equivalent`` is ours: it also
accepts another order of conjuncts and other variable numbers.
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
    """Scores any text that a model wrote.

    Raises:
        NotAFormError: The gold is not a logical form.
    """
    answer, gold = normalise(answer), normalise(gold)
    return {EXACT: answer == gold, EQUIVALENT: answer == gold or equivalent(answer, gold)}


@cache
def scopes(corpus: str, split: str) -> tuple[str, ...]:
    """The sets of examples that have metrics: all, each kind, each type."""
    types = types_of(corpus, split)
    if len(types) == 1:
        return (ALL,)
    return (ALL, *((LEXICAL, STRUCTURAL) if split.startswith("gen") else ()), *types)


@cache
def concerned(corpus: str, split: str, type_: str) -> dict[str, bool]:
    """The scopes that examples of a type belong to, and whether their errors cluster by type.

    A scope of several types is clustered by type; within a single type, examples are independent.
    """
    several = len(types_of(corpus, split)) > 1
    kinds = {kind_of(type_): True} if split.startswith("gen") else {}
    return {ALL: several, **kinds, **({type_: False} if several else {})}


def results_by_scope(
    doc: dict[str, Any], scores: dict[str, float], names: Sequence[str]
) -> dict[str, ClusteredValue | None]:
    """A document's scores in each of the scopes ``names``; None for scopes of other types."""
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
    """lm-eval's hook: the metrics of a split, named as :func:`process_results` names them."""
    names = scopes(cogs_corpus, cogs_split)
    return metric_entries(f"{metric}/{scope}" for metric in (EXACT, EQUIVALENT) for scope in names)
