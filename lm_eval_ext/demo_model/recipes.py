"""Recipes with their names, in the format of diner_mini's prompts.

A recipe is made of steps that go with its dish's components. No dish has the components of one of
diner_mini's test dishes. Some texts are recipes of diner_mini itself, of those that no split tests.
"""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import random
from collections.abc import Sequence
from functools import cache

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.glossary import Component
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
from lm_eval_ext.demo_model.text import Text, lexicon

OWN = 0.8
"""How often a recipe is generated and not one of diner_mini's training recipes."""

NAME, NAME_WITH_COMPONENTS = 0.5, 0.7
"""Cumulative shares of the questions; what remains asks for one kind of components."""

STAPLE_WITH_FLAVOUR = 0.3
"""How often the name of a dish with noodles, porridge or rice also has a flavour."""


@cache
def tested_dishes() -> frozenset[frozenset[Component]]:
    """The components of the dishes that diner_mini keeps for its test of new combinations."""
    return frozenset(map(_components, mini.split("tmcd")["test"]["names"]))


@cache
def training_recipes() -> tuple[tuple[str, str], ...]:
    """diner_mini's training recipes with their names, without those that any split tests."""
    tested = {text for name in mini.SPLITS for text in mini.split(name)["test"]["instructions"]}
    train = mini.split("tmcd")["train"]
    pairs = zip(train["instructions"], train["names"], strict=True)
    return tuple(pair for pair in pairs if pair[0] not in tested)


def _components(name: str) -> frozenset[Component]:
    return frozenset(mini.glossary().parse(name) or ())


def draw(rng: random.Random) -> Text:
    """A recipe and the answer to one of diner_mini's questions about it."""
    text, name = _recipe(rng) if rng.random() < OWN else rng.choice(training_recipes())
    asked = rng.random()
    if asked < NAME:
        return name_prompt(text), f" {name}"
    found = sorted(_components(name))
    answers = [_listed([c.name for c in found if c.kind == kind]) for kind in ASKED_KINDS]
    if asked < NAME_WITH_COMPONENTS:
        labels = ["", *(f"{LABELS[kind]}：" for kind in ASKED_KINDS[1:]), f"{NAME_LABEL}："]
        return one_prompt(text), "\n".join(map(str.__add__, labels, [*answers, name]))
    which = rng.randrange(len(ASKED_KINDS))
    return component_prompts(text, OURS)[which], f" {answers[which]}"


def _listed(names: Sequence[str]) -> str:
    return "，".join(names) or NONE


def _recipe(rng: random.Random) -> tuple[str, str]:
    """The text and the name of a dish that is not tested."""
    while True:
        name, foods, steps = _dish(rng)
        if _components(name) not in tested_dishes():
            break
    known = lexicon("recipes")
    shown = [
        rng.choice(known["prepare"]).format(rng.choice(known["foods"][food])) for food in foods
    ]
    idle = rng.sample(known["idle"], rng.randint(0, 3))
    middle = [*shown[1:], *(rng.choice(ways) for ways in steps), *idle[1:]]
    rng.shuffle(middle)
    return "".join([*idle[:1], shown[0], *middle]), name


def _dish(rng: random.Random) -> tuple[str, list[str], list[tuple[str, ...]]]:
    """A name, its foods, and the ways to say each of its other components."""
    known = lexicon("recipes")
    foods = rng.sample(tuple(known["foods"]), rng.choice((1, 1, 2)))
    name, steps = "".join(foods), []
    kind = rng.choice(("action", "action", "flavour", "end"))
    if kind == "end":
        end = rng.choice(tuple(known["ends"]))
        name, steps = name + end, [known["ends"][end]]
    if kind == "action":
        action = rng.choice(tuple(known["actions"]))
        name = action.join(foods) if len(foods) > 1 else action + name
        steps = [known["actions"][action]]
    elif kind == "flavour" or rng.random() < STAPLE_WITH_FLAVOUR:
        flavour = rng.choice(tuple(known["flavours"]))
        name, steps = flavour + name, [*steps, known["flavours"][flavour]]
    return name, foods, steps
