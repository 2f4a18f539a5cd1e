"""Names of tables and columns as English words; numbers, values and lists in sentences."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from lm_eval_ext.lexicon import is_common

_SHORTEST = 3
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


@cache
def known() -> dict[str, Any]:
    """The content of ``words.yaml``; nobody changes it."""
    content: dict[str, Any] = yaml.safe_load(
        files(__package__).joinpath("words.yaml").read_text(encoding="utf-8")
    )
    return content


@cache
def among(name: str) -> frozenset[str]:
    """One of the file's lists of words."""
    return frozenset(known()["lists"][name].split())


def words_of(name: str) -> list[str]:
    """The words of an identifier in lower case: of ``orderDate``, ``ORDER_DATE`` or ``Order Date``.

    Known abbreviations are written out.
    """
    parts = [part.lower() for part in _PARTS.findall(name)]
    return " ".join(known()["abbreviations"].get(part, part) for part in parts).split()


def is_spoken(words: Sequence[str]) -> bool:
    """Whether all words are common English and can be a noun phrase, so that a person says them."""
    return (
        bool(words)
        and not among("no_noun") & {words[0], words[-1]}
        and all(
            word.isalpha() and word.isascii()
            and (is_common(word) or word in known()["abbreviations"].values())
            and (len(word) >= _SHORTEST or word in {"of", "to", "by"}) for word in words
        )
    )  # fmt: skip


def singular(word: str) -> str:
    """The singular of a noun that may be plural."""
    one = {many: one for one, many in known()["plurals"].items() if " " not in many}.get(word)
    if one or word in known()["plurals"]:
        return one or word
    for pattern, end in ((r"ies$", "y"), (r"(ss|x|ch|sh)es$", r"\1"), (r"(?<![sui])s$", "")):
        if re.search(pattern, word):
            return re.sub(pattern, end, word)
    return word


def row_noun(phrase: str) -> tuple[str, str]:
    """What one row and several rows of a table are called, after its name's last word."""
    front, _, noun = phrase.rpartition(" ")
    one = singular(noun)
    many = known()["plurals"].get(one, "")
    if " " in many:  # "staff members", "pieces of equipment"
        one = many.replace("s of ", " of ") if " of " in many else many.removesuffix("s")
        return f"{front} {one}".strip(), f"{front} {many}".strip()
    one = f"{front} {one}".strip()
    return one, plural(one)


def plural(phrase: str) -> str:
    """The plural of a noun phrase in the singular, by its head: "date of birth" has "dates"."""
    head, of, rest = phrase.partition(" of ")
    front, _, noun = head.rpartition(" ")
    many = known()["plurals"].get(noun)
    if not many or " " in many:
        ends = (r"(s|x|z|ch|sh)$", r"\1es"), (r"(?<![aeiou])y$", "ies"), (r"$", "s")
        many = next(re.sub(p, end, noun, count=1) for p, end in ends if re.search(p, noun))
    return f"{front} {many}".strip() + of + rest


def listed(items: Sequence[str]) -> str:
    """``a, b and c``; "" of nothing."""
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def value_text(value: object) -> str:
    """A value in a question: numbers plainly, texts in quotes unless they look like names."""
    if isinstance(value, float):
        return f"{value:.10g}"
    text = str(value)
    plain = re.fullmatch(r"[A-Z0-9][\w.&'-]*( [A-Z0-9&][\w.'-]*){0,4}|\d{4}-\d\d-\d\d", text)
    return text if plain else f'"{text}"'
