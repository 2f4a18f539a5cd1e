"""Choosing each sample's demonstrations: at random, and by shared concepts (paper, section 2).

A third choice, which the paper does not have, is a control: demonstrations of other concepts with
the answers of the concept-sharing ones. Answers can be copied, and samples of one concept often
have the same; the control shows how much of a gain that explains.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.conceptual.load import Options
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
from lm_eval_ext.harness.names import TOO_FEW

RANDOM, CONCEPT = "random", "concept"
SELECTIONS = (RANDOM, CONCEPT)
"""The paper's, in the order of a document's requests."""

SAME_LABELS = "same_labels"
"""The control; its request follows those of the paper's selections."""

SEPARATOR = ";"
"""Between the phenomena of GLUE's concepts that join several."""


def choose(
    rows: Sequence[Mapping[str, Any]], options: Options, k: int, seed: int
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
    by_concept = _by_concept(pool, items, options, k, seed).by_sample
    by_chance = at_random(pool, items, k, seed).by_sample
    asked = [item for item in items if item.id in by_concept and item.id in by_chance]
    chosen = {item.id: {RANDOM: by_chance[item.id], CONCEPT: by_concept[item.id]} for item in asked}
    if options.control == "labels":
        rule = _control({row["id"]: row["answer"] for row in rows}, by_concept)
        for name, choice in fitting(pool, asked, k, seed, rule).by_sample.items():
            chosen[name][SAME_LABELS] = choice
    return chosen, {TOO_FEW: [item.id for item in items if item.id not in chosen]}


def _by_concept(pool: Pool, items: Sequence[Item], options: Options, k: int, seed: int) -> Choices:
    if options.dataset != "worldtree":
        return sharing(pool, items, k, seed)
    if options.min_overlap == 0:
        return clustered(pool, k, seed)
    return overlapping(pool, items, k, seed, options.min_overlap)


def _control(answers: Mapping[str, str], by_concept: Mapping[str, Choice]) -> Rule:
    """At every place, the answer of the concept-sharing demonstration there; another concept.

    Another one has no part in common, where a concept joins several.
    """

    def parts(item: Item) -> set[str]:
        return {part for concept in item.features for part in concept.split(SEPARATOR)}

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
    found = {}
    for name in selections:
        picked = choices[name].picked if name in choices else ()
        found[f"{name}_demonstrations"] = [one.id for one in picked]
        found[f"{name}_why"] = [one.why for one in picked]
    return found
