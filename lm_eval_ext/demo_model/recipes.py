"""Recipes with their names, in the format of diner_mini's prompts.

Most are generated (:mod:`lm_eval_ext.benchmarks.diner.generated`); some are recipes of diner_mini
itself, of those that no split tests.
"""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import random
from collections.abc import Sequence
from functools import cache

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.generated import components, recipe
from lm_eval_ext.benchmarks.diner.prompt import (
    ASKED_KINDS,
    LABELS,
    NAME_LABEL,
    NONE,
    OURS,
    component_prompts,
    name_prompt,
    one_prompt,
)
from lm_eval_ext.demo_model.text import Text

OWN = 0.8
"""How often a recipe is generated and not one of diner_mini's training recipes."""

NAME, NAME_WITH_COMPONENTS = 0.5, 0.7
"""Cumulative shares of the questions; what remains asks for one kind of components."""


@cache
def training_recipes() -> tuple[tuple[str, str], ...]:
    """diner_mini's training recipes with their names, without those that any split tests."""
    tested = {text for name in mini.SPLITS for text in mini.split(name)["test"]["instructions"]}
    train = mini.split("tmcd")["train"]
    pairs = zip(train["instructions"], train["names"], strict=True)
    return tuple(pair for pair in pairs if pair[0] not in tested)


def draw(rng: random.Random) -> Text:
    """A recipe and the answer to one of diner_mini's questions about it."""
    text, name = recipe(rng) if rng.random() < OWN else rng.choice(training_recipes())
    asked = rng.random()
    if asked < NAME:
        return name_prompt(text), f" {name}"
    found = sorted(components(name))
    answers = [_listed([c.name for c in found if c.kind == kind]) for kind in ASKED_KINDS]
    if asked < NAME_WITH_COMPONENTS:
        labels = ["", *(f"{LABELS[kind]}：" for kind in ASKED_KINDS[1:]), f"{NAME_LABEL}："]
        return one_prompt(text), "\n".join(map(str.__add__, labels, [*answers, name]))
    which = rng.randrange(len(ASKED_KINDS))
    return component_prompts(text, OURS)[which], f" {answers[which]}"


def _listed(names: Sequence[str]) -> str:
    return "，".join(names) or NONE
