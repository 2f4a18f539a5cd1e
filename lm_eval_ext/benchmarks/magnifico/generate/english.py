"""Names of tables and columns as English words; numbers, values and lists in sentences."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from lm_eval_ext.lexicon import is_common
from lm_eval_ext.reading import embedded

_MIN_LETTERS = 3
"""Letters of the shortest word that is taken for English, apart from a few prepositions."""

_PREPOSITIONS = frozenset({"of", "to", "by"})

_IDENTIFIER_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")

_SINGULAR_ENDINGS = ((r"ies$", "y"), (r"(ss|x|ch|sh)es$", r"\1"), (r"(?<![sui])s$", ""))
_PLURAL_ENDINGS = ((r"(s|x|z|ch|sh)$", r"\1es"), (r"(?<![aeiou])y$", "ies"), (r"$", "s"))

_PLAIN_VALUE = re.compile(r"[A-Z0-9][\w.&'-]*( [A-Z0-9&][\w.'-]*){0,4}|\d{4}-\d\d-\d\d")
"""A text that looks like a name or a date."""


def grammar() -> dict[str, Any]:
    """Return the content of ``words.yaml``; nobody changes it."""
    content: dict[str, Any] = embedded(__file__, "words.yaml")
    return content


@cache
def word_list(name: str) -> frozenset[str]:
    """Return one of the file's lists of words."""
    return frozenset(grammar()["lists"][name].split())


def words_of(name: str) -> list[str]:
    """Return the words of an identifier in lower case.

    ``orderDate``, ``ORDER_DATE`` and ``Order Date`` have the same words. Known abbreviations are
    written out.
    """
    abbreviations = grammar()["abbreviations"]
    words: list[str] = []
    for part in _IDENTIFIER_PARTS.findall(name):
        lower = part.lower()
        words += abbreviations.get(lower, lower).split()
    return words


def is_spoken(words: Sequence[str]) -> bool:
    """Return whether all words are common English and can be a noun phrase that a person says."""
    if not words or word_list("no_noun") & {words[0], words[-1]}:
        return False
    return all(_is_english_word(word) for word in words)


def _is_english_word(word: str) -> bool:
    if not (word.isalpha() and word.isascii()):
        return False
    if len(word) < _MIN_LETTERS and word not in _PREPOSITIONS:
        return False
    return is_common(word) or word in grammar()["abbreviations"].values()


def singular(word: str) -> str:
    """Return the singular of a noun that may be plural."""
    irregular = grammar()["plurals"]
    for single, plural_noun in irregular.items():
        if plural_noun == word and " " not in plural_noun:
            return str(single)
    if word in irregular:
        return word
    for pattern, ending in _SINGULAR_ENDINGS:
        if re.search(pattern, word):
            return re.sub(pattern, ending, word)
    return word


def row_noun(phrase: str) -> tuple[str, str]:
    """Return the nouns for one row and for several rows of a table, after its name's last word."""
    front, _, noun = phrase.rpartition(" ")
    single = singular(noun)
    phrase_plural = grammar()["plurals"].get(single, "")
    if " " in phrase_plural:  # "staff members", "pieces of equipment"
        if " of " in phrase_plural:
            single = phrase_plural.replace("s of ", " of ")
        else:
            single = phrase_plural.removesuffix("s")
        return f"{front} {single}".strip(), f"{front} {phrase_plural}".strip()
    row = f"{front} {single}".strip()
    return row, plural(row)


def plural(phrase: str) -> str:
    """Return the plural of a noun phrase in the singular, by its head.

    "date of birth" has the plural "dates of birth".
    """
    head, of, rest = phrase.partition(" of ")
    front, _, noun = head.rpartition(" ")
    plural_noun = grammar()["plurals"].get(noun)
    if not plural_noun or " " in plural_noun:
        plural_noun = _regular_plural(noun)
    return f"{front} {plural_noun}".strip() + of + rest


def _regular_plural(noun: str) -> str:
    for pattern, ending in _PLURAL_ENDINGS:
        if re.search(pattern, noun):
            return re.sub(pattern, ending, noun, count=1)
    return noun


def listed(items: Sequence[str]) -> str:
    """Return items as ``a, b and c``; "" for none."""
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def value_text(value: object) -> str:
    """Return a value as questions show it.

    Numbers are plain, and texts stand in quotes unless they look like names.
    """
    if isinstance(value, float):
        return f"{value:.10g}"
    text = str(value)
    return text if _PLAIN_VALUE.fullmatch(text) else f'"{text}"'
