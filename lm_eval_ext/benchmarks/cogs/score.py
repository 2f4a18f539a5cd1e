"""Exact match and equivalence of logical forms.

``exact_match`` compares whole logical forms (paper, section 3), after
:func:`~lm_eval_ext.logical_forms.normalise` of whitespace. ``equivalent`` is ours: it also
accepts another order of conjuncts and other variable numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.cogs.records import kind_of
from lm_eval_ext.harness.metrics import Row
from lm_eval_ext.logical_forms import equivalent, normalise

EXACT, EQUIVALENT = "exact_match", "equivalent"


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


def process_results(doc: dict[str, Any], results: Sequence[str]) -> list[Row]:
    """Scores a document."""
    (answer,) = results
    return [row(doc, answer, doc["form"])]
