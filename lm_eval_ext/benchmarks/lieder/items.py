"""Items of our own in LIEDER's design: those of lieder_mini, and those that are drawn from a seed.

They cross items, sentence families, contexts and continuations as the paper does (section 4), with
other words. ``mini.yaml`` and ``lexicon.yaml`` hold the words and the families. lieder_mini is too
small and too regular to measure a real model.

Of items that are drawn, every noun is dealt once before any comes again, with another frame or
predicate. So up to the number of nouns no two items share one, and the items of a smaller number
are the first of a larger one's.
"""

import random
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from lm_eval_ext.benchmarks.lieder.records import (
    FELICITOUS,
    FOUR_CONTEXTS,
    NONREFERENTIAL,
    PLURAL,
    SINGULAR,
    SIX_CONTEXTS,
    Experiment,
    Group,
    Sentence,
)
from lm_eval_ext.reading import embedded

REMARK = " None of this surprises anyone."
"""Refers to no entity of the context: the baseline of the relative metric."""


class Item(NamedTuple):
    """A noun with what two people do, and what is said of it afterwards.

    Attributes:
        article: The noun's indefinite article.
        noun: Singular.
        plural: The noun's plural.
        owners: The subjects of the first and the second clause.
        base: The verb's base form; the object follows, or stands at ``_``.
        finite: The same verb in the past, or in the third person singular.
        auxiliary: In the tense of ``finite``.
        attempt: The base form that follows "was able to" or "managed to".
        predicate_singular: Predicate of "The <noun>".
        predicate_plural: Predicate of "The <plural>".
    """

    article: str
    noun: str
    plural: str
    owners: tuple[str, str]
    base: str
    finite: str
    auxiliary: str
    attempt: str
    predicate_singular: str
    predicate_plural: str


def words(file: str) -> Any:
    """The content of ``mini`` or ``lexicon``."""
    return embedded(__file__, f"{file}.yaml")


def mini_items() -> tuple[Item, ...]:
    """The items of lieder_mini, in the dataset's order."""
    return tuple(Item(**entry) for entry in words("mini")["items"])


@cache
def mini() -> tuple[Group, ...]:
    """The groups of lieder_mini, items outermost, as in LIEDER's files."""
    families = words("mini")["families"]
    return tuple(
        group(item.noun, item, family, contexts)
        for item, (family, contexts) in product(mini_items(), families.items())
    )


def drawn(count: int, seed: str, experiment: Experiment) -> list[Group]:
    """The groups of items that are drawn, items outermost.

    Args:
        count: Number of items, 1 to :func:`capacity`.
        seed: Any text; the items depend on it and on nothing else.
        experiment: ``base``, ``diff`` or ``two``.
    """
    numbered = enumerate(draw(count, seed), start=1)
    families = words("lexicon")["families"]
    return [
        group(f"{number}_{item.noun}", item, family, contexts, experiment)
        for (number, item), (family, contexts) in product(numbered, families.items())
    ]


class _Clause:
    """A verb, formatted with what its object is: one, ``two`` of them, or a ``different`` one."""

    def __init__(self, verb: str, item: Item) -> None:
        self.verb = verb if "_" in verb else f"{verb} _"
        self.item = item

    def __format__(self, what: str) -> str:
        objects = {
            "": f"{self.item.article} {self.item.noun}",
            "two": f"two {self.item.plural}",
            "different": f"a different {self.item.noun}",
        }
        return self.verb.replace("_", objects[what])


def context(template: str, item: Item, owners: tuple[str, str]) -> str:
    """A family's context about an item, with these subjects of its clauses."""
    verbs = {name: _Clause(getattr(item, name), item) for name in ("base", "finite", "attempt")}
    return template.format(one=owners[0], other=owners[1], auxiliary=item.auxiliary, **verbs)


def continuations(item: Item) -> dict[str, str]:
    """The item's continuations by suffix of the condition, each with its leading space."""
    return {
        SINGULAR: f" The {item.noun} {item.predicate_singular}.",
        PLURAL: f" The {item.plural} {item.predicate_plural}.",
        NONREFERENTIAL: REMARK,
    }


def group(
    name: str,
    item: Item,
    family: str,
    contexts: Mapping[str, str],
    experiment: Experiment = "base",
) -> Group:
    """The 12 sentences of an item in a family."""
    two = experiment == "two"
    endings = continuations(item)
    if two:
        del endings[NONREFERENTIAL]
    sentences = []
    for place in SIX_CONTEXTS if two else FOUR_CONTEXTS:
        template = "different" if (experiment, place) == ("diff", "pos_pos") else place
        text = context(contexts[template], item, item.owners)
        for ending, continuation in endings.items():
            condition = f"{place}_{ending}"
            felicitous = None if ending == NONREFERENTIAL else condition in FELICITOUS
            sentences.append(Sentence(condition, text, continuation, felicitous))
    return Group(name, family, tuple(sentences))


class Noun(NamedTuple):
    """A count noun with its indefinite article; the fields of an item, like the next two."""

    article: str
    noun: str
    plural: str


class Frame(NamedTuple):
    """What two people do or don't do."""

    base: str
    finite: str
    auxiliary: str
    attempt: str


class Predicate(NamedTuple):
    """What is said of the noun."""

    predicate_singular: str
    predicate_plural: str


def draw(count: int, seed: str) -> list[Item]:
    """Draws items; as :func:`drawn`."""
    rng = random.Random(f"LIEDER, {seed}")
    names = _pairs_of_names(random.Random(f"LIEDER, names, {seed}"))
    decks = {noun: rng.sample(members, len(members)) for noun, members in fitting().items()}
    found: list[Item] = []
    while len(found) < count:
        nouns = [noun for noun, deck in decks.items() if deck]
        for noun in rng.sample(nouns, len(nouns)):
            frame, predicate = decks[noun].pop()
            found.append(Item(*noun, next(names), *frame, *predicate))
    return found[:count]


def capacity() -> int:
    """The number of items that differ in noun, frame or predicate."""
    return sum(map(len, fitting().values()))


def classes() -> Mapping[str, tuple[list[Noun], list[Frame], list[Predicate]]]:
    """By name, nouns with the frames and predicates that fit each of them."""
    return {
        name: (
            [_noun(entry) for entry in one["nouns"]],
            [_frame(entry) for entry in one["frames"]],
            [Predicate(*_forms(entry)) for entry in one["predicates"]],
        )
        for name, one in words("lexicon")["classes"].items()
    }


@cache
def fitting() -> Mapping[Noun, list[tuple[Frame, Predicate]]]:
    """For each noun the frames and predicates that share no word with each other or with it."""
    return {
        noun: [
            (frame, predicate)
            for frame, predicate in product(frames, predicates)
            if not _repeats(noun, frame, predicate)
        ]
        for nouns, frames, predicates in classes().values()
        for noun in nouns
    }


_STEM = re.compile(r"(?<!\S)(?!(?:from|with|than|they|their|them|were|have|last)(?!\S))\S{4,}")
"""A word that must not come twice; those named may stand in a frame and in a predicate."""

_LETTERS = 5
"""So many first letters make two words one: "ordered" and "orders"."""


def _repeats(noun: Noun, frame: Frame, predicate: Predicate) -> bool:
    """Whether a word comes twice: "made a ring. The ring is made of silver"."""
    texts = (f"{frame.finite} {frame.attempt}", predicate.predicate_singular, noun.noun)
    verb, said, thing = ({word[:_LETTERS] for word in _STEM.findall(one.lower())} for one in texts)
    return bool(verb & said or thing & (verb | said))


def _pairs_of_names(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Pairs with different initials; nobody comes again before nearly all have come."""
    names: list[str] = words("lexicon")["names"]
    deck: list[str] = []
    while True:
        other = next((name for name in deck[1:] if name[0] != deck[0][0]), None)
        if other is None:
            deck = rng.sample(names, len(names))
            continue
        yield deck[0], other
        deck = [name for name in deck[1:] if name != other]


def _noun(entry: str) -> Noun:
    """From "a pony", or "a goose/geese"."""
    article, _, rest = entry.partition(" ")
    word, _, plural = rest.partition("/")
    return Noun(article, word, plural or _plural(word))


def _plural(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(s|x|z|ch|sh)$", word) else f"{word}s"


def _frame(entry: str) -> Frame:
    clause, _, attempt = entry.partition(" / ")
    base, finite = _forms(clause)
    return Frame(
        base, finite, "does" if finite.split()[0].endswith("s") else "did", attempt or base
    )


_AGREEING = re.compile(r"\(([^|)]+)\|([^|)]+)\)|([\w']+)\|([\w']+)")


def _forms(entry: str) -> tuple[str, str]:
    """Both readings of a text with "one|other" or "(one|other)" in some places."""
    return _AGREEING.sub(r"\1\3", entry), _AGREEING.sub(r"\2\4", entry)
