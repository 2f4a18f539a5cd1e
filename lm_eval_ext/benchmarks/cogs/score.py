"""Exact match and equivalence of logical forms.

``exact_match`` compares whole logical forms (paper, section 3), after
:func:`~lm_eval_ext.logical_forms.normalise` of whitespace. ``equivalent`` is ours: it also
accepts another order of conjuncts and other variable numbers.

Overestimation is accuracy on Gen without substitution minus accuracy with it (section 1). One model
answers both versions of each example, so the interval of the difference is paired.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.cogs.records import kind_of
from lm_eval_ext.logical_forms import equivalent, normalise
from lm_eval_ext.stats.table import Row

EXACT, EQUIVALENT = "exact_match", "equivalent"

WITHOUT, WITH = "without", "with"
"""Values of the facet ``substitution``."""


def score(answer: str, gold: str) -> dict[str, bool]:
    """Score any text that a model wrote.

    Raises:
        NotAFormError: The gold is not a logical form.
    """
    answer = normalise(answer)
    gold = normalise(gold)
    is_exact = answer == gold
    return {EXACT: is_exact, EQUIVALENT: is_exact or equivalent(answer, gold)}


def row(doc: Mapping[str, Any], answer: str, gold: str) -> dict[str, str | float]:
    """Return the row of one answer: its scores, with the type and its kind on Gen."""
    columns: dict[str, str | float] = {"type": doc["type"]}
    if doc["split"].startswith("gen"):
        columns["kind"] = kind_of(doc["type"])
    for metric, is_right in score(answer, gold).items():
        columns[metric] = float(is_right)
    return columns


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> list[Row]:
    """Score a document; both answers of a document that asks twice, the unmodified one first."""
    gold = doc["form"] if "form" in doc else doc["answer"]
    if isinstance(gold, str):
        return [row(doc, results[0], gold)]
    unmodified, substituted = results
    unmodified_gold, substituted_gold = gold
    return [
        {"substitution": WITHOUT, **row(doc, unmodified, unmodified_gold)},
        {"substitution": WITH, **row(doc, substituted, substituted_gold)},
    ]
