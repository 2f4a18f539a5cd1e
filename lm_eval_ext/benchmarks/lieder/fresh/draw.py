"""Draws items from a seed, and writes the sentences of one experiment about them.

Every noun is dealt once before any comes again, with another frame or predicate. So up to the
number of nouns no two items share one, and the items of a smaller number are the first of a
larger one's.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from lm_eval_ext.benchmarks.lieder.fresh.lexicon import OBJECT, Frame, Noun, Predicate, lexicon
from lm_eval_ext.benchmarks.lieder.mini import NONREFERENTIAL_CONTINUATION
from lm_eval_ext.benchmarks.lieder.records import (
    FOUR_CONTEXTS,
    NONREFERENTIAL,
    PLURAL,
    SINGULAR,
    SIX_CONTEXTS,
    Experiment,
    Group,
    Sentence,
)

FELICITOUS = frozenset({"pos_neg_s", "neg_pos_s", "pos_pos_p", "two_neg_p", "neg_two_p"})
"""The felicitous conditions of all three experiments (paper, table 2 and appendix D)."""

_LETTERS = 5
"""So many first letters make two words one: "ordered" and "orders"."""

_SHORT = frozenset({"from", "with", "than", "they", "their", "them", "were", "have", "last"})
"""Words of four letters and more that may stand in a frame and in a predicate."""


@dataclass(frozen=True)
class Item:
    """A noun with what two people do, and what is said of it afterwards."""

    noun: Noun
    frame: Frame
    predicate: Predicate
    owners: tuple[str, str]


@dataclass(frozen=True)
class Family:
    """How a sentence family asserts and denies a clause, and what closes a repeated one."""

    asserts: str
    denies: str
    also: str
    neither: str


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "affirmative_negation": Family(
            "{who} {finite}", "{who} {auxiliary} {base}", " too", " either"
        ),
        "know_doubt": Family(
            "I know that {who} {finite}", "I doubt that {who} {finite}", " as well", " as well"
        ),
        "managed_failed": Family(
            "{who} managed to {attempt}", "{who} failed to {attempt}", " as well", " as well"
        ),
    }
)
"""LIEDER's families with their operators (paper, section 4 and appendix B)."""


def groups(count: int, seed: str, experiment: Experiment) -> list[Group]:
    """One group of 12 sentences per item and family, items outermost.

    Args:
        count: Number of items, 1 to :func:`capacity`.
        seed: Any text; the items depend on it and on nothing else.
        experiment: ``base``, ``diff`` or ``two``.
    """
    return [
        Group(f"{number}_{item.noun.singular}", family, _sentences(item, family, experiment))
        for number, item in enumerate(items(count, seed), start=1)
        for family in FAMILIES
    ]


@cache
def capacity() -> int:
    """The number of items that differ in noun, frame or predicate."""
    return sum(len(members) for members in _fitting().values())


def items(count: int, seed: str) -> list[Item]:
    """Draws items; as :func:`groups`."""
    rng = random.Random(f"LIEDER, {seed}")
    names = _pairs_of_names(random.Random(f"LIEDER, names, {seed}"))
    decks = {noun: rng.sample(members, len(members)) for noun, members in _fitting().items()}
    drawn: list[Item] = []
    while len(drawn) < count:
        nouns = [noun for noun, deck in decks.items() if deck]
        for noun in rng.sample(nouns, len(nouns)):
            drawn.append(Item(noun, *decks[noun].pop(), next(names)))
    return drawn[:count]


@cache
def _fitting() -> Mapping[Noun, list[tuple[Frame, Predicate]]]:
    """For each noun the frames and predicates that share no word with each other or with it."""
    return {
        noun: [
            (frame, predicate)
            for frame in one.frames
            for predicate in one.predicates
            if not _repeats(noun.singular, frame, predicate)
        ]
        for one in lexicon().classes.values()
        for noun in one.nouns
    }


def _repeats(noun: str, frame: Frame, predicate: Predicate) -> bool:
    """Whether a word comes twice: "made a ring. The ring is made of silver"."""
    verb, said, thing = (
        _stems(f"{frame.finite} {frame.attempt}"),
        _stems(predicate.singular),
        _stems(noun),
    )
    return bool(verb & said or thing & (verb | said))


def _stems(text: str) -> frozenset[str]:
    words = (word for word in text.lower().split() if len(word) >= len("made"))
    return frozenset(word[:_LETTERS] for word in words if word not in _SHORT)


def _pairs_of_names(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Pairs with different initials; nobody comes again before nearly all have come."""
    deck: list[str] = []
    while True:
        other = next((name for name in deck[1:] if name[0] != deck[0][0]), None)
        if other is None:
            deck = rng.sample(lexicon().names, len(lexicon().names))
            continue
        yield deck[0], other
        deck = [name for name in deck[1:] if name != other]


def _sentences(item: Item, family: str, experiment: Experiment) -> tuple[Sentence, ...]:
    contexts = _contexts(item, FAMILIES[family], experiment)
    endings = {
        SINGULAR: f" The {item.noun.singular} {item.predicate.singular}.",
        PLURAL: f" The {item.noun.plural} {item.predicate.plural}.",
        NONREFERENTIAL: NONREFERENTIAL_CONTINUATION,
    }
    if experiment == "two":
        del endings[NONREFERENTIAL]
    return tuple(
        Sentence(
            f"{name}_{ending}",
            contexts[name],
            text,
            None if ending == NONREFERENTIAL else f"{name}_{ending}" in FELICITOUS,
        )
        for name in (SIX_CONTEXTS if experiment == "two" else FOUR_CONTEXTS)
        for ending, text in endings.items()
    )


def _contexts(item: Item, family: Family, experiment: Experiment) -> dict[str, str]:
    """The six contexts; experiments 1 and 2 have the four without "two"."""
    one, other = item.owners
    noun = item.noun
    some, another = f"{noun.article} {noun.singular}", f"a different {noun.singular}"
    several = f"two {noun.plural}"

    def clause(template: str, who: str, what: str) -> str:
        frame = item.frame
        verb = template.format(
            who=who,
            finite=frame.finite,
            auxiliary=frame.auxiliary,
            base=frame.base,
            attempt=frame.attempt,
        )
        return verb.replace(OBJECT, what)

    def has(who: str, what: str = some) -> str:
        return clause(family.asserts, who, what)

    def lacks(who: str) -> str:
        return clause(family.denies, who, some)

    second = has(other, another) if experiment == "diff" else f"{has(other)}{family.also}"
    return {
        "pos_neg": f"{has(one)} but {lacks(other)}.",
        "two_neg": f"{has(one, several)} but {lacks(other)}.",
        "pos_pos": f"{has(one)} and {second}.",
        "neg_pos": f"{lacks(one)} but {has(other)}.",
        "neg_two": f"{lacks(one)} but {has(other, several)}.",
        "neg_neg": f"{lacks(one)} and {lacks(other)}{family.neither}.",
    }
