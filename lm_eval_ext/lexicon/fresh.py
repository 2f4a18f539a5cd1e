"""One seed for all: words of which no two seeds share one.

Words of a kind of letters and a length are numbered, and the numbers are dealt to the seeds in
turn: seed s gets those that leave the remainder s when divided by :data:`CELLS`. So two seeds
never share a word, whatever shapes and benchmarks they draw for, and however many words. A word of
random letters that happens to be made of syllables belongs to the syllables and is never drawn as
one of letters.
"""

import random
import string
from collections.abc import Callable, Collection
from functools import partial

from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon.words import CONSONANTS, VOWELS, Shape, draw_words

KEY = "fresh"
"""The metadata key of the seed."""

SEEDS = 1_000_000
"""Seeds are whole numbers from 0 to one fewer."""

CELLS = 1_000_003
"""A prime above :data:`SEEDS`, so that letters do not show the seed."""

_SPREAD = 2**61 - 1
"""A prime by which numbers of words are multiplied, so that short words of one seed are not
neighbours of the next one's. It divides no number of words, so no two become one."""


def check_seed(seed: object) -> int:
    """The seed, if it is legal.

    Raises:
        OptionError: If it is no whole number from 0 to 999,999.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < SEEDS:
        raise OptionError(f"{KEY} is {seed!r}; use a whole number from 0 to {SEEDS - 1}")
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
    """Draws different words of a seed; as :func:`~lm_eval_ext.lexicon.words.draw_words`.

    Args:
        shape: What they look like.
        count: How many.
        seed: From 0 to 999,999.
        use: Of the words, such as a benchmark's name: each has a sequence of its own.
        taken: As in ``draw_words``.
        refused: As in ``draw_words``.
    """
    rng = random.Random(f"{use}, {KEY} {seed}")
    draw_one = partial(_draw, check_seed(seed))
    return draw_words(shape, count, rng, taken, refused, draw_one=draw_one)


def _draw(seed: int, shape: Shape, rng: random.Random) -> str:
    while True:
        letters = _letters(shape, rng.choice(shape.lengths))
        count = 1
        for choices in letters:
            count *= len(choices)
        number = (rng.randrange(count // CELLS) * CELLS + seed) * _SPREAD % count
        word = []
        for choices in reversed(letters):
            number, place = divmod(number, len(choices))
            word.append(choices[place])
        found = "".join(reversed(word))
        if shape.letters == "syllables" or not is_of_syllables(found):
            return found


def is_of_syllables(word: str) -> bool:
    """Whether consonants and vowels take turns, a consonant first."""
    return all(letter in (VOWELS if i % 2 else CONSONANTS) for i, letter in enumerate(word))


def _letters(shape: Shape, length: int) -> list[str]:
    if shape.letters == "any":
        return [string.ascii_lowercase] * length
    return [VOWELS if i % 2 else CONSONANTS for i in range(length)]
