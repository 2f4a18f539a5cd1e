"""Is a string an English word?

Asked of the word list of a library, not of a file of the system, so that the answer is the same
on every machine with the same version of it.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spellchecker import SpellChecker


def is_english(word: str) -> bool:
    """Whether pyspellchecker's English list (some 160,000 words) holds a word, in any case."""
    return word.lower() in _checker()


@cache
def _checker() -> "SpellChecker":
    from spellchecker import SpellChecker

    return SpellChecker(language="en", distance=1)
