"""DiNeR's scores: a predicted dish name compared with the gold name (paper, section 5.1).

Names are compared as sets of components. Rows hold counts, from whose sums micro F1 comes. ``f1``
is the recipe's own F1, and ``f1_authors`` the same with 0 for predictions that do not parse, as
the authors' code computes it.
"""

from collections.abc import Collection, Mapping, Sequence
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
        return float(2 * self.hits / total) if total else 0.0

    def row(self) -> dict[str, float]:
        """As values of a row of scores."""
        return {**self._asdict(), "predicted": float(self.predicted)}


def set_counts(gold: Collection[Component], predicted: Collection[Component]) -> Counts:
    """Counts where the components of both sides are known; repeats count once."""
    right, found = set(gold), set(predicted)
    return Counts(len(right & found), len(found), len(right))


def counts(
    gold: str, prediction: str, glossary: Glossary, kinds: Collection[str] = KINDS
) -> Counts:
    """Counts the components, or those of some kinds, that two names have in common.

    As in the paper, a name is a set: a component that occurs twice counts once. Synonyms are the
    same component.

    For a prediction that does not parse, the paper estimates. A gold component is right if the
    prediction contains any of its words. The number of predicted components is the prediction's
    length divided by the mean length of the gold components, as the gold name spells them; it is
    raised to the number of right components where it is smaller, since precision would exceed 1.
    Of some kinds it is the share that they have of the gold components, which the paper does not
    define. An empty prediction has no components.

    Raises:
        ValueError: The gold name is empty or does not parse.
    """
    components, words = glossary.parse(gold), glossary.words_in(gold)
    if not components or not words:
        raise ValueError(
            f"the gold name {gold!r} does not parse and cannot be scored; leave its recipe out"
        )
    wanted = {one for one in components if one.kind in kinds}
    parsed = glossary.parse(prediction)
    if parsed is not None:
        return set_counts(wanted, [one for one in parsed if one.kind in kinds])
    hits = sum(any(word in prediction for word in glossary.words(one)) for one in wanted)
    # Of words for the same component, the first one.
    lengths = dict(zip(reversed(components), map(len, reversed(words)), strict=True))
    estimate = Fraction(len(wanted) * len(prediction), sum(lengths.values()))
    return Counts(hits, max(estimate, Fraction(hits)), len(wanted))


def name(gold: str, prediction: str, glossary: Glossary) -> list[Row]:
    """Scores a predicted name, which may be empty.

    Kinds of components that the gold name lacks have no row: they "will be ignored" (paper,
    figure 3).
    """
    found = counts(gold, prediction, glossary)
    parsed = glossary.parse(prediction) is not None
    kinds = {component.kind for component in glossary.parse(gold) or ()}
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
    of_kinds: list[Row] = [
        {"kind": kind, **counts(gold, prediction, glossary, [kind]).row()}
        for kind in KINDS
        if kind in kinds
    ]
    return [of_all, *of_kinds]


def components(gold: str, answers: Sequence[str], glossary: Glossary) -> list[Row]:
    """Scores the answers to the component questions, in the order of ``ASKED_KINDS``.

    The components in an answer are compared with all gold components of the kind asked for. If
    the gold name has none of that kind, an answer without components is right: its F1 is 1, and
    it changes no micro F1. For ``f1_authors`` the question that a component is the answer to does
    not matter.
    """
    parsed = glossary.parse(gold) or ()
    named = [components_in(answer, glossary) for answer in answers]
    found: list[Counts] = []
    rows: list[dict[str, Any]] = []
    for kind, given in zip(ASKED_KINDS, named, strict=True):
        wanted = {component for component in parsed if component.kind == kind}
        one = set_counts(wanted, given)
        found.append(one)
        rows.append(
            {
                "kind": kind,
                **one.row(),
                "f1": one.f1 if wanted or given else 1.0,
                "exact_match": float(wanted == given),
            }
        )
    of_all: Row = {
        "kind": ALL,
        **Counts(*map(sum, zip(*found, strict=True))).row(),
        "f1": sum(row["f1"] for row in rows) / len(rows),
        "f1_authors": set_counts(parsed, set().union(*named)).f1,
        "exact_match": min(row["exact_match"] for row in rows),
    }
    return [of_all, *rows]


def by_glossary(doc: Mapping[str, Any], results: Sequence[str], *, glossary: Glossary) -> list[Row]:
    """Scores a document: ``process_results`` in the YAML.

    Args:
        doc: With ``answer`` and ``category``.
        results: The name, or the answers to the component questions.
        glossary: From the task's class.
    """
    if len(results) > 1:
        return components(doc["answer"], results, glossary)
    rows = name(doc["answer"], results[0], glossary)
    return [{"category": doc["category"], **row} for row in rows]
