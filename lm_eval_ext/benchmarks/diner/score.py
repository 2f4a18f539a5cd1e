"""F1 from counts of components: exact, and the same in whatever order documents arrive.

A predicted name compared with the gold name, component by component (paper, section 5.1).

From answers to metrics.

``micro_f1`` is the paper's figure, ``mean_f1`` what the authors' code computes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.diner.extract import components_in
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.harness.metrics import (
    HIGH,
    LOW,
    STDERR,
    document_results,
    metric_entries,
    register_figure,
    register_spread,
)
from lm_eval_ext.stats import Spread, cluster_bootstrap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Counts:
    """Components of one document, or of several.

    Attributes:
        tp: Gold components that the prediction has.
        predicted: Components of the prediction; a fraction where they are estimated.
        gold: Components of the gold name.
    """

    tp: int
    predicted: Fraction
    gold: int

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.tp + other.tp, self.predicted + other.predicted, self.gold + other.gold)

    @property
    def exact_f1(self) -> Fraction:
        """2 TP / (predicted + gold), the harmonic mean of precision and recall.

        0 where there is nothing to count: without a right component F1 is 0 by convention.
        """
        total = self.predicted + self.gold
        return Fraction(2 * self.tp) / total if total else Fraction(0)

    @property
    def f1(self) -> float:
        """F1 as a float, from 0 to 1."""
        return float(self.exact_f1)


def micro_f1(documents: Iterable[Counts]) -> float | None:
    """F1 of the counts summed over documents: the paper's figure (section 5.1).

    Returns:
        None without a document.
    """
    total = None
    for counts in documents:
        total = counts if total is None else total + counts
    return None if total is None else total.f1


def mean_f1(documents: Iterable[Counts]) -> float | None:
    """The mean of the documents' own F1: what the authors' code computes.

    Returns:
        None without a document.
    """
    scores = [counts.exact_f1 for counts in documents]
    return float(sum(scores, Fraction(0)) / len(scores)) if scores else None


def micro_f1_spread(documents: Iterable[tuple[str, Counts]]) -> Spread | None:
    """How far the micro F1 may be off: a bootstrap over clusters.

    Args:
        documents: Each with its cluster, the dish: recipes of one dish are no independent
            draws.

    Returns:
        None for fewer than two dishes.
    """
    import numpy as np

    clusters: dict[str, Counts] = {}
    for cluster, counts in documents:
        clusters[cluster] = clusters[cluster] + counts if cluster in clusters else counts
    totals = {
        cluster: np.array([counts.tp, counts.predicted, counts.gold], dtype=np.float64)
        for cluster, counts in clusters.items()
    }
    return cluster_bootstrap(totals, _f1_of_sums)


def _f1_of_sums(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    import numpy as np

    tp, predicted, gold = np.moveaxis(sums, -1, 0)
    total = predicted + gold
    values: NDArray[np.float64] = 2 * tp / np.where(total > 0, total, np.nan)
    return values


def exact_match(gold: str, prediction: str) -> bool:
    """Whether the prediction is the gold name, character by character.

    A synonym in it is another name, though F1 takes it for the same component.
    """
    return gold == prediction


def counts(gold: str, prediction: str, glossary: Glossary) -> Counts:
    """Counts the components that both names have.

    Names are sets of components here, as in the paper: a component that stands twice counts
    once. Components compare by class.

    A prediction that does not parse is estimated as in the paper: right are the gold components
    of which any word of the class stands in it; its number of components is its length divided
    by the mean length of the gold components, taken as they stand in the gold name. Where that
    is fewer than the right ones, it has as many as are right, or precision would exceed 1.

    Args:
        gold: A name that parses.
        prediction: The name in the model's answer (:mod:`.extract`); an empty one has no
            component.
        glossary: Parses both.

    Raises:
        ValueError: The gold name does not parse, or is empty.
    """
    return _compare(gold, prediction, glossary, KINDS)


def counts_by_kind(gold: str, prediction: str, glossary: Glossary) -> dict[str, Counts | None]:
    """The same for the components of each kind alone.

    Of a prediction that does not parse, a kind gets the share of the estimated components that
    it has of the gold ones; the paper leaves this open.

    Returns:
        By kind; None for a kind that the gold name has no component of, which "will be ignored"
        (paper, figure 3).

    Raises:
        ValueError: The gold name does not parse, or is empty.
    """
    kinds = {component.kind for component in _gold_lengths(gold, glossary)}
    return {
        kind: _compare(gold, prediction, glossary, (kind,)) if kind in kinds else None
        for kind in KINDS
    }


def set_counts(gold: Iterable[Component], predicted: Iterable[Component]) -> Counts:
    """Counts for components that are known on both sides."""
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
    """The gold components with the length of the word that stands for each first."""
    words = glossary.words_in(gold)
    if not words:
        raise ValueError(f"the gold name {gold!r} does not parse and cannot be scored")
    lengths: dict[Component, int] = {}
    for word in words:
        component = glossary.component(word)
        if component is not None:
            lengths.setdefault(component, len(word))
    return lengths


MICRO, MEAN, EXACT = "micro_f1", "mean_f1", "exact_match"
UNPARSED, NO_ANSWER = "unparsed", "no_answer"
"""Shares of answers: with a name that does not parse, without any."""

_MICRO = "diner_micro_f1"
_ENDINGS = ("", STDERR, LOW, HIGH)


class Counted(float):
    """The F1 of one answer, with the counts it comes from and its dish.

    A float, so that lm-eval's logs and JSON take it as one.
    """

    counts: Counts
    cluster: str

    def __new__(cls, found: Counts, cluster: str) -> "Counted":
        """Args: the counts; the gold name."""
        self = super().__new__(cls, found.f1)
        self.counts, self.cluster = found, cluster
        return self

    def __reduce__(self) -> tuple[type["Counted"], tuple[Counts, str]]:
        """For pickling: ranks send their scores to each other."""
        return (Counted, (self.counts, self.cluster))


def _micro_of(values: Iterable[Counted]) -> float | None:
    return micro_f1(value.counts for value in _something(values))


def _spread(values: Iterable[Counted]) -> Spread | None:
    return micro_f1_spread((value.cluster, value.counts) for value in _something(values))


def _something(values: Iterable[Counted]) -> list[Counted]:
    """The values in which there is something to count: gold or predicted components."""
    return [value for value in values if value.counts.gold or value.counts.predicted]


register_figure(_MICRO, _micro_of)
register_spread(_MICRO, _spread)


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


def _micro_entries(names: Iterable[str]) -> list[dict[str, Any]]:
    return [
        {
            "metric": name + ending,
            "aggregation": _MICRO + ending,
            "higher_is_better": ending != STDERR,
        }
        for name in names
        for ending in _ENDINGS
    ]


def _micro(found: Mapping[str, Counts | None], dish: str) -> dict[str, Any]:
    return {
        name + ending: None if one is None else Counted(one, dish)
        for name, one in found.items()
        for ending in _ENDINGS
    }


def name_metrics(categories: Sequence[str]) -> list[dict[str, Any]]:
    """lm-eval's ``metric_list`` of a task that asks for names, in the order of :func:`name`.

    Args:
        categories: Those of the documents, each of which gets figures of its own.
    """
    parts = [MICRO, *(f"{MICRO}:{part}" for part in (*KINDS, *categories))]
    means = [MEAN, EXACT, *(f"{EXACT}:{part}" for part in categories)]
    return [
        *_micro_entries(parts),
        *metric_entries(means),
        *metric_entries([UNPARSED, NO_ANSWER], higher_is_better=False),
    ]


def name(
    gold: str, category: str, prediction: str, glossary: Glossary, categories: Sequence[str]
) -> dict[str, Any]:
    """Scores the name in an answer; None in the metrics that do not concern the recipe.

    Args:
        gold: The recipe's name.
        category: Of the gold name.
        prediction: The name taken out of the answer; may be empty.
        glossary: Parses both.
        categories: As for :func:`name_metrics`.
    """
    found = counts(gold, prediction, glossary)
    by_category = {one: found if one == category else None for one in categories}
    by_kind = counts_by_kind(gold, prediction, glossary)
    micro = {
        MICRO: found,
        **{f"{MICRO}:{part}": one for part, one in {**by_kind, **by_category}.items()},
    }
    exact = float(exact_match(gold, prediction))
    means = {
        MEAN: found.f1,
        EXACT: exact,
        UNPARSED: float(glossary.parse(prediction) is None),
        NO_ANSWER: float(not prediction),
    }
    parts = {f"{EXACT}:{one}": exact for one in categories if one == category}
    other = [f"{EXACT}:{one}" for one in categories if one != category]
    scored: dict[str, Any] = {
        **_micro(micro, gold),
        **document_results({**means, **parts}, gold),
        **{metric + ending: None for metric in other for ending in ("", STDERR)},
    }
    return {entry["metric"]: scored[entry["metric"]] for entry in name_metrics(categories)}


def component_metrics() -> list[dict[str, Any]]:
    """lm-eval's ``metric_list`` of the component questions, in the order of :func:`components`."""
    parts = ["", *(f":{kind}" for kind in ASKED_KINDS)]
    return [
        *_micro_entries(MICRO + part for part in parts),
        *metric_entries(metric + part for metric in (MEAN, EXACT) for part in parts),
    ]


def components(gold: str, answers: Sequence[str], glossary: Glossary) -> dict[str, Any]:
    """Scores the answers to the component questions.

    Each is compared as a set with the gold components of its kind. Where there are none, an
    empty answer is right: its F1 is 1, and it adds nothing to the micro F1.

    Args:
        gold: The recipe's name.
        answers: In the order of :data:`~lm_eval_ext.benchmarks.diner.prompt.ASKED_KINDS`.
        glossary: Of the gold name and the answers.
    """
    parsed = glossary.parse(gold) or ()
    found: dict[str, Counts] = {}
    means: dict[str, float] = {}
    for kind, answer in zip(ASKED_KINDS, answers, strict=True):
        wanted = {component for component in parsed if component.kind == kind}
        given = components_in(answer, glossary)
        found[kind] = set_counts(wanted, given)
        means[f"{MEAN}:{kind}"] = found[kind].f1 if wanted or given else 1.0
        means[f"{EXACT}:{kind}"] = float(wanted == given)
    total = reduce(add, found.values())
    means[MEAN] = sum(means[f"{MEAN}:{kind}"] for kind in ASKED_KINDS) / len(ASKED_KINDS)
    means[EXACT] = min(means[f"{EXACT}:{kind}"] for kind in ASKED_KINDS)
    micro = {MICRO: total, **{f"{MICRO}:{kind}": one for kind, one in found.items()}}
    scored = {**_micro(micro, gold), **document_results(means, gold)}
    return {entry["metric"]: scored[entry["metric"]] for entry in component_metrics()}
