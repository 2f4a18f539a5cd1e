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
    """Scores any text that a model wrote.

    Raises:
        NotAFormError: The gold is not a logical form.
    """
    answer, gold = normalise(answer), normalise(gold)
    return {EXACT: answer == gold, EQUIVALENT: answer == gold or equivalent(answer, gold)}


def row(doc: Mapping[str, Any], answer: str, gold: str) -> dict[str, str | float]:
    """The row of one answer: its scores, with the type and its kind on Gen."""
    kind = {"kind": kind_of(doc["type"])} if doc["split"].startswith("gen") else {}
    scores = {name: float(right) for name, right in score(answer, gold).items()}
    return {"type": doc["type"], **kind, **scores}


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> list[Row]:
    """Scores a document; of one that asks twice, both answers, the unmodified one first."""
    gold = doc["form"] if "form" in doc else doc["answer"]
    if isinstance(gold, str):
        return [row(doc, results[0], gold)]
    return [
        {"substitution": which, **row(doc, *one)}
        for which, *one in zip((WITHOUT, WITH), results, gold, strict=True)
    ]
