"""Choosing each sample's demonstrations: at random, and by shared concepts (paper, section 2).

A third choice, which the paper does not have, is a control: demonstrations of other concepts with
the answers of the concept-sharing ones. Answers can be copied, and samples of one concept often
have the same; the control shows how much of a gain that explains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.fewshot import (
    Choice,
    Choices,
    Item,
    Pool,
    Rule,
    at_random,
    clustered,
    fitting,
    overlapping,
    sharing,
)

RANDOM, CONCEPT = "random", "concept"
SELECTIONS = (RANDOM, CONCEPT)
"""The paper's, in the order of a document's requests."""

SAME_LABELS = "same_labels"
"""The control; its request follows those of the paper's selections."""

TOO_FEW, TOO_LONG = "too_few_demonstrations", "too_long"
"""Reasons why a sample is left out, under all selections."""


@dataclass(frozen=True)
class Rules:
    """How a dataset's demonstrations are chosen.

    Attributes:
        by_overlap: Whether to choose samples with the most concepts in common (WorldTree),
            instead of samples with any concept in common.
        max_words: Maximum number of distinct words of a prompt; 0: no limit.
        min_overlap: With ``by_overlap``, the least number of concepts in common. 0 makes
            disjoint clusters of k + 1, as the authors' code does; their members may have
            nothing in common.
        separator: Between the parts of a concept that joins several; "" if none does.
        control: Whether to choose :data:`SAME_LABELS`, too.
    """

    by_overlap: bool
    max_words: int
    min_overlap: int = 1
    separator: str = ""
    control: bool = False


def choose(
    rows: Sequence[Mapping[str, Any]], rules: Rules, k: int, seed: int
) -> tuple[dict[str, dict[str, Choice]], dict[str, list[str]]]:
    """Chooses k demonstrations for each sample, under each selection.

    ``rows`` are all samples, with ``id``, ``copy_key`` and ``concepts``; for the control also
    ``answer``.

    Returns:
        By id, the choices of the samples that have enough under both of the paper's selections;
        and the ids of the others, by reason. A sample may lack the control.
    """
    items = [Item(row["id"], row["copy_key"], frozenset(row["concepts"])) for row in rows]
    pool = Pool(items)
    by_concept = _by_concept(pool, items, rules, k, seed).by_sample
    by_chance = at_random(pool, items, k, seed).by_sample
    complete = by_concept.keys() & by_chance.keys()
    chosen = {
        item.id: {RANDOM: by_chance[item.id], CONCEPT: by_concept[item.id]}
        for item in items
        if item.id in complete
    }
    if rules.control:
        rule = _control({row["id"]: row["answer"] for row in rows}, by_concept, rules.separator)
        asked = [item for item in items if item.id in complete]
        for name, choice in fitting(pool, asked, k, seed, rule).by_sample.items():
            chosen[name][SAME_LABELS] = choice
    short = sorted(item.id for item in items if item.id not in complete)
    return chosen, {TOO_FEW: short} if short else {}


def _by_concept(pool: Pool, items: Sequence[Item], rules: Rules, k: int, seed: int) -> Choices:
    if not rules.by_overlap:
        return sharing(pool, items, k, seed)
    if rules.min_overlap == 0:
        return clustered(pool, k, seed)
    return overlapping(pool, items, k, seed, rules.min_overlap)


def _control(answers: Mapping[str, str], by_concept: Mapping[str, Choice], separator: str) -> Rule:
    """At every place, the answer of the concept-sharing demonstration there; another concept.

    Another one has no part in common, where a concept joins several.
    """

    def parts(item: Item) -> set[str]:
        if not separator:
            return set(item.features)
        return {part for concept in item.features for part in concept.split(separator)}

    def rule(sample: Item, place: int, item: Item) -> str | None:
        answer = answers[by_concept[sample.id].ids[place]]
        if answers[item.id] == answer and parts(sample).isdisjoint(parts(item)):
            return f"another concept, the answer {answer}"
        return None

    return rule


def columns(choices: Mapping[str, Choice], selections: Sequence[str]) -> dict[str, list[str]]:
    """A sample's choices as columns of its document: ids of demonstrations, and reasons.

    They are empty under a selection that the sample lacks.
    """
    return {
        f"{selection}_{what}": values
        for selection in selections
        for choice in [choices.get(selection)]
        for what, values in (
            ("demonstrations", list(choice.ids) if choice else []),
            ("why", [one.why for one in choice.picked] if choice else []),
        )
    }


def distinct_words(*texts: str) -> int:
    """The number of different words of all texts together, as the paper's limit counts."""
    return len({word for text in texts for word in text.split()})
