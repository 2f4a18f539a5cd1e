"""Choosing each sample's demonstrations: at random, and by shared concepts (paper, section 2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.fewshot import Choice, Item, Pool, at_random, overlapping, sharing

RANDOM, CONCEPT = "random", "concept"
SELECTIONS = (RANDOM, CONCEPT)
"""In the order of a document's requests."""

TOO_FEW, TOO_LONG = "too_few_demonstrations", "too_long"
"""Reasons why a sample is left out, under both selections."""


@dataclass(frozen=True)
class Rules:
    """How a dataset's demonstrations are chosen.

    Attributes:
        by_overlap: Whether to choose samples with the most concepts in common (WorldTree),
            instead of samples with any concept in common.
        max_words: Maximum number of distinct words of a prompt; 0: no limit.
    """

    by_overlap: bool
    max_words: int


def choose(
    rows: Sequence[Mapping[str, Any]], rules: Rules, k: int, seed: int
) -> tuple[dict[str, dict[str, Choice]], dict[str, list[str]]]:
    """Chooses k demonstrations for each sample, at random and by concept.

    ``rows`` are all samples, with ``id``, ``copy_key`` and ``concepts``.

    Returns:
        By id, the choices of the samples that have enough under both selections; and the ids of
        the others, by reason.
    """
    items = [Item(row["id"], row["copy_key"], frozenset(row["concepts"])) for row in rows]
    pool = Pool(items)
    by_concept = (overlapping if rules.by_overlap else sharing)(pool, items, k, seed).by_sample
    by_chance = at_random(pool, items, k, seed).by_sample
    complete = by_concept.keys() & by_chance.keys()
    chosen = {
        item.id: {RANDOM: by_chance[item.id], CONCEPT: by_concept[item.id]}
        for item in items
        if item.id in complete
    }
    short = sorted(item.id for item in items if item.id not in complete)
    return chosen, {TOO_FEW: short} if short else {}


def columns(choices: Mapping[str, Choice]) -> dict[str, list[str]]:
    """A sample's choices as columns of its document: ids of demonstrations, and reasons."""
    return {
        f"{selection}_{what}": values
        for selection in SELECTIONS
        for what, values in (
            ("demonstrations", list(choices[selection].ids)),
            ("why", [one.why for one in choices[selection].picked]),
        )
    }


def distinct_words(*texts: str) -> int:
    """The number of different words of all texts together, as the paper's limit counts."""
    return len({word for text in texts for word in text.split()})
