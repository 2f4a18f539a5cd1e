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
    """Choose k demonstrations for each sample, under each selection.

    Args:
        rows: All samples, with ``id``, ``copy_key`` and ``concepts``; for the control also
            ``answer``.
        options: The options of the task.
        k: Demonstrations per sample.
        seed: What random draws depend on.

    Returns:
        By id, the choices of the samples that have enough under both of the paper's selections;
        and the ids of the other samples, by reason. A sample may lack the control.
    """
    items = [Item(row["id"], row["copy_key"], frozenset(row["concepts"])) for row in rows]
    pool = Pool(items)
    by_concept = _by_concept(pool, items, options, k, seed).by_sample
    by_chance = at_random(pool, items, k, seed).by_sample
    chosen: dict[str, dict[str, Choice]] = {}
    samples: list[Item] = []
    too_few: list[str] = []
    for item in items:
        if item.id in by_concept and item.id in by_chance:
            chosen[item.id] = {RANDOM: by_chance[item.id], CONCEPT: by_concept[item.id]}
            samples.append(item)
        else:
            too_few.append(item.id)
    if options.control == "labels":
        answers = {row["id"]: row["answer"] for row in rows}
        rule = _control(answers, by_concept)
        for sample_id, choice in fitting(pool, samples, k, seed, rule).by_sample.items():
            chosen[sample_id][SAME_LABELS] = choice
    return chosen, {TOO_FEW: too_few}


def _by_concept(pool: Pool, items: Sequence[Item], options: Options, k: int, seed: int) -> Choices:
    if options.dataset != "worldtree":
        return sharing(pool, items, k, seed)
    if options.min_overlap == 0:
        return clustered(pool, k, seed)
    return overlapping(pool, items, k, seed, options.min_overlap)


def _control(answers: Mapping[str, str], by_concept: Mapping[str, Choice]) -> Rule:
    """Return the control's rule: the answer of a concept-sharing demonstration, another concept.

    The answer is that of the concept-sharing demonstration at the same position. Where a concept
    joins several phenomena, another concept has none in common.
    """

    def rule(sample: Item, position: int, item: Item) -> str | None:
        answer = answers[by_concept[sample.id].ids[position]]
        if answers[item.id] == answer and _phenomena(sample).isdisjoint(_phenomena(item)):
            return f"another concept, the answer {answer}"
        return None

    return rule


def _phenomena(item: Item) -> set[str]:
    phenomena: set[str] = set()
    for concept in item.features:
        phenomena.update(concept.split(SEPARATOR))
    return phenomena


def columns(choices: Mapping[str, Choice], selections: Sequence[str]) -> dict[str, list[str]]:
    """Return a sample's choices as columns of its document: ids of demonstrations, and reasons.

    They are empty under a selection that the sample lacks.
    """
    by_name: dict[str, list[str]] = {}
    for name in selections:
        picked = choices[name].picked if name in choices else ()
        by_name[f"{name}_demonstrations"] = [demonstration.id for demonstration in picked]
        by_name[f"{name}_why"] = [demonstration.why for demonstration in picked]
    return by_name
