"""New words, of random letters or of syllables, and whether a string is an English word.

With the seeds of the lexicons that Kim, Linzen and Smolensky (2022) published these functions
draw the published strings, so the order in which they use random numbers must not change.
"""

import random
import string
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from spellchecker import SpellChecker


def is_english(word: str) -> bool:
    """Returns whether pyspellchecker's English list (some 160,000 words) holds a word.

    A library's list, not a system's file, so that the answer is the same on every machine.
    """
    return word.lower() in _checker()


def is_common(word: str) -> bool:
    """Whether people use an English word, rather than that it is in the list: "lat" is rare."""
    return bool(_checker().word_frequency[word.lower()] >= _COMMON)


_COMMON = 500
"""Occurrences in the corpus of pyspellchecker's list."""


@cache
def _checker() -> "SpellChecker":
    from spellchecker import SpellChecker

    return SpellChecker(language="en", distance=1)


CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"
"""What syllables are made of; y counts as a consonant."""

ATTEMPTS = 1000
"""How often a word is drawn again before the shape counts as exhausted."""


@dataclass(frozen=True)
class Shape:
    """What drawn words look like.

    Attributes:
        letters: ``any`` letter anywhere, or ``syllables``: consonants and vowels in turn.
        lengths: Numbers of characters, equally likely.
        consonants: Of syllables.
    """

    letters: Literal["any", "syllables"]
    lengths: range
    consonants: str = CONSONANTS


SHAPES = MappingProxyType(
    {
        "random_long": Shape("any", range(15, 30)),
        "random_short": Shape("any", range(7, 15)),
        "cvcv_long": Shape("syllables", range(15, 30)),
        "cvcv_short": Shape("syllables", range(7, 15)),
    }
)
"""The four shapes of Kim, Linzen and Smolensky (2022), by the names of our lexicons."""


WORDLIKE = Shape("syllables", range(6, 10))
"""As long as common words, to replace one. Not a shape of the paper."""


def draw(shape: Shape, rng: random.Random) -> str:
    """Draws one word of a shape."""
    length = rng.choice(shape.lengths)
    if shape.letters == "any":
        # Upper-case letters are drawn and lowered, as in the published strings.
        return "".join(rng.choice(string.ascii_letters) for _ in range(length)).lower()
    return "".join(rng.choice(VOWELS if i % 2 else shape.consonants) for i in range(length))


def draw_words(
    shape: Shape,
    count: int,
    rng: random.Random,
    taken: Collection[str] = (),
    refused: Callable[[str], bool] = lambda word: False,
    *,
    draw_one: Callable[[Shape, random.Random], str] = draw,
) -> list[str]:
    """Draws different words, none of them taken.

    Args:
        shape: What they look like.
        count: How many.
        rng: The words depend on its state and on nothing else.
        taken: Words that must not be drawn, in lower case.
        refused: Returns whether a word must not be drawn either, such as :func:`is_english`.
        draw_one: Draws one word.

    Raises:
        ValueError: If the shape has too few words left.
    """
    words: list[str] = []
    for _ in range(count):
        for _attempt in range(ATTEMPTS):
            word = draw_one(shape, rng)
            if word not in words and word not in taken and not refused(word):
                words.append(word)
                break
        else:
            raise ValueError(f"no more new words of {shape}: {len(words)} of {count} were found")
    return words
