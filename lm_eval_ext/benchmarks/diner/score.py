"""DiNeR's scores: a predicted dish name compared with the gold name (paper, section 5.1).

Names are compared as sets of components; :mod:`.counts` counts what they have in common.
``f1`` is the recipe's own F1, and ``f1_authors`` the same with 0 for predictions that do not parse,
as the authors' code computes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

from lm_eval_ext.benchmarks.diner.component_answers import components_in
from lm_eval_ext.benchmarks.diner.counts import Counts
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.benchmarks.diner.records import CATEGORIES
from lm_eval_ext.harness.metrics import Row

ALL = "all"
"""Instead of a kind: the components of all kinds together."""


# Comparing two names.


def counts(gold: str, prediction: str, glossary: Glossary) -> Counts:
    """Counts the components that two names have in common.

    As in the paper, a name is a set: a component that occurs twice counts once. Synonyms are the
    same component.

    For a prediction that does not parse, the paper estimates. A gold component is right if the
    prediction contains any of its words. The number of predicted components is the prediction's
    length divided by the mean length of the gold components, as the gold name spells them; it is
    raised to the number of right components where it is smaller, since precision would exceed 1.
    An empty prediction has no components.

    Raises:
        ValueError: The gold name is empty or does not parse.
    """
    return _compare(gold, prediction, glossary, KINDS)


def counts_by_kind(gold: str, prediction: str, glossary: Glossary) -> dict[str, Counts | None]:
    """The same for each kind of component: food, action and flavour.

    If the prediction does not parse, its estimated components are divided among the kinds as the
    gold components are; the paper does not define this case.

    Returns:
        By kind; None for a kind that the gold name lacks, which "will be ignored" (paper,
        figure 3).

    Raises:
        ValueError: The gold name is empty or does not parse.
    """
    kinds = {component.kind for component in _gold_lengths(gold, glossary)}
    return {
        kind: _compare(gold, prediction, glossary, (kind,)) if kind in kinds else None
        for kind in KINDS
    }


def set_counts(gold: Iterable[Component], predicted: Iterable[Component]) -> Counts:
    """Counts where the components of both sides are known."""
    right, found = set(gold), set(predicted)
    return Counts(len(right & found), Fraction(len(found)), len(right))


def _compare(gold: str, prediction: str, glossary: Glossary, kinds: tuple[str, ...]) -> Counts:
    lengths = _gold_lengths(gold, glossary)
    wanted = {component for component in lengths if component.kind in kinds}
    parsed = glossary.parse(prediction)
    if parsed is not None:
        return set_counts(wanted, (found for found in parsed if found.kind in kinds))
    tp = sum(any(word in prediction for word in glossary.words(one)) for one in wanted)
    estimate = Fraction(len(wanted) * len(prediction), sum(lengths.values()))
    return Counts(tp, max(estimate, Fraction(tp)), len(wanted))


def _gold_lengths(gold: str, glossary: Glossary) -> dict[Component, int]:
    """The gold components, each with the length of the first word that names it."""
    words = glossary.words_in(gold)
    if not words:
        raise ValueError(
            f"the gold name {gold!r} does not parse and cannot be scored; leave its recipe out"
        )
    lengths: dict[Component, int] = {}
    for word in words:
        component = glossary.component(word)
        if component is not None:
            lengths.setdefault(component, len(word))
    return lengths


# Scoring one document.


def name_metrics(categories: Sequence[str]) -> list[str]:
    """The metrics of tasks that ask for the name, with those of the documents' categories."""
    parts = [one for one in categories if one in CATEGORIES and len(categories) > 1]
    return [
        "micro_f1",
        *(f"micro_f1/{part}" for part in sorted([*parts, *KINDS])),
        *(f"recipe_{what}" for what in ("exact_match", "mean_f1", "no_answer", "unparsed")),
    ]


def name(gold: str, prediction: str, glossary: Glossary) -> list[Row]:
    """Scores a predicted name, which may be empty; kinds that the gold name lacks have no row."""
    found = counts(gold, prediction, glossary)
    parsed = glossary.parse(prediction) is not None
    of_all: Row = {
        "kind": ALL,
        **found.row(),
        "f1": found.f1,
        "f1_authors": found.f1 if parsed else 0.0,
        # Synonyms are the same component, but not the same name.
        "exact_match": float(gold == prediction),
        "unparsed": float(not parsed),
        "no_answer": float(not prediction),
    }
    kinds = counts_by_kind(gold, prediction, glossary)
    of_kinds: list[Row] = [
        {"kind": kind, **one.row()} for kind, one in kinds.items() if one is not None
    ]
    return [of_all, *of_kinds]


def component_metrics() -> list[str]:
    """The metrics of the component questions."""
    return [
        "micro_f1",
        *(f"micro_f1/{kind}" for kind in sorted(ASKED_KINDS)),
        *(f"recipe_{what}" for what in ("exact_match", "mean_f1")),
    ]


def components(gold: str, answers: Sequence[str], glossary: Glossary) -> list[Row]:
    """Scores the answers to the component questions.

    The components in an answer are compared with all gold components of the kind asked for. If
    the gold name has none of that kind, an answer without components is right: its F1 is 1, and
    it changes no micro F1. Answers are in the order of ``ASKED_KINDS``; for ``f1_authors`` the
    question that a component is the answer to does not matter.
    """
    parsed = glossary.parse(gold) or ()
    found: dict[str, Counts] = {}
    scores: dict[str, dict[str, float]] = {}
    named = dict(zip(ASKED_KINDS, (components_in(one, glossary) for one in answers), strict=True))
    for kind, given in named.items():
        wanted = {component for component in parsed if component.kind == kind}
        found[kind] = set_counts(wanted, given)
        scores[kind] = {
            "f1": found[kind].f1 if wanted or given else 1.0,
            "exact_match": float(wanted == given),
        }
    of_all: Row = {
        "kind": ALL,
        **reduce(add, found.values()).row(),
        "f1": sum(one["f1"] for one in scores.values()) / len(scores),
        "f1_authors": set_counts(parsed, set().union(*named.values())).f1,
        "exact_match": min(one["exact_match"] for one in scores.values()),
    }
    of_kinds: list[Row] = [{"kind": kind, **found[kind].row(), **scores[kind]} for kind in found]
    return [of_all, *of_kinds]


def by_glossary(
    doc: Mapping[str, Any], results: Sequence[str], *, glossary: Glossary, asks_name: bool
) -> list[Row]:
    """Scores a document: ``process_results`` in the YAML.

    Args:
        doc: With ``answer``, and ``category`` where the name is asked for.
        results: The name, or the answers to the component questions.
        glossary: From the task's class, as ``asks_name``.
        asks_name: Whether the name is asked for.
    """
    if not asks_name:
        return components(doc["answer"], results, glossary)
    (predicted,) = results
    rows = name(doc["answer"], predicted, glossary)
    return [{"category": doc["category"], **row} for row in rows]
