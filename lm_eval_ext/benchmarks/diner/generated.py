"""Recipes that are generated from parts, with the names of their dishes.

A recipe is made of steps that go with its dish's components, and of steps that say nothing. No
dish has the components of one of diner_mini's test dishes. Parts and words are diner_mini's.
"""

import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, TypedDict, cast

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.glossary import Component
from lm_eval_ext.reading import embedded

STAPLE_WITH_FLAVOUR = 0.3
"""The share of names of dishes with noodles, porridge or rice that also have a flavour."""


class _Material(TypedDict):
    """The content of ``mini/parts.yaml``; of words with sentences, a sentence states the word."""

    foods: dict[str, list[str]]
    prepare: list[str]
    ends: dict[str, list[str]]
    actions: dict[str, list[str]]
    flavours: dict[str, list[str]]
    idle: list[str]


def _material() -> _Material:
    return cast(_Material, embedded(__file__, "mini/parts.yaml"))


class _Dish(NamedTuple):
    """A dish: for each component that is no food, the sentences that may state it."""

    name: str
    foods: list[str]
    sentences: list[list[str]]


@cache
def tested_dishes() -> frozenset[frozenset[Component]]:
    """Return the components of the dishes that diner_mini keeps for its test."""
    return frozenset(map(components, mini.split("tmcd")["test"]["names"]))


def components(name: str) -> frozenset[Component]:
    """Return the components of a name, by diner_mini's glossary."""
    return frozenset(mini.glossary().parse(name) or ())


def recipe(rng: random.Random) -> tuple[str, str]:
    """Return the text and the name of a dish that is not tested."""
    dish = _draw_dish(rng)
    while components(dish.name) in tested_dishes():
        dish = _draw_dish(rng)
    material = _material()
    preparations = []
    for food in dish.foods:
        sentence = rng.choice(material["prepare"])
        preparations.append(sentence.format(rng.choice(material["foods"][food])))
    idle = rng.sample(material["idle"], rng.randint(0, 3))
    opening = [*idle[:1], preparations[0]]
    middle = [*preparations[1:]]
    for sentences in dish.sentences:
        middle.append(rng.choice(sentences))
    middle += idle[1:]
    rng.shuffle(middle)
    return "".join([*opening, *middle]), dish.name


def recipes(seed: object) -> Iterator[tuple[str, str]]:
    """Yield recipes without end, the same for a seed."""
    rng = random.Random(f"generated recipes, {seed}")
    while True:
        yield recipe(rng)


def _draw_dish(rng: random.Random) -> _Dish:
    material = _material()
    foods = rng.sample([*material["foods"]], rng.choice((1, 1, 2)))
    name = "".join(foods)
    sentences = []
    addition = rng.choice(("action", "action", "flavour", "end"))
    if addition == "end":
        end, end_sentences = _draw_word(material["ends"], rng)
        name += end
        sentences.append(end_sentences)
    if addition == "action":
        action, action_sentences = _draw_word(material["actions"], rng)
        name = action.join(foods) if len(foods) > 1 else action + name
        sentences.append(action_sentences)
    elif addition == "flavour" or rng.random() < STAPLE_WITH_FLAVOUR:
        flavour, flavour_sentences = _draw_word(material["flavours"], rng)
        name = flavour + name
        sentences.append(flavour_sentences)
    return _Dish(name, foods, sentences)


def _draw_word(words: dict[str, list[str]], rng: random.Random) -> tuple[str, list[str]]:
    """Draw a word, with the sentences that may state it."""
    return rng.choice(list(words.items()))
