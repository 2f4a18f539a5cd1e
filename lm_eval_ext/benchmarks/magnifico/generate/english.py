"""Names of tables and columns as English words, and numbers, values and lists in sentences."""

import re
from collections.abc import Sequence

from lm_eval_ext.lexicon.words import is_common

_SHORTEST = 3
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")

_LONG = {
    "addr": "address", "amt": "amount", "avg": "average", "dept": "department", "desc": "",
    "dob": "date of birth", "emp": "employee", "fname": "first name", "lname": "last name",
    "firstname": "first name", "lastname": "last name", "max": "maximum", "mgr": "manager",
    "min": "minimum", "num": "number", "org": "organization", "pct": "percentage",
    "qty": "quantity", "yr": "year", "surname": "last name", "givenname": "first name",
    "forename": "first name", "forenames": "first name", "dest": "destination", "temp": "",
    "fax": "fax", "username": "username", "url": "url", "email": "email", "gpa": "gpa",
}  # fmt: skip
"""Abbreviations that have one meaning; those with several have none."""

_STRANGE_PLURALS = {
    "person": "people", "man": "men", "woman": "women", "child": "children", "staff": "staff",
    "series": "series", "species": "species", "aircraft": "aircraft", "faculty": "faculty members",
    "status": "statuses", "campus": "campuses", "bus": "buses", "medium": "media",
    "nationality": "nationalities", "news": "news", "equipment": "pieces of equipment",
    "gas": "gases", "address": "addresses", "analysis": "analyses", "movie": "movies",
}  # fmt: skip
_SINGULARS = {many: one for one, many in _STRANGE_PLURALS.items()} | {
    "staff": "staff member", "faculty": "faculty member", "cookies": "cookie",
}  # fmt: skip
_MANY = {"staff member": "staff members", "faculty member": "faculty members"}


def words_of(name: str) -> list[str]:
    """The words of an identifier in lower case: of ``orderDate``, ``ORDER_DATE`` or ``Order Date``.

    Known abbreviations are written out.
    """
    parts = [part.lower() for part in _PARTS.findall(name)]
    return " ".join(_LONG.get(part, part) for part in parts).split()


def is_spoken(words: Sequence[str]) -> bool:
    """Whether all words are English, so that a person would say them."""
    return bool(words) and all(
        word.isalpha() and word.isascii() and (is_common(word) or word in _LONG.values())
        and (len(word) >= _SHORTEST or word in {"of", "to", "by"}) for word in words
    )  # fmt: skip


def singular(word: str) -> str:
    """The singular of a noun that may be plural."""
    if word in _SINGULARS:
        return _SINGULARS[word]
    if word in _STRANGE_PLURALS or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


def plural(phrase: str) -> str:
    """The plural of a noun phrase in the singular, by its head: "date of birth" has "dates"."""
    if phrase in _MANY:
        return _MANY[phrase]
    head, of, rest = phrase.partition(" of ")
    front, _, noun = head.rpartition(" ")
    if noun in _STRANGE_PLURALS:
        many = _STRANGE_PLURALS[noun]
    elif re.search(r"(s|x|z|ch|sh)$", noun):
        many = noun + "es"
    elif re.search(r"[^aeiou]y$", noun):
        many = noun[:-1] + "ies"
    else:
        many = noun + "s"
    return f"{front} {many}".strip() + of + rest


def listed(items: Sequence[str], last: str = "and") -> str:
    """``a, b and c``."""
    return f" {last} ".join(filter(None, (", ".join(items[:-1]), items[-1])))


def value_text(value: object) -> str:
    """A value in a question: numbers plainly, texts in quotes unless they look like names."""
    if isinstance(value, float):
        return f"{value:.10g}"
    text = str(value)
    plain = re.fullmatch(r"[A-Z0-9][\w.&'-]*( [A-Z0-9&][\w.'-]*){0,4}|\d{4}-\d\d-\d\d", text)
    return text if plain else f'"{text}"'
