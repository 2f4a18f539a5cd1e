"""Reads ``lexicon.yaml``: names, and classes of nouns with their frames and predicates.

The file itself says what keeps a word out of it; a test applies its lists.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

OBJECT = "_"
"""Where a frame has its object."""

_AGREEING = re.compile(r"\(([^|)]+)\|([^|)]+)\)|([\w']+)\|([\w']+)")


@dataclass(frozen=True)
class Noun:
    """A count noun with its indefinite article."""

    article: str
    singular: str
    plural: str


@dataclass(frozen=True)
class Frame:
    """What two people do or don't do; each text has ``_`` for the object.

    Attributes:
        base: Follows the auxiliary: "buy _ at an auction".
        finite: Past, or third person singular of the present: "bought _ at an auction".
        auxiliary: "didn't" or "doesn't", as the tense of ``finite`` needs it.
        attempt: Follows "managed to" and "failed to".
    """

    base: str
    finite: str
    auxiliary: str
    attempt: str


@dataclass(frozen=True)
class Predicate:
    """What is said of "The <noun>", and of "The <plural>"."""

    singular: str
    plural: str


@dataclass(frozen=True)
class NounClass:
    """Nouns, frames and predicates that all fit each other."""

    nouns: Sequence[Noun]
    frames: Sequence[Frame]
    predicates: Sequence[Predicate]


@dataclass(frozen=True)
class Lexicon:
    """What items are drawn from; ``unfit`` are words by the reason that keeps them out."""

    names: Sequence[str]
    classes: Mapping[str, NounClass]
    unfit: Mapping[str, Sequence[str]]


@cache
def text() -> str:
    """The text of ``lexicon.yaml``, with Unix line ends on every system."""
    file = resources.files(__package__).joinpath("lexicon.yaml")
    return file.read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def lexicon() -> Lexicon:
    """The whole lexicon."""
    content = yaml.safe_load(text())
    classes = {
        name: NounClass(
            tuple(map(_noun, one["nouns"])),
            tuple(map(_frame, one["frames"])),
            tuple(Predicate(*_forms(predicate)) for predicate in one["predicates"]),
        )
        for name, one in content["classes"].items()
    }
    return Lexicon(tuple(content["names"]), classes, content["unfit"])


def _noun(entry: str) -> Noun:
    """From "pony", "goose/geese" or, where the first letter misleads, "a unicycle"."""
    word, _, plural = entry.partition("/")
    article, space, rest = word.partition(" ")
    if space and article in ("a", "an"):
        word = rest
    else:
        article = "an" if word[0] in "aeiou" else "a"
    return Noun(article, word, plural or _plural(word))


def _plural(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(s|x|z|ch|sh)$", word) else f"{word}s"


def _frame(entry: str) -> Frame:
    clause, _, attempt = entry.partition(" / ")
    base, finite = _forms(clause)
    present = finite.split()[0].endswith("s")
    return Frame(base, finite, "doesn't" if present else "didn't", attempt or base)


def _forms(entry: str) -> tuple[str, str]:
    """Both readings of a text with "one|other" or "(one|other)" in some places."""
    return _AGREEING.sub(r"\1\3", entry), _AGREEING.sub(r"\2\4", entry)
