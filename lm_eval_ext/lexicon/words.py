"""Is a string an English word?

Asked of the word list of a library, not of a file of the system, so that the answer is the same
on every machine with the same version of it.

Strings that no model has seen as words: of random letters, or of syllables one could say.

Drawing is part of the record: with the seeds of the COGS fact sheet these functions give the
strings that were published, so the order in which they consume random numbers must not change.
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
    """Whether pyspellchecker's English list (some 160,000 words) holds a word, in any case."""
    return word.lower() in _checker()


@cache
def _checker() -> "SpellChecker":
    from spellchecker import SpellChecker

    return SpellChecker(language="en", distance=1)


CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"
"""What syllables are made of; y counts as a consonant."""

ATTEMPTS = 1000
"""How often a taken word is drawn again before the shape is declared exhausted."""


@dataclass(frozen=True)
class Shape:
    """What drawn words look like.

    Attributes:
        letters: ``any`` letter anywhere, or ``syllables``: consonants and vowels in turn.
        lengths: Characters, each length as likely.
    """

    letters: Literal["any", "syllables"]
    lengths: range


SHAPES = MappingProxyType(
    {
        "random_long": Shape("any", range(15, 30)),
        "random_short": Shape("any", range(7, 15)),
        "cvcv_long": Shape("syllables", range(15, 30)),
        "cvcv_short": Shape("syllables", range(7, 15)),
    }
)
"""The four shapes of Kim, Linzen and Smolensky (2022), by the names that our lexicons have."""


WORDLIKE = Shape("syllables", range(6, 10))
"""As long as common words, so that one fits where a word stood. Ours, not the paper's."""


def draw(shape: Shape, rng: random.Random) -> str:
    """Draws one word of a shape."""
    length = rng.choice(shape.lengths)
    if shape.letters == "any":
        # Upper-case letters are drawn too and lowered, as the published strings were.
        return "".join(rng.choice(string.ascii_letters) for _ in range(length)).lower()
    return "".join(rng.choice(VOWELS if i % 2 else CONSONANTS) for i in range(length))


def draw_words(
    shape: Shape,
    count: int,
    rng: random.Random,
    taken: Collection[str] = (),
    refused: Callable[[str], bool] = lambda word: False,
) -> list[str]:
    """Draws different words, none of them taken.

    Args:
        shape: What they look like.
        count: How many.
        rng: The source of randomness; the words depend on its state and on nothing else.
        taken: Words that must not come out, in lower case.
        refused: Says of a word that it must not come out either, such as
            :func:`~lm_eval_ext.lexicon.words.is_english`.

    Raises:
        ValueError: If the shape has too few words left.
    """
    words: list[str] = []
    for _ in range(count):
        for _attempt in range(ATTEMPTS):
            word = draw(shape, rng)
            if word not in words and word not in taken and not refused(word):
                words.append(word)
                break
        else:
            raise ValueError(f"no more new words of {shape}: {len(words)} of {count} were found")
    return words
