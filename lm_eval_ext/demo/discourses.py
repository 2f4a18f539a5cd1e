"""Texts like lieder_mini's and lieder_fresh's: two sentences, of which the second is felicitous.

Those of lieder_mini's grammar use its nouns and verbs and some more, with other people; those of
lieder_fresh's are drawn as its items are, from other seeds. A text with a run of words of one of
the tasks' discourses is left out.
"""

import random
from collections.abc import Iterator, Sequence
from functools import cache

from lm_eval_ext.benchmarks.lieder import mini
from lm_eval_ext.benchmarks.lieder.fresh import draw as fresh
from lm_eval_ext.benchmarks.lieder.mini import Item
from lm_eval_ext.benchmarks.lieder.records import PLURAL, SINGULAR, Experiment, Group
from lm_eval_ext.demo.queries import lexicon, runs
from lm_eval_ext.training.material import Pair

FRESH, ONE_CLAUSE = 0.8, 0.15
"""How often a text is of lieder_fresh's grammar, and of the others one of a single clause."""

REFERS, GENERAL = 0.6, 0.4
"""How often a definite follows where one is felicitous, and how often what is said of it fits
every noun."""

EXPERIMENTS: tuple[Experiment, ...] = ("base", "diff", "two")
TESTED_ITEMS, TESTED_SEED = 200, "seed 0"
"""Those of the tasks lieder_fresh_..."""

DRAWN_ITEMS = 400
"""As many of each experiment are drawn for training."""


@cache
def items() -> tuple[Item, ...]:
    """lieder_mini's items and those of ``discourses.yaml``."""
    return mini.items() + mini.parse_items(lexicon("discourses")["items"])


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted({name for item in items() for name in item.owners}))


@cache
def _remarks() -> tuple[str, ...]:
    """Sentences about no entity of the context."""
    return (
        mini.NONREFERENTIAL_CONTINUATION,
        *(f" {one}" for one in lexicon("discourses")["remarks"]),
    )


@cache
def _tested() -> set[tuple[str, ...]]:
    """Runs of words of the tasks' discourses, and of their contexts alone."""
    groups = [*mini.groups(), *_fresh(TESTED_ITEMS, TESTED_SEED)]
    sentences = [sentence for group in groups for sentence in group.sentences]
    contexts = dict.fromkeys(one.context for one in sentences)
    return runs(contexts) | runs(one.context + one.continuation for one in sentences)


@cache
def _fresh(items: int, seed: str) -> Sequence[Group]:
    """The groups of all experiments."""
    return [group for one in EXPERIMENTS for group in fresh.groups(items, seed, one)]


def texts(seed: str, rng: random.Random) -> Iterator[Pair]:
    """Yields contexts with continuations, without end."""
    groups = _fresh(DRAWN_ITEMS, f"demonstration {seed}")
    while True:
        text = _of_fresh(rng.choice(groups), rng) if rng.random() < FRESH else _of_mini(rng)
        if not runs([text[0], "".join(text)]) & _tested():
            yield text


def _of_fresh(group: Group, rng: random.Random) -> Pair:
    context = rng.choice(group.sentences).context
    fits = [
        one.continuation for one in group.sentences if one.context == context and one.felicitous
    ]
    return context, _either(fits, rng)


def _of_mini(rng: random.Random) -> Pair:
    item = rng.choice(items())
    first, second = rng.sample(_names(), 2)
    if rng.random() < ONE_CLAUSE:
        context, number = rng.choice(lexicon("discourses")["one_clause"])
        context = context.format(item=item, name=first)
    else:
        contexts = mini.FAMILIES[rng.choice(tuple(mini.FAMILIES))](item, first, second)
        name = rng.choice(tuple(contexts))
        context, number = contexts[name], _NUMBERS[name]
    return context, _either([_definite(item, number, rng)] if number else [], rng)


_NUMBERS = {"pos_neg": SINGULAR, "neg_pos": SINGULAR, "pos_pos": PLURAL, "neg_neg": ""}
"""What a definite that follows must be (LIEDER, table 2)."""


def _either(fits: Sequence[str], rng: random.Random) -> str:
    return rng.choice(fits if fits and rng.random() < REFERS else _remarks())


def _definite(item: Item, number: str, rng: random.Random) -> str:
    """A sentence about "the <noun>" or "the <plural>"."""
    if rng.random() >= GENERAL:
        return mini.continuations(item)[number]
    singular, plural = rng.choice(lexicon("discourses")["predicates"])
    return (
        f" The {item.noun} {singular}." if number == SINGULAR else f" The {item.plural} {plural}."
    )
