"""New words, of random letters or of syllables, and whether a string is an English word.

With the seeds of the lexicons that Kim, Linzen and Smolensky (2022) published, :func:`draw` and
:func:`draw_words` give the published strings, so the order in which they use random numbers must
not change.

:func:`fresh_words` has one seed for all: no two seeds share a word. Words of a kind of letters and
a length are numbered, and the numbers are dealt to the seeds in turn: seed s gets those that leave
the remainder s when divided by :data:`CELLS`, whatever shapes and benchmarks words are drawn for,
and however many. A word of random letters that happens to be made of syllables belongs to the
syllables and is never drawn as one of letters.
"""

import math
import random
import string
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

from lm_eval_ext.errors import OptionError

if TYPE_CHECKING:
    from spellchecker import SpellChecker


def is_english(word: str) -> bool:
    """Return whether pyspellchecker's English list (some 160,000 words) holds a word.

    The list is a library's, not a system's file, so that the answer is the same on every machine.
    """
    return word.lower() in _checker()


def is_common(word: str) -> bool:
    """Return whether an English word is common; "lat", for instance, is in the list but rare."""
    return bool(_checker().word_frequency[word.lower()] >= _COMMON)


_COMMON = 500
"""Occurrences in the corpus of pyspellchecker's list."""


@cache
def _checker() -> "SpellChecker":
    from spellchecker import SpellChecker

    return SpellChecker(language="en", distance=1)


CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"
"""The letters of syllables; y counts as a consonant."""

ATTEMPTS = 1000
"""Draws of one word before its shape counts as exhausted."""


FRESH = "fresh"
"""The metadata key of the seed."""

SEEDS = 1_000_000
"""Seeds are whole numbers from 0 to one fewer."""

CELLS = 1_000_003
"""A prime above :data:`SEEDS`, so that letters do not show the seed."""

_SPREAD = 2**61 - 1
"""A prime by which numbers of words are multiplied, so that short words of one seed are not
neighbours of the next seed's. It divides no number of words, so no two words become one."""


@dataclass(frozen=True)
class Shape:
    """The shape of drawn words.

    Attributes:
        letters: ``any`` letter anywhere, or ``syllables``: consonants and vowels in turn.
        lengths: Numbers of characters, equally likely.
    """

    letters: Literal["any", "syllables"]
    lengths: range


SHAPES = {
    "random_long": Shape("any", range(15, 30)),
    "random_short": Shape("any", range(7, 15)),
    "cvcv_long": Shape("syllables", range(15, 30)),
    "cvcv_short": Shape("syllables", range(7, 15)),
}
"""The four shapes of Kim, Linzen and Smolensky (2022), by the names of our lexicons."""


WORDLIKE = Shape("syllables", range(6, 10))
"""The shape of words that replace a common word; it is none of the paper's."""


def draw(shape: Shape, rng: random.Random) -> str:
    """Draw one word of a shape."""
    length = rng.choice(shape.lengths)
    if shape.letters == "any":
        # Upper-case letters are drawn and lowered, as in the published strings.
        return "".join(rng.choice(string.ascii_letters) for _ in range(length)).lower()
    return "".join(rng.choice(letters) for letters in _syllables(length))


def _syllables(length: int) -> list[str]:
    """Return the letters that may stand at each position of a word of syllables."""
    letters = []
    for position in range(length):
        letters.append(VOWELS if position % 2 else CONSONANTS)
    return letters


def _refuse_none(word: str) -> bool:
    del word
    return False


def draw_words(
    shape: Shape,
    count: int,
    rng: random.Random,
    taken: Collection[str] = (),
    refused: Callable[[str], bool] = _refuse_none,
    *,
    draw_one: Callable[[Shape, random.Random], str] = draw,
) -> list[str]:
    """Draw different words, none of them taken.

    Args:
        shape: The shape of the words.
        count: The number of words.
        rng: The words depend on its state and on nothing else.
        taken: Words that must not be drawn, in lower case.
        refused: Returns whether a word must not be drawn either, such as :func:`is_english`.
        draw_one: Draws one word.

    Raises:
        ValueError: The shape has too few words.
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


def check_seed(seed: object) -> int:
    """Return the seed, if it is legal.

    Raises:
        OptionError: The seed is no whole number from 0 to 999,999.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < SEEDS:
        raise OptionError(f"{FRESH} is {seed!r}; use a whole number from 0 to {SEEDS - 1}")
    return seed


def fresh_words(
    shape: Shape,
    count: int,
    seed: int,
    *,
    use: str,
    taken: Collection[str] = (),
    refused: Callable[[str], bool],
) -> list[str]:
    """Draw different words of a seed, as :func:`draw_words` does.

    Args:
        shape: The shape of the words.
        count: The number of words.
        seed: The seed, from 0 to 999,999.
        use: The use of the words, such as a benchmark's name: each has its own sequence.
        taken: Words that must not be drawn, in lower case.
        refused: Returns whether a word must not be drawn either.
    """
    rng = random.Random(f"{use}, {FRESH} {seed}")
    draw_one = partial(_draw_fresh, check_seed(seed))
    return draw_words(shape, count, rng, taken, refused, draw_one=draw_one)


def _draw_fresh(seed: int, shape: Shape, rng: random.Random) -> str:
    while True:
        length = rng.choice(shape.lengths)
        if shape.letters == "syllables":
            letters = _syllables(length)
        else:
            letters = [string.ascii_lowercase for _ in range(length)]
        count = math.prod(map(len, letters))
        number = (rng.randrange(count // CELLS) * CELLS + seed) * _SPREAD % count
        word = _word_at(number, letters)
        if shape.letters == "syllables" or not is_of_syllables(word):
            return word


def _word_at(number: int, letters: Sequence[str]) -> str:
    """Return the word with a number, given the letters that may stand at each position."""
    word = ""
    for choices in reversed(letters):
        number, digit = divmod(number, len(choices))
        word = choices[digit] + word
    return word


def is_of_syllables(word: str) -> bool:
    """Return whether consonants and vowels take turns, a consonant first."""
    positions = zip(word, _syllables(len(word)), strict=True)
    return all(letter in letters for letter, letters in positions)
