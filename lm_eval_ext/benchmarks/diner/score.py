"""DiNeR's scores: a predicted dish name compared with the gold name (paper, section 5.1).

Names are compared as sets of components. Rows hold counts, from whose sums micro F1 comes. ``f1``
is the recipe's own F1, and ``f1_authors`` the same with 0 for predictions that do not parse, as
the authors' code computes it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from lm_eval_ext.benchmarks.diner.component_answers import components_in
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.stats.table import Row

ALL = "all"
"""Instead of a kind: the components of all kinds together."""


class Counts(NamedTuple):
    """Numbers of components.

    Attributes:
        hits: Gold components that the prediction has.
        predicted: Components of the prediction; a fraction where the number is estimated.
        gold: Components of the gold name.
    """

    hits: int
    predicted: Fraction | int
    gold: int

    @property
    def f1(self) -> float:
        """2 hits / (predicted + gold), the harmonic mean of precision and recall; 0 for 0/0."""
        total = self.predicted + self.gold
        if not total:
            return 0.0
        return float(2 * self.hits / total)

    def row(self) -> dict[str, float]:
        """Return the numbers as values of a row of scores."""
        return {**self._asdict(), "predicted": float(self.predicted)}


def set_counts(gold: Collection[Component], predicted: Collection[Component]) -> Counts:
    """Count components where those of both sides are known; repeats count once."""
    gold_set = set(gold)
    predicted_set = set(predicted)
    return Counts(len(gold_set & predicted_set), len(predicted_set), len(gold_set))


def counts(
    gold: str, prediction: str, glossary: Glossary, kinds: Collection[str] = KINDS
) -> Counts:
    """Count the components, or those of some kinds, that two names have in common.

    As in the paper, a name is a set: a component that occurs twice counts once. Synonyms are the
    same component.

    For a prediction that does not parse, the paper estimates. A gold component is right if the
    prediction contains any of its words. The number of predicted components is the prediction's
    length divided by the mean length of the gold components, as the gold name spells them; it is
    raised to the number of right components where it is smaller, since precision would exceed 1.
    For some kinds, which the paper does not define, it is multiplied by their share of the gold
    components. An empty prediction has no components.

    Raises:
        ValueError: The gold name is empty or does not parse.
    """
    gold_components = glossary.parse(gold)
    gold_words = glossary.words_in(gold)
    if not gold_components or not gold_words:
        raise ValueError(
            f"the gold name {gold!r} does not parse and cannot be scored; leave its recipe out"
        )
    expected = _of_kinds(gold_components, kinds)
    predicted = glossary.parse(prediction)
    if predicted is not None:
        return set_counts(expected, _of_kinds(predicted, kinds))
    hits = 0
    for component in expected:
        hits += any(word in prediction for word in glossary.words(component))
    lengths: dict[Component, int] = {}
    for component, word in zip(gold_components, gold_words, strict=True):
        lengths.setdefault(component, len(word))
    estimate = Fraction(len(expected) * len(prediction), sum(lengths.values()))
    return Counts(hits, max(estimate, Fraction(hits)), len(expected))


def _of_kinds(components: Iterable[Component], kinds: Collection[str]) -> set[Component]:
    return {component for component in components if component.kind in kinds}


def name(gold: str, prediction: str, glossary: Glossary) -> list[Row]:
    """Score a predicted name, which may be empty.

    Kinds of components that the gold name lacks have no row: they "will be ignored" (paper,
    figure 3).
    """
    all_counts = counts(gold, prediction, glossary)
    is_parsed = glossary.parse(prediction) is not None
    rows: list[Row] = [
        {
            "kind": ALL,
            **all_counts.row(),
            "f1": all_counts.f1,
            "f1_authors": all_counts.f1 if is_parsed else 0.0,
            # Synonyms are the same component, but not the same name.
            "exact_match": float(gold == prediction),
            "unparsed": float(not is_parsed),
            "no_answer": float(not prediction),
        }
    ]
    gold_kinds = {component.kind for component in glossary.parse(gold) or ()}
    for kind in KINDS:
        if kind in gold_kinds:
            rows.append({"kind": kind, **counts(gold, prediction, glossary, [kind]).row()})
    return rows


def components(gold: str, answers: Sequence[str], glossary: Glossary) -> list[Row]:
    """Score the answers to the component questions, in the order of ``ASKED_KINDS``.

    The components in an answer are compared with all gold components of the kind asked for. If
    the gold name has none of that kind, an answer without components is right: its F1 is 1, and
    it changes no micro F1. For ``f1_authors`` the question that a component is the answer to does
    not matter.
    """
    gold_components = glossary.parse(gold) or ()
    predictions = [components_in(answer, glossary) for answer in answers]
    counts_by_kind: list[Counts] = []
    rows: list[dict[str, Any]] = []
    for kind, predicted in zip(ASKED_KINDS, predictions, strict=True):
        expected = _of_kinds(gold_components, [kind])
        kind_counts = set_counts(expected, predicted)
        counts_by_kind.append(kind_counts)
        rows.append(
            {
                "kind": kind,
                **kind_counts.row(),
                "f1": kind_counts.f1 if expected or predicted else 1.0,
                "exact_match": float(expected == predicted),
            }
        )
    all_predicted = set().union(*predictions)
    summary: Row = {
        "kind": ALL,
        **_total(counts_by_kind).row(),
        "f1": sum(row["f1"] for row in rows) / len(rows),
        "f1_authors": set_counts(gold_components, all_predicted).f1,
        "exact_match": min(row["exact_match"] for row in rows),
    }
    return [summary, *rows]


def _total(counts: Sequence[Counts]) -> Counts:
    return Counts(
        hits=sum(kind_counts.hits for kind_counts in counts),
        predicted=sum(kind_counts.predicted for kind_counts in counts),
        gold=sum(kind_counts.gold for kind_counts in counts),
    )


def by_glossary(doc: Mapping[str, Any], results: Sequence[str], *, glossary: Glossary) -> list[Row]:
    """Score a document: ``process_results`` in the YAML.

    Args:
        doc: The document, with ``answer`` and ``category``.
        results: The name, or the answers to the component questions.
        glossary: The glossary of the task.
    """
    if len(results) > 1:
        return components(doc["answer"], results, glossary)
    rows = name(doc["answer"], results[0], glossary)
    return [{"category": doc["category"], **row} for row in rows]
