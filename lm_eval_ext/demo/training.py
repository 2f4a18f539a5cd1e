"""The demonstration's material: generated texts for four benchmarks.

Texts are of four kinds: discourses (:mod:`.discourses`), cogs_mini's training set, recipes, and
questions to databases (:mod:`.queries`). None has an item that a task asks for.
"""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from types import MappingProxyType
from typing import Any

from pydantic import Field

from lm_eval_ext.benchmarks.cogs import mini as cogs_mini
from lm_eval_ext.benchmarks.diner import generated
from lm_eval_ext.benchmarks.diner.prompt import (
    ASKED_KINDS,
    NONE,
    OURS,
    component_prompts,
    name_prompt,
)
from lm_eval_ext.benchmarks.magnifico.prompt import INSTRUCTION
from lm_eval_ext.demo import discourses, queries
from lm_eval_ext.reading import Strict, checked
from lm_eval_ext.training.material import Material, Pair

SHARES: Mapping[str, float] = MappingProxyType(
    {"discourse": 0.42, "form": 0.28, "recipe": 0.1, "query": 0.2}
)
"""How many of the texts are of each kind."""

NAME = 0.6
"""How often a recipe's name is asked for, and not one kind of its components."""

DEV_TEXTS, VOCABULARY_TEXTS = 256, 6000
POOL = 16
"""Batches are cut from so many, sorted by length."""


class Options(Strict):
    """What the recipe's ``data`` may say.

    Attributes:
        texts: How many are drawn to train on.
        batch: Of so many, batches are made of texts of similar length, for training in this order.
    """

    texts: int = Field(ge=1)
    batch: int = Field(ge=1)


def prepare(data: Mapping[str, Any], seed: int) -> Material:
    """The material of the recipe.

    Raises:
        OptionError: An option is wrong.
    """
    options = checked(Options, data, "recipe, data")
    drawn = list(islice(texts(str(seed)), options.texts))
    # What opens the prompts about a database is one token for each of its tables: otherwise a
    # prompt would have 600 tokens, too many for a model of minutes.
    whole = [f"{block}\n\n" for some in queries.blocks().values() for block in some]
    return Material(
        _batches(drawn, options.batch, seed),
        list(islice(texts(f"dev {seed}"), DEV_TEXTS)),
        vocabulary=[_shown(one) for one in drawn[:VOCABULARY_TEXTS]],
        whole=[*whole, f"{INSTRUCTION}\n\n"],
    )


def _batches(drawn: Sequence[Pair], size: int, seed: int) -> list[Pair]:
    """The texts in batches of similar length, so that little is padding, in random order."""
    rng = random.Random(f"demonstration batches {seed}")
    found: list[Pair] = []
    for place in range(0, len(drawn), POOL * size):
        pool = sorted(drawn[place : place + POOL * size], key=lambda pair: len(_shown(pair)))
        cut = [pool[start : start + size] for start in range(0, len(pool), size)]
        rng.shuffle(cut)
        found += [pair for batch in cut for pair in batch]
    return found


def _shown(pair: Pair) -> str:
    """A text without what opens the prompts about a database."""
    return "".join(pair).rpartition(INSTRUCTION)[2]


def texts(seed: str) -> Iterator[Pair]:
    """Prompts with answers, each with its leading space, without end."""
    rng = random.Random(f"demonstration corpus {seed}")
    of_kind = {
        "discourse": discourses.texts(seed, rng),
        "form": _forms(rng),
        "recipe": (_recipe(rng) for _ in count()),
        "query": (queries.draw(rng) for _ in count()),
    }
    kinds, weights = tuple(SHARES), tuple(SHARES.values())
    while True:
        yield next(of_kind[rng.choices(kinds, weights)[0]])


def _forms(rng: random.Random) -> Iterator[Pair]:
    """cogs_mini's training sentences with their logical forms, again and again."""
    examples = cogs_mini.examples("train")
    while True:
        for one in rng.sample(examples, len(examples)):
            yield one.sentence, f" {one.form}"


def _recipe(rng: random.Random) -> Pair:
    """A recipe and the answer to one of diner_mini's questions about it."""
    text, name = generated.recipe(rng)
    if rng.random() < NAME:
        return name_prompt(text), f" {name}"
    kind = rng.randrange(len(ASKED_KINDS))
    found = [
        one.name for one in sorted(generated.components(name)) if one.kind == ASKED_KINDS[kind]
    ]
    return component_prompts(text, OURS)[kind], f" {'，'.join(found) or NONE}"
