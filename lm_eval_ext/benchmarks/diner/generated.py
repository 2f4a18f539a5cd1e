"""Recipes that are generated from parts, with the names of their dishes.

A recipe is made of steps that go with its dish's components, and of steps that say nothing. No
dish has the components of one of diner_mini's test dishes. Parts and words are diner_mini's.
"""

import random
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import yaml

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.glossary import Component

STAPLE_WITH_FLAVOUR = 0.3
"""How often the name of a dish with noodles, porridge or rice also has a flavour."""


@cache
def _parts() -> Any:
    file = resources.files(__package__).joinpath("mini").joinpath("parts.yaml")
    return yaml.safe_load(file.read_text(encoding="utf-8"))


@cache
def tested_dishes() -> frozenset[frozenset[Component]]:
    """The components of the dishes that diner_mini keeps for its test of new combinations."""
    return frozenset(map(components, mini.split("tmcd")["test"]["names"]))


def components(name: str) -> frozenset[Component]:
    """The components of a name, by diner_mini's glossary."""
    return frozenset(mini.glossary().parse(name) or ())


def recipe(rng: random.Random) -> tuple[str, str]:
    """The text and the name of a dish that is not tested."""
    while True:
        name, foods, steps = _dish(rng)
        if components(name) not in tested_dishes():
            break
    known = _parts()
    shown = [
        rng.choice(known["prepare"]).format(rng.choice(known["foods"][food])) for food in foods
    ]
    idle = rng.sample(known["idle"], rng.randint(0, 3))
    middle = [*shown[1:], *(rng.choice(ways) for ways in steps), *idle[1:]]
    rng.shuffle(middle)
    return "".join([*idle[:1], shown[0], *middle]), name


def recipes(seed: object) -> Iterator[tuple[str, str]]:
    """Recipes without end, the same for a seed."""
    rng = random.Random(f"generated recipes, {seed}")
    while True:
        yield recipe(rng)


def _dish(rng: random.Random) -> tuple[str, list[str], list[tuple[str, ...]]]:
    """A name, its foods, and the ways to say each of its other components."""
    known = _parts()
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
