"""Items of our own in LIEDER's design: those of lieder_mini, and those that are drawn from a seed.

They cross items, sentence families, contexts and continuations as the paper does (section 4), with
other words. ``mini.yaml`` and ``lexicon.yaml`` hold the words and the families. lieder_mini is too
small and too regular to measure a real model.

Where items are drawn, every noun is dealt once before any comes again, with another frame or
predicate. So no two items share a noun unless there are more items than nouns. If fewer items are
drawn from the same seed, they are the first ones of a larger draw.
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
    """A noun with the words of its contexts and continuations.

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


def read_words(file: str) -> Any:
    """Return the content of ``mini`` or ``lexicon``."""
    return embedded(__file__, f"{file}.yaml")


def mini_items() -> tuple[Item, ...]:
    """Return the items of lieder_mini, in the dataset's order."""
    return tuple(Item(**entry) for entry in read_words("mini")["items"])


@cache
def mini_groups() -> tuple[Group, ...]:
    """Return the groups of lieder_mini, items outermost, as in LIEDER's files."""
    families = read_words("mini")["families"]
    groups = []
    for item in mini_items():
        for family, contexts in families.items():
            groups.append(make_group(item.noun, item, family, contexts))
    return tuple(groups)


def draw_groups(count: int, seed: str, experiment: Experiment) -> list[Group]:
    """Draw items and return their groups, items outermost.

    Args:
        count: Number of items, 1 to :func:`capacity`.
        seed: Any text; the items depend on it and on nothing else.
        experiment: ``base``, ``diff`` or ``two``.
    """
    families = read_words("lexicon")["families"]
    groups = []
    for number, item in enumerate(draw_items(count, seed), start=1):
        for family, contexts in families.items():
            name = f"{number}_{item.noun}"
            groups.append(make_group(name, item, family, contexts, experiment))
    return groups


class _Clause:
    """A verb whose object its format specifier names.

    The object is ``a dog`` by default, ``two`` of them, or a ``different`` one.
    If the finite verb is "owns", ``{finite}`` becomes "owns a dog", and ``{finite:two}`` becomes
    "owns two dogs".
    """

    def __init__(self, verb: str, item: Item) -> None:
        self.verb = verb if "_" in verb else f"{verb} _"
        self.objects = {
            "": f"{item.article} {item.noun}",
            "two": f"two {item.plural}",
            "different": f"a different {item.noun}",
        }

    def __format__(self, object_name: str) -> str:
        return self.verb.replace("_", self.objects[object_name])


def context_of(template: str, item: Item, owners: tuple[str, str]) -> str:
    """Return a family's context about an item, with these subjects of its clauses."""
    return template.format(
        one=owners[0],
        other=owners[1],
        auxiliary=item.auxiliary,
        base=_Clause(item.base, item),
        finite=_Clause(item.finite, item),
        attempt=_Clause(item.attempt, item),
    )


def continuations(item: Item) -> dict[str, str]:
    """Return the item's continuations by suffix of the condition, each with its leading space."""
    return {
        SINGULAR: f" The {item.noun} {item.predicate_singular}.",
        PLURAL: f" The {item.plural} {item.predicate_plural}.",
        NONREFERENTIAL: REMARK,
    }


def make_group(
    name: str,
    item: Item,
    family: str,
    contexts: Mapping[str, str],
    experiment: Experiment = "base",
) -> Group:
    """Return the 12 sentences of an item in a family."""
    context_names: tuple[str, ...] = FOUR_CONTEXTS
    endings = continuations(item)
    if experiment == "two":
        context_names = SIX_CONTEXTS
        del endings[NONREFERENTIAL]
    sentences = []
    for context_name in context_names:
        template = contexts[context_name]
        if experiment == "diff" and context_name == "pos_pos":
            template = contexts["different"]
        text = context_of(template, item, item.owners)
        for ending, continuation in endings.items():
            condition = f"{context_name}_{ending}"
            felicitous = None if ending == NONREFERENTIAL else condition in FELICITOUS
            sentences.append(Sentence(condition, text, continuation, felicitous))
    return Group(name, family, tuple(sentences))


class Noun(NamedTuple):
    """A count noun with its indefinite article.

    The fields of this class and the next two are those of an item.
    """

    article: str
    noun: str
    plural: str


class Frame(NamedTuple):
    """The verb of the clauses: two people do something, or don't do it."""

    base: str
    finite: str
    auxiliary: str
    attempt: str


class Predicate(NamedTuple):
    """A predicate of the continuations, in both numbers."""

    predicate_singular: str
    predicate_plural: str


class NounClass(NamedTuple):
    """Nouns, with the frames and the predicates that fit each of them."""

    nouns: list[Noun]
    frames: list[Frame]
    predicates: list[Predicate]


def draw_items(count: int, seed: str) -> list[Item]:
    """Draw items; the arguments are those of :func:`draw_groups`."""
    rng = random.Random(f"LIEDER, {seed}")
    owners = _pairs_of_names(random.Random(f"LIEDER, names, {seed}"))
    decks = {}
    for noun, combinations in combinations_by_noun().items():
        decks[noun] = rng.sample(combinations, len(combinations))
    items: list[Item] = []
    while len(items) < count:
        nouns = [noun for noun, deck in decks.items() if deck]
        for noun in rng.sample(nouns, len(nouns)):
            frame, predicate = decks[noun].pop()
            items.append(Item(*noun, next(owners), *frame, *predicate))
    return items[:count]


def capacity() -> int:
    """Return the number of items that differ in noun, frame or predicate."""
    return sum(map(len, combinations_by_noun().values()))


def classes() -> Mapping[str, NounClass]:
    """Return the classes of nouns by name."""
    by_name = {}
    for name, entries in read_words("lexicon")["classes"].items():
        nouns = [_noun(entry) for entry in entries["nouns"]]
        frames = [_frame(entry) for entry in entries["frames"]]
        predicates = [Predicate(*_forms(entry)) for entry in entries["predicates"]]
        by_name[name] = NounClass(nouns, frames, predicates)
    return by_name


@cache
def combinations_by_noun() -> Mapping[Noun, list[tuple[Frame, Predicate]]]:
    """Return, by noun, the frames and predicates that share no word with each other or with it."""
    by_noun = {}
    for nouns, frames, predicates in classes().values():
        for noun in nouns:
            combinations = product(frames, predicates)
            by_noun[noun] = [
                (frame, predicate)
                for frame, predicate in combinations
                if not _repeats(noun, frame, predicate)
            ]
    return by_noun


_STEM = re.compile(r"(?<!\S)(?!(?:from|with|than|they|their|them|were|have|last)(?!\S))\S{4,}")
"""A word that must not come twice; the listed ones may stand in a frame and in a predicate."""

_LETTERS = 5
"""Words that agree in their first five letters count as one, such as "ordered" and "orders"."""


def _repeats(noun: Noun, frame: Frame, predicate: Predicate) -> bool:
    """Return whether a word comes twice: "made a ring. The ring is made of silver"."""
    in_frame = _stems(f"{frame.finite} {frame.attempt}")
    in_predicate = _stems(predicate.predicate_singular)
    in_noun = _stems(noun.noun)
    return bool(in_frame & in_predicate or in_noun & (in_frame | in_predicate))


def _stems(text: str) -> set[str]:
    return {word[:_LETTERS] for word in _STEM.findall(text.lower())}


def _pairs_of_names(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield pairs with different initials; nobody comes again before nearly all have come."""
    names: list[str] = read_words("lexicon")["names"]
    deck: list[str] = []
    while True:
        partner = _first_with_another_initial(deck)
        if partner is None:
            deck = rng.sample(names, len(names))
            continue
        yield deck[0], partner
        deck = [name for name in deck[1:] if name != partner]


def _first_with_another_initial(deck: list[str]) -> str | None:
    """Return the first name with another initial than that of the first name in a deck."""
    for name in deck[1:]:
        if name[0] != deck[0][0]:
            return name
    return None


def _noun(entry: str) -> Noun:
    """Return the noun in an entry such as "a pony" or "a goose/geese"."""
    article, _, forms = entry.partition(" ")
    singular, _, plural = forms.partition("/")
    return Noun(article, singular, plural or _regular_plural(singular))


def _regular_plural(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    if re.search(r"(s|x|z|ch|sh)$", word):
        return f"{word}es"
    return f"{word}s"


def _frame(entry: str) -> Frame:
    clause, _, attempt = entry.partition(" / ")
    base, finite = _forms(clause)
    auxiliary = "does" if finite.split()[0].endswith("s") else "did"
    return Frame(base, finite, auxiliary, attempt or base)


_AGREEING = re.compile(r"\(([^|)]+)\|([^|)]+)\)|([\w']+)\|([\w']+)")


def _forms(entry: str) -> tuple[str, str]:
    """Return both readings of a text with "one|other" or "(one|other)" at some positions."""
    return _AGREEING.sub(r"\1\3", entry), _AGREEING.sub(r"\2\4", entry)
