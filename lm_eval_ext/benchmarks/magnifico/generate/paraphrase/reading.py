"""Parses a question into what it asks: columns shown, conditions, groups, functions, order.

A question is read by a closed list of words. What the list does not have, nor the names and values
given, is :attr:`Reading.odd`. Two questions with the same reading ask the same; the other way
round, many ways to ask the same have other readings, and are refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TypeAlias

Event: TypeAlias = tuple[str, str]
"""What a word does, and to which end: ``("of next", "max")``."""

Words: TypeAlias = Mapping[tuple[str, ...], Sequence[Event]]
"""Tokens, and what they do."""

_TOKEN = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?|n't\b|'s\b|[^\W\d_]+(?=n't\b)|[^\W_]+|\S")
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_MEASURES = {"max", "min", "avg", "sum", "count"}
_SHOWN = {"each", "distinct", "some"}
_TABLES = {"noun", "those"}
_NAMED = {"column", "one", "single", "of column", "of noun", *_TABLES}
_LISTS = {"of next": "_mods", "odd": "_odd", "other": "_odd"}


@dataclass(frozen=True)
class Reading:
    """What a question asks.

    Attributes:
        shown: The columns of the result in order, with what is computed of them.
        rest: Conditions, groups and superlatives, each with the table that it is about, sorted.
        nouns: The tables in the order in which they are first named.
        single: Whether it is about one row, such as the one with the highest price.
        odd: Words that are not known.
        left: Words that are known and have nothing to be about.
        values: All values, sorted.
        names: All columns and tables.
        asks: Whether it is a question or a request.
    """

    shown: tuple[str, ...]
    rest: tuple[str, ...]
    nouns: tuple[str, ...]
    single: bool
    odd: tuple[str, ...]
    left: tuple[str, ...]
    values: tuple[str, ...]
    names: frozenset[str]
    asks: bool


def tokens(text: str) -> list[str]:
    """The words, numbers and signs of a text; typographic quotes are plain ones."""
    return _TOKEN.findall(text.translate(_QUOTES))


@cache
def known() -> Mapping[tuple[str, ...], Sequence[Event]]:
    """The closed list."""
    import yaml

    content = yaml.safe_load(files(__package__).joinpath("words.yaml").read_text("utf-8"))
    found: dict[tuple[str, ...], list[Event]] = {}
    for what, entry in content.items():
        groups = entry if isinstance(entry, dict) else None
        for meaning, texts in groups.items() if groups else ((None, entry),):
            for text in texts:
                found.setdefault(tuple(tokens(text)), []).append((what, meaning or text))
    return found


def lexed(text: str, own: Words) -> list[list[Event]]:
    """The events of each word or known phrase, the longest ones first.

    ``own`` goes before the closed list; its keys are matched as they are, or else in lower case.
    """
    parts, known_words = tokens(text), known()
    lower = [part.casefold() for part in parts]
    longest = max(map(len, (*own, *known_words)))
    found: list[list[Event]] = []
    at = 0
    while at < len(parts):
        for size in range(min(longest, len(parts) - at), 0, -1):
            exact, plain = tuple(parts[at : at + size]), tuple(lower[at : at + size])
            events = own.get(exact) or own.get(plain) or known_words.get(plain)
            if events:
                found.append(list(events))
                at += size
                break
        else:
            found.append([("odd", lower[at])])
            at += 1
    return found


@dataclass
class _Mention:
    """A column or table where the question names it."""

    kind: str
    name: str
    mods: list[str]
    in_clause: bool
    values: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    apart: bool = False


def read(text: str, own: Words) -> Reading:
    """Parses a question, without its last sign."""
    reader = _Reader()
    for events in lexed(text, own):
        reader.take(events)
    return reader.reading()


class _Reader:
    def __init__(self) -> None:
        self._mentions: list[_Mention] = []
        self._mods: list[str] = []
        self._asks: list[str] = []
        self._values: list[str] = []
        self._odd: list[str] = []
        self._left: list[str] = []
        self._operator = ""
        self._or = self._in_clause = self._single = False
        self._before: Event = ("start", "")

    def take(self, events: Sequence[Event]) -> None:
        """Takes the events of one word: "which" asks, or tells more of what stands before it."""
        both = {"ask", "clause"} <= {what for what, _ in events}
        tells = self._before[0] in _NAMED or self._before == ("filler", "and")
        for event in events:
            what, meaning = event
            if both and what == ("ask" if tells else "clause"):
                continue
            if what not in {"value", "before value"}:  # a word between is about something else
                self._left += filter(None, [self._operator, "or" if self._or else ""])
                self._operator, self._or = "", False
            self._one(what, meaning)
            if (what, self._before[0]) != ("of next", "value"):  # "more than 5 large orders"
                self._before = event

    def _one(self, what: str, meaning: str) -> None:
        if what in {"ask", "tell"}:
            self._left += [meaning] if what in self._asks else []
            self._asks.append(what)
        self._in_clause = what == "clause" or (
            self._in_clause and what not in {"ask", "tell", "over"}
        )
        self._single |= what == "single"
        if what in _LISTS:
            getattr(self, _LISTS[what]).append(meaning)
        elif what in {"column", "noun", "one"} or (what == "those" and self._mods):
            self._mention(what, meaning)
        elif what in {"of column", "of noun"}:
            kinds = {"noun"} if what == "of noun" else {"column", *_TABLES}
            about = self._last(*kinds)
            (about.mods if about else self._left).append(meaning)
        elif what == "records" and self._mentions:  # what follows is not about their table
            self._mentions[-1].kind += " records"
        elif what == "before value":
            self._left += filter(None, [self._operator])
            self._operator = meaning
        elif what == "or":
            self._or = self._before[0] == "value"
            self._left += [] if self._or else ["or"]
        elif what == "value":
            self._value(meaning)
        elif what == "behind value":
            self._behind(meaning)

    def _last(self, *kinds: str) -> _Mention | None:
        return next((m for m in reversed(self._mentions) if m.kind in kinds), None)

    def _valued(self) -> _Mention | None:
        return next((m for m in reversed(self._mentions) if m.values), None)

    def _mention(self, what: str, name: str) -> None:
        kind = "noun" if what == "one" else what
        mods, self._mods = self._mods, []
        before = self._mentions[-1].mods if self._mentions else []
        self._single |= what == "one" and not {"each", "some"} & {*mods, *before}
        if kind == "column":  # "with a price"
            mods = [mod for mod in mods if mod != "some"]
        elif self._in_clause and ("noun", name) in {(m.kind, m.name) for m in self._mentions}:
            self._left.append(name)  # "products that have products"
        one = _Mention(kind, name, mods, self._in_clause)
        valued = self._valued() if self._before[0] in {"value", "as"} else None
        if valued and (kind == "noun" or not mods):
            one.values.append(valued.values.pop())  # "the Lamps category", "3 as their price"
            valued.apart = False
        self._mentions.append(one)

    def _value(self, value: str) -> None:
        self._values.append(value)
        operator, self._operator = self._operator or "=", ""
        about = self._last("column")
        if about is None:
            about = _Mention("column", "", [], in_clause=True)
            self._mentions.append(about)
        about.apart |= about is not self._mentions[-1]
        if self._or and about.values and operator == "=":
            operator, others = about.values.pop()
            about.values.append((operator, others | {value}))
            self._or = False
        else:
            about.values.append((operator, frozenset({value})))

    def _behind(self, operator: str) -> None:
        about = self._valued()
        if self._before[0] == "value" and about and about.values[-1][0] == "=":
            about.values[-1] = (operator, about.values[-1][1])
        else:
            self._left.append(operator)

    def reading(self) -> Reading:
        """What all that was taken says."""
        mentions = [m for m in self._mentions if m.name or m.values]
        left = [*self._left, *self._mods, *filter(None, [self._operator, "or" if self._or else ""])]
        left += [m.name for m in mentions if m.apart]  # another table stands before the value
        left += ["each"] if _is_for_each(mentions) else []
        shown: list[str] = []
        rest: list[str] = []
        for place, one in enumerate(mentions):
            mods = [mod for mod in one.mods if mod != "each"]
            said = " ".join([*mods, one.name])
            near = [*mentions[:place][::-1], *mentions[place + 1 :]]
            tables = [m.name for m in near if m.kind in _TABLES]
            about = said if "terms" in mods else f"{[*tables, ''][0]}: {said}"
            inside = one.in_clause or one.kind == "those" or "terms" in mods
            rest += [f"{about} {op} {' or '.join(sorted(values))}" for op, values in one.values]
            if one.kind == "column" and "each" in one.mods:
                rest.append(f"for each {said}")
            elif one.kind == "column" and not one.values:
                (rest if inside else shown).append(about if inside else said)
            elif one.kind != "column" and mods:
                (shown if "count" in mods and not inside else rest).append(said)
        nouns = (m.name for m in mentions if m.kind.startswith("noun"))
        return Reading(
            tuple(shown), tuple(sorted(rest)), tuple(dict.fromkeys(nouns)), self._single,
            tuple(self._odd), tuple(left), tuple(sorted(self._values)),
            frozenset(m.name for m in mentions if m.name), bool(self._asks),
        )  # fmt: skip


def _is_for_each(mentions: Sequence[_Mention]) -> bool:
    """Whether something is computed of each row: "the name of each product" is that of all."""
    each = [m for m in mentions if m.kind != "column" and "each" in m.mods]
    measured = any(
        _MEASURES & set(m.mods)
        or (m.kind == "column" and not m.in_clause and set(m.mods) - _SHOWN) for m in mentions
    )  # fmt: skip
    return any(measured or m.mods[0] != "each" or m.kind == "those" for m in each)


def vocabulary(entries: Iterable[tuple[str, Event]]) -> dict[tuple[str, ...], list[Event]]:
    """Texts and what they do, by their tokens; the first entry of a text counts."""
    found: dict[tuple[str, ...], list[Event]] = {}
    for text, event in entries:
        found.setdefault(tuple(tokens(text)), [event])
    return found
