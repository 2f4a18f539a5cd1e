"""Keeps a paraphrase of which form, values and columns survive and which reads as before."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lm_eval_ext.benchmarks.magnifico.generate.english import plural, value_text
from lm_eval_ext.benchmarks.magnifico.generate.paraphrase.pair import Edit, alone, edits
from lm_eval_ext.benchmarks.magnifico.generate.paraphrase.reading import (
    Event,
    Reading,
    Words,
    read,
    tokens,
    vocabulary,
)
from lm_eval_ext.benchmarks.magnifico.generate.profile import Link, Profile
from lm_eval_ext.benchmarks.magnifico.generate.values import MONTHS

NOT_PAIRED = "its base question does not follow from it by rule"

_LONGEST = 3
"""A paraphrase has at most so many times the characters of the question, and :data:`_MORE`."""

_MORE = 60
_STOPS = frozenset(".?!;:")
_NUMBERS = re.findall(r"\w+", "two three four five six seven eight nine ten eleven twelve")
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_BROKEN = re.compile(
    r"\b(?:the|an?|of|for|with|whose|their|its|each|every) "
    r"(?:is|are|of|for|has|have|what|there|show|list|give|find)\b"
    r"|\b(the|of|for|with|whose|that|is|are|and|what) \1\b"
    r"|\b(?:the|an?|of|for|with|whose|that|in|and|each|every|is|are)[?.]?$",
    re.IGNORECASE,
)
"""What no sentence has. It does not tell all that is none."""

_Entry = tuple[str, Event]


class Refused(Exception):  # noqa: N818
    """A paraphrase is not kept; the text is the reason."""


@dataclass(frozen=True)
class Asked:
    """A question with all that is needed to judge its paraphrases.

    Attributes:
        text: With the words.
        base: With the meanings.
        edits: How the base question follows.
        reading: What the question asks.
        own: Words, values, columns and tables that a paraphrase may name.
    """

    text: str
    base: str
    edits: Sequence[Edit]
    reading: Reading
    own: Words
    base_reading: Reading
    base_own: Words


class Judge:
    """Judges paraphrases of questions on one database."""

    def __init__(self, profile: Profile) -> None:
        self._nouns = {one.one: one.many for one in profile.entities.values()}
        self._columns: dict[str, list[str]] = {}
        for one in profile.entities.values():
            self._columns |= {field.phrase: [field.phrase] for field in one.fields}
        for link in profile.links:
            self._link(profile, link)
            for behind in profile.links:
                if link.parent == behind.child:
                    self._link(profile, behind, link.noun)

    def _link(self, profile: Profile, link: Link, before: str = "") -> None:
        """Adds the columns that links lead to: "customer city", "customer's city"."""
        for field in profile.entities[link.parent].fields:
            name = " ".join(filter(None, [before, link.noun, field.phrase]))
            start = f"{before}'s {link.noun}" if before else link.noun
            self._columns[name] = [
                name, f"{start}'s {field.phrase}", f"{start} {field.phrase}",
                *(f"{field.phrase} of {its} {start}" for its in ("the", "their")),
            ]  # fmt: skip

    def _phrases(self, kept: Collection[str] | None, other: str = "") -> Iterator[_Entry]:
        """Columns and tables by all that they may be called; those not ``kept`` are ``other``.

        None are all, as questions call them.
        """
        for name, texts in self._columns.items():
            what = "column" if kept is None or name in kept or not other else other
            # "The city of the customer" is the customer's city only where that is asked about.
            said = texts[:3] if kept is None else texts if name in kept else texts[:1]
            for text in said:
                yield from ((one.casefold(), (what, name)) for one in (text, plural(text)))
        for one, many in self._nouns.items():
            known = kept is None or one in kept or not other
            yield many.casefold(), ("noun" if known else other, one)
            yield one.casefold(), ("one" if known else other, one)

    def asked(
        self, novel: str, base: str, words: Mapping[str, tuple[str, str]], query: str
    ) -> Asked:
        """Reads a question; ``words`` are word and meaning by interpretation.

        Raises:
            Refused: No paraphrase of it could be kept.
        """
        found = edits(novel, base, words, self._nouns)
        if found is None:
            raise Refused(NOT_PAIRED)
        values = list(_values(query))
        places = [
            (place, (edit.role, edit.word)) for edit in found
            for place in ([edit.word] if edit.adjective else edit.places)
        ]  # fmt: skip
        first = [*places, *values]
        reading = read(_unended(novel), vocabulary([*first, *self._phrases(None)]))
        if reading.odd or reading.left:
            raise Refused("the question itself cannot be read")
        meanings = [
            (meaning, (edit.role, edit.word)) for edit in found if not edit.adjective
            for meaning in edit.places.values()
        ]  # fmt: skip
        own = vocabulary([*first, *self._phrases(reading.names, "other")])
        base_own = vocabulary([*meanings, *values, *self._phrases(reading.names)])
        return Asked(novel, base, found, reading, own, read(_unended(base), base_own), base_own)


def base_of(asked: Asked, answer: str) -> str:
    """The base question of a paraphrase.

    Args:
        asked: The question.
        answer: What a model answered when it was asked for a paraphrase.

    Raises:
        Refused: The paraphrase is not kept.
    """
    text = answer.strip()
    if reason := _problem(asked, text) or _other(asked.reading, read(_unended(text), asked.own)):
        raise Refused(reason)
    if _BROKEN.search(text):
        raise Refused("it is no sentence")
    base: str | None = text
    for edit in asked.edits:
        base = edit.base(base) if base else None
    if base is None or read(_unended(base), asked.base_own) != asked.base_reading:
        raise Refused(NOT_PAIRED)
    return base


def _problem(asked: Asked, text: str) -> str | None:
    """Why a text is no paraphrase, whatever it says."""
    if not text:
        return "empty"
    if len(text) > _LONGEST * len(asked.text) + _MORE:
        return "too long"
    if "\n" in text:
        return "several sentences or lines"
    if tokens(_unended(text).casefold()) == tokens(_unended(asked.text).casefold()):
        return "the same as the question"
    if any(len(alone(edit.word).findall(text)) != 1 for edit in asked.edits):
        return "the word is lost, changed or doubled"
    return None


def _other(was: Reading, now: Reading) -> str | None:
    """Why a text asks something else."""
    reasons = (
        (now.values != was.values, "a value is lost, changed or added"),
        (now.names != was.names, "a column or table is lost"),
        (_STOPS & set(now.odd), "several sentences or lines"),
        (now.odd != was.odd, "it has words that the question does not explain"),
        (not now.asks, "it asks nothing"),
        (now != was, "it reads otherwise"),
    )
    return next((reason for wrong, reason in reasons if wrong), None)


def _unended(text: str) -> str:
    text = text.strip()
    return text[:-1] if text[-1:] in {".", "?"} else text


def _values(query: str) -> Iterator[_Entry]:
    """The literals of a query by all legal spellings.

    With or without quotes; numbers with commas, whole ones up to twelve as words; days as in
    "5 May 2021" and "May 5, 2021". Letters keep their case.
    """
    import sqlglot
    from sqlglot import exp

    for literal in sqlglot.parse_one(query, dialect="sqlite").find_all(exp.Literal):
        if literal.is_string:
            text = literal.this.strip("%")
            texts = [text, f'"{text}"']
            if day := _DAY.fullmatch(text):
                year, month, at = day[1], MONTHS[int(day[2]) - 1], int(day[3])
                texts += [f"{month} {at}, {year}", f"{month} {at} {year}", f"{at} {month} {year}"]
        else:
            number = float(literal.this)
            text = value_text(number)
            texts = [text]
            if number.is_integer():
                texts.append(f"{int(number):,}")
                texts += [word for n, word in enumerate(_NUMBERS, 2) if n == number]
        yield from ((said, ("value", text)) for said in texts if tokens(said))
