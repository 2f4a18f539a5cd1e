"""DiNeR's metrics: a predicted dish name compared with the gold name (paper, section 5.1).

Names are compared as sets of components; :mod:`.counts` makes micro F1 of what they have in common.
``mean_f1`` is the mean of the recipes' own F1, and ``mean_f1_authors`` the same with 0 for
predictions that do not parse, as the authors' code computes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

from lm_eval_ext.benchmarks.diner.component_answers import components_in
from lm_eval_ext.benchmarks.diner.counts import (
    MICRO,
    Counts,
    count_entries,
    count_results,
    micro_entries,
    micro_results,
)
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.harness.metrics import STDERR, document_results, metric_entries

MEAN, MEAN_AUTHORS, EXACT = "mean_f1", "mean_f1_authors", "exact_match"
UNPARSED, NO_ANSWER = "unparsed", "no_answer"
"""Shares of answers: the name does not parse; there is no name."""


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


def name_metrics(categories: Sequence[str]) -> list[dict[str, Any]]:
    """lm-eval's ``metric_list`` for tasks that ask for the name, in the order of :func:`name`.

    Args:
        categories: Generalization categories of the documents; each has metrics of its own.
    """
    parts = [MICRO, *(f"{MICRO}:{part}" for part in (*KINDS, *categories))]
    means = [MEAN, MEAN_AUTHORS, EXACT, *(f"{EXACT}:{part}" for part in categories)]
    return [
        *micro_entries(parts),
        *metric_entries(means),
        *metric_entries([UNPARSED, NO_ANSWER], higher_is_better=False),
        *count_entries(KINDS),
    ]


def name(
    gold: str, category: str, prediction: str, glossary: Glossary, categories: Sequence[str]
) -> dict[str, Any]:
    """Scores a predicted name, which may be empty.

    Metrics of other categories and of kinds that the gold name lacks are None.
    """
    found = counts(gold, prediction, glossary)
    by_category = {one: found if one == category else None for one in categories}
    by_kind = counts_by_kind(gold, prediction, glossary)
    micro = {
        MICRO: found,
        **{f"{MICRO}:{part}": one for part, one in {**by_kind, **by_category}.items()},
    }
    # Synonyms are the same component, but not the same name.
    exact = float(gold == prediction)
    parsed = glossary.parse(prediction) is not None
    means = {
        MEAN: found.f1,
        MEAN_AUTHORS: found.f1 if parsed else 0.0,
        EXACT: exact,
        UNPARSED: float(not parsed),
        NO_ANSWER: float(not prediction),
    }
    parts = {f"{EXACT}:{one}": exact for one in categories if one == category}
    other = [f"{EXACT}:{one}" for one in categories if one != category]
    scored: dict[str, Any] = {
        **micro_results(micro, gold),
        **document_results({**means, **parts}, gold),
        **{metric + ending: None for metric in other for ending in ("", STDERR)},
        **count_results(found, by_kind, gold),
    }
    return {entry["metric"]: scored[entry["metric"]] for entry in name_metrics(categories)}


def component_metrics() -> list[dict[str, Any]]:
    """lm-eval's ``metric_list`` for the component questions, in the order of :func:`components`."""
    parts = ["", *(f":{kind}" for kind in ASKED_KINDS)]
    return [
        *micro_entries(MICRO + part for part in parts),
        *metric_entries([MEAN_AUTHORS]),
        *metric_entries(metric + part for metric in (MEAN, EXACT) for part in parts),
        *count_entries(ASKED_KINDS),
    ]


def components(gold: str, answers: Sequence[str], glossary: Glossary) -> dict[str, Any]:
    """Scores the answers to the component questions.

    The components in an answer are compared with all gold components of the kind asked for. If
    the gold name has none of that kind, an answer without components is right: its F1 is 1, and
    it changes no micro F1. Answers are in the order of ``ASKED_KINDS``; for ``mean_f1_authors`` the
    question that a component is the answer to does not matter.
    """
    parsed = glossary.parse(gold) or ()
    found: dict[str, Counts] = {}
    means: dict[str, float] = {}
    named = dict(zip(ASKED_KINDS, (components_in(one, glossary) for one in answers), strict=True))
    for kind, given in named.items():
        wanted = {component for component in parsed if component.kind == kind}
        found[kind] = set_counts(wanted, given)
        means[f"{MEAN}:{kind}"] = found[kind].f1 if wanted or given else 1.0
        means[f"{EXACT}:{kind}"] = float(wanted == given)
    total = reduce(add, found.values())
    means[MEAN] = sum(means[f"{MEAN}:{kind}"] for kind in ASKED_KINDS) / len(ASKED_KINDS)
    means[EXACT] = min(means[f"{EXACT}:{kind}"] for kind in ASKED_KINDS)
    means[MEAN_AUTHORS] = set_counts(parsed, set().union(*named.values())).f1
    micro = {MICRO: total, **{f"{MICRO}:{kind}": one for kind, one in found.items()}}
    scored = {
        **micro_results(micro, gold),
        **document_results(means, gold),
        **count_results(total, found, gold),
    }
    return {entry["metric"]: scored[entry["metric"]] for entry in component_metrics()}


def by_glossary(
    doc: Mapping[str, Any],
    results: Sequence[str],
    *,
    glossary: Glossary,
    categories: Sequence[str] | None,
) -> dict[str, Any]:
    """Scores a document: ``process_results`` in the YAML.

    Args:
        doc: With ``answer``, and ``category`` where the name is asked for.
        results: The name, or the answers to the component questions.
        glossary: From the task's class, as ``categories``.
        categories: As for :func:`name_metrics`; None for the component questions.
    """
    if categories is None:
        return components(doc["answer"], results, glossary)
    (predicted,) = results
    return name(doc["answer"], doc["category"], predicted, glossary, categories)
