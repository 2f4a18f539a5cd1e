"""Recipes that are generated from parts, with the names of their dishes.

A recipe is made of steps that go with its dish's components, and of steps that say nothing. No
dish has the components of one of diner_mini's test dishes. Parts and words are diner_mini's.
"""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.glossary import Component
from lm_eval_ext.reading import embedded

STAPLE_WITH_FLAVOUR = 0.3
"""How often the name of a dish with noodles, porridge or rice also has a flavour."""


def _parts() -> Any:
    return embedded(__file__, "mini/parts.yaml")


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


def _dish(rng: random.Random) -> tuple[str, list[str], list[Sequence[str]]]:
    """A name, its foods, and the ways to say each of its other components."""

    def draw(part: str) -> tuple[str, Sequence[str]]:
        found: tuple[str, Sequence[str]] = rng.choice([*_parts()[part].items()])
        return found

    foods = rng.sample([*_parts()["foods"]], rng.choice((1, 1, 2)))
    name, steps = "".join(foods), []
    kind = rng.choice(("action", "action", "flavour", "end"))
    if kind == "end":
        word, ways = draw("ends")
        name, steps = name + word, [ways]
    if kind == "action":
        word, ways = draw("actions")
        name, steps = (word.join(foods) if len(foods) > 1 else word + name), [ways]
    elif kind == "flavour" or rng.random() < STAPLE_WITH_FLAVOUR:
        word, ways = draw("flavours")
        name, steps = word + name, [*steps, ways]
    return name, foods, steps
