"""A predicted name compared with the gold name, component by component (paper, section 5.1)."""

from collections.abc import Iterable
from fractions import Fraction

from lm_eval_ext.benchmarks.diner.f1 import Counts
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Glossary


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
