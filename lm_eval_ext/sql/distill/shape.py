"""What a column's values look like, so that values of added rows could be real.

A :class:`Shape` tells which values fit the column, and which come just before and after another:
the next day of a date, the next number of an identifier.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, Literal

from lm_eval_ext.sql.distill.formats import Format, next_text, pattern_of
from lm_eval_ext.sql.mutations import other_string
from lm_eval_ext.sql.values import Value

Kind = Literal["integer", "number", "moment", "category", "code", "text", "other"]
"""What a column holds: whole numbers, numbers, dates or times of one format, words of a
vocabulary, texts of few patterns (identifiers, telephone numbers), other texts; anything else."""

DECIMALS = 6
"""Most decimals of a number; a value has at most two more than its column's."""

NOTHING = ("", "null", "NULL", "N/A", "\\N")
"""Written for a missing value; says nothing of the others."""

LEVELS = 3
"""Levels of :attr:`Shape.relaxed`."""

_FURTHER = 60
"""Steps between a value and one at some distance."""

_BEYOND = 10
"""How far a number may lie below all others and below zero, where golds ask for that."""

_TEXTS = ("category", "code", "text")

_LARGEST = 2**53
"""Larger integers are not all exact as floats, so no value is built from them."""


@dataclass
class Shape:
    """What a column holds.

    Attributes:
        kind: See :data:`Kind`.
        nullable: Whether some value is NULL; no other column gets one.
        known: The original's values.
        named: Constants that golds compare the column with; they always fit.
        format: Of moments.
        least: The smallest number.
        decimals: The most that a number has.
        patterns: Of codes and texts (:func:`pattern_of`).
        exact: Whether patterns say how many letters and digits there are.
        relaxed: 1 if codes of other lengths, more decimals and neighbours of texts fit as well, 2
            if a new word of a vocabulary does.
        never_null: Whether it is a key, or a rewrite relies on it.
        unique: Whether a rewrite relies on it that no value is there twice.
        scattered: Whether nearly every row has a value of its own.
        differing: Whether it holds texts, a different one in every row.
        positive: Whether it is a key whose numbers are above 0.
    """

    kind: Kind
    nullable: bool
    known: frozenset[Value] = frozenset()
    named: set[Value] = field(default_factory=set)
    format: Format | None = None
    least: float = 0
    decimals: int = 0
    patterns: frozenset[str] = frozenset()
    exact: bool = False
    relaxed: int = 0
    never_null: bool = False
    unique: bool = False
    scattered: bool = False
    differing: bool = False
    positive: bool = False
    _neighbours: dict[Any, tuple[Value, ...]] = field(default_factory=dict, repr=False)
    _endable: dict[int, list[str]] = field(default_factory=dict, repr=False)

    def fits(self, value: Value) -> bool:
        """Whether a new row may hold a value."""
        if value is None:
            return self.nullable
        if self.format is not None:  # which a sentinel of the column's own is not written in
            moment = self.format.read(value)
            return moment is not None and str(value) == self.format.write(moment)
        if value in self.known or value in self.named:
            return True
        if self.kind in ("integer", "number"):
            return self._fits_number(value)
        allowed = self.kind in ("code", "text") or (self.kind == "category" and self.relaxed > 1)
        return allowed and isinstance(value, str) and self._fits_text(value)

    def level_of(self, value: Value) -> int | None:
        """Returns the first level of :attr:`relaxed` at which a value fits; None if at none."""
        levels = (level for level in range(LEVELS) if replace(self, relaxed=level).fits(value))
        return next(levels, None)

    def name(self, constants: Iterable[Value]) -> None:
        """Lets constants that golds compare the column with fit, if they are of its kind.

        A column without values takes the kind of its constants.
        """
        for constant in constants:
            number = isinstance(constant, int | float)
            if number and not self.known and self.kind == "text":
                self.kind, self.decimals = "number", 1
            value = self._as_stored(constant)
            if (
                (self.format is not None and self.format.read(value) is not None)
                or (self.kind == "number" and number)
                or (self.kind == "integer" and number and float(str(value)).is_integer())
                or (self.kind in _TEXTS and isinstance(value, str))
            ):
                self.named.add(value)
        self.forget()

    def _as_stored(self, value: Value) -> Value:
        """A number becomes a text in a column of texts, as in SQLite's comparisons."""
        number = isinstance(value, int | float)
        return str(value) if number and self.kind in _TEXTS else value

    def above(self, value: Value) -> Value:
        """Returns a value that sorts just after another; the same if there is none."""
        return self._next(value, 1)

    def below(self, value: Value) -> Value:
        """Returns a value that sorts just before another; the same if there is none."""
        return self._next(value, -1)

    def beside(self, values: Iterable[Value]) -> list[Value]:
        """Returns those of some values that fit, and their neighbours."""
        return list(dict.fromkeys(near for value in values for near in self._near(value)))

    def offered(self, values: Sequence[Value]) -> list[Value]:
        """Returns those of some values that fit, and the neighbours of the first one."""
        fitting = [stored for value in values if self.fits(stored := self._as_stored(value))]
        return list(dict.fromkeys([*fitting, *(self._near(values[0]) if values else ())]))

    def _near(self, value: Value) -> tuple[Value, ...]:
        key = (type(value), value)
        if key not in self._neighbours:
            stored = self._as_stored(value)
            near = (stored, self.above(stored), self.below(stored))
            self._neighbours[key] = tuple(value for value in near if self.fits(value))
        return self._neighbours[key]

    def further(self, values: Iterable[Value], rng: random.Random) -> list[Value]:
        """Returns values at some distance from others, so that not all rows have the same ones."""
        found = []
        for value in values:
            by = rng.randint(2, _FURTHER) * rng.choice((1, -1))
            if self.format is not None or self.kind in ("integer", "number"):
                other = self._next(self._as_stored(value), by)
                if self.fits(other):
                    found.append(other)
        return found

    def scatter(self, value: Value, rng: random.Random) -> Value:
        """Returns another value than a given one, if nearly every row has its own number or day.

        A copy of a value would tie with it wherever rows are sorted or counted.
        """
        if value is not None and self.format is not None and not self.fits(value):
            value = rng.choice(self._ordered)  # instead of a sentinel
        if not self.scattered or value is None:
            return value
        if self.kind == "text":
            return self._another_text(rng) if rng.random() < _NEW_TEXT else value
        low, high = self._ordered[0], self._ordered[-1]
        for _ in range(_SCATTERED):
            if self.kind == "number":
                size = max(abs(float(str(value))), 1.0) if isinstance(value, int | float) else 1.0
                other: Value = round(
                    float(str(value)) + rng.uniform(-0.1, 0.1) * size, self.decimals
                )
            else:
                other = self._next(value, rng.randint(2, _FURTHER) * rng.choice((1, -1)))
            if other not in self.known and self.fits(other) and _between(low, other, high):
                return other
        return value

    def other(self, value: Value, rng: random.Random) -> Value:
        """Returns some other value: a nearby one of its own, or one of the original's."""
        if self.scattered or not self._ordered:
            return self.scatter(value, rng)
        return rng.choice(self._ordered)

    @cached_property
    def _ordered(self) -> list[Value]:
        known = self.known - set(NOTHING) or self.known
        if self.format is not None:
            known = frozenset(value for value in known if self.fits(value)) or known
        numbers = sorted(value for value in known if isinstance(value, int | float))
        return [*numbers, *sorted(value for value in known if isinstance(value, str))]

    def of_length(self, length: int, rng: random.Random) -> Value:
        """Returns a text of a given length, if possible one that fits: of known ones' words."""
        length = max(length, 1)
        texts = [value for value in self._ordered if isinstance(value, str)]
        words = [word.lower() for text in texts for word in re.findall(r"[^\W\d_]+", text)]
        words = words or list("aeinorst")
        for text in [*rng.sample(texts, min(len(texts), _TRIED)), "a"]:
            if len(text) == length:
                return text
            word = max(re.findall(r"[^\W\d_]+", text), key=len, default="")
            size = len(word) + length - len(text)
            if word and size > 0:
                longer = word
                while len(longer) < size:
                    longer += rng.choice(words)
                if self.fits(other := text.replace(word, longer[:size], 1)):
                    return other
        return "".join(rng.choice("aeinorst") for _ in range(length))

    def forget(self) -> None:
        """Judges values anew, since other ones fit now."""
        self._neighbours.clear()
        self._endable.clear()
        for name in ("_unlike", "_named_numbers"):
            self.__dict__.pop(name, None)

    def fresh(self, top: Value, taken: Callable[[Value], bool]) -> Value:
        """Returns a value that continues a column, and that ``taken`` does not refuse.

        Args:
            top: The column's largest value.
            taken: Whether a value cannot be used.
        """
        if not isinstance(top, str) or self.kind == "code" or top[-1:].isdigit():
            value = top
            for _ in range(_SEARCHED):
                following = self.above(value)
                if following == value or not self.fits(following):
                    break
                if not taken(following):
                    return following
                value = following
        for text in self._invented():
            if self.fits(text) and not taken(text):
                return text
        return None

    def _another_text(self, rng: random.Random) -> Value:
        """Returns the beginning of one known text with the rest of another."""
        one, other = (str(rng.choice(self._ordered)) for _ in range(2))
        text = " ".join([one.split(" ")[0], *other.split(" ")[1:]])
        if text in self.known:
            text = _crossed(one, other) or one + rng.choice(_ENDINGS)
        return text if self.fits(text) else one

    def _invented(self) -> Iterator[str]:
        """Yields texts that are made of the column's own."""
        if self.kind == "text" or (self.kind == "category" and self.relaxed > 1):
            texts = [value for value in self._ordered if isinstance(value, str)]
            for step in range(1, min(len(texts), _STEPS)):
                for one, other in zip(texts, texts[step:], strict=False):
                    crossed = _crossed(one, other)
                    if crossed is not None and crossed not in self.known:
                        yield crossed
            for source in self._sources:
                yield from (source + (e.upper() if source.isupper() else e) for e in _ENDINGS)

    @property
    def _sources(self) -> list[str]:
        """Some of the texts that can get another ending."""
        if self.relaxed not in self._endable:
            texts = sorted(value for value in self.known if isinstance(value, str))
            fitting = (text for text in texts if self.fits(text + _ENDINGS[0]))
            self._endable[self.relaxed] = list(islice(fitting, _TRIED))
        return self._endable[self.relaxed]

    @cached_property
    def latest(self) -> Value:
        """The last of the original's days or times, which need not be written in order."""
        form = self.format
        if form is None:
            return None
        return max(self.known, key=lambda v: form.read(v) or datetime.min, default=None)

    @property
    def unit(self) -> float:
        """The smallest difference of two numbers that fit; 0 if there is none."""
        return 0.0 if self.kind == "number" and self.relaxed else 10.0**-self._places

    @property
    def _places(self) -> int:
        return min(self.decimals + 2, DECIMALS) if self.kind == "number" else 0

    def rounded(self, number: float) -> float:
        """Returns the nearest number that fits."""
        return round(number, self._places) if self.unit else number

    def _fits_number(self, value: Value) -> bool:
        if not isinstance(value, int | float) or not abs(value) < _LARGEST:
            return False
        named = self._named_numbers
        low = min([self.least, *named]) - (_BEYOND if self.relaxed and named else 0)
        if value <= 0 and (value < low or self.positive):
            return False
        return float(value).is_integer() or (self.kind == "number" and self.rounded(value) == value)

    @cached_property
    def _named_numbers(self) -> list[int | float]:
        return [number for number in self.named if isinstance(number, int | float)]

    def _fits_text(self, value: str) -> bool:
        if value != value.strip() or self._unlike.get(value.lower(), self.relaxed) > self.relaxed:
            return False
        if any(run.search(value) for run in self._no_runs):
            return False
        if pattern_of(value, exact=self.exact) in self.patterns:
            return True
        return self.relaxed > 0 and self.exact and pattern_of(value, exact=False) in self._loose

    @cached_property
    def _no_runs(self) -> tuple[re.Pattern[str], ...]:
        """Runs of letters that no known text has."""
        texts = [value for value in self.known if isinstance(value, str)]
        return tuple(run for run in _RUNS if not any(run.search(text) for text in texts))

    @cached_property
    def _unlike(self) -> dict[str, int]:
        """Texts that differ from a constant as near misses do, with the level at which they fit.

        Those that differ in case only never do.
        """
        texts = [text for text in self.named if isinstance(text, str)]
        found = {other_string(text).lower(): 2 for text in texts}
        return found | {text.lower(): LEVELS for text in texts}

    @cached_property
    def _loose(self) -> frozenset[str]:
        """The patterns of codes of any length."""
        return frozenset(pattern_of(str(value), exact=False) for value in self.known)

    def _next(self, value: Value, by: int) -> Value:
        if self.format is not None:
            moment = self.format.read(value)
            try:
                text = None if moment is None else self.format.write(moment + by * self.format.step)
            except OverflowError:
                return value
            return value if text is None else int(text) if isinstance(value, int) else text
        if isinstance(value, int | float) and abs(value) < _LARGEST:
            return value + by
        if isinstance(value, str) and (
            self.kind == "code" or (self.kind == "text" and self.relaxed)
        ):
            return next_text(value, by, wide=not self.exact)
        return value


_RUNS = tuple(
    re.compile(run, re.IGNORECASE) for run in (r"([^\W\d_])\1\1", r"([aeiou])\1$", r"(\w\w+)\1$")
)
"""A letter three times, a vowel twice at the end, an ending twice."""

_STEPS = 6
"""Texts of a column are crossed with the next ones, in their order."""


def _crossed(one: str, other: str) -> str | None:
    """Returns the beginning of one text's last word with the end of another's; None if too short.

    Words are cut between a vowel and a consonant, near the middle.
    """
    head, tail = _cut(one), _cut(other)
    if head is None or tail is None:
        return None
    return head[0] + (tail[1].upper() if one.isupper() else tail[1].lower())


def _cut(text: str) -> tuple[str, str] | None:
    word = re.search(r"[^\W\d_]{4,}$", text)
    if word is None:
        return None
    places = [
        found.start()
        for found in re.finditer(r"(?<=[aeiouy])(?=[^aeiouy\W\d_])", text, re.IGNORECASE)
        if word.start() + 2 <= found.start() <= len(text) - 2
    ]
    middle = (word.start() + len(text)) / 2
    place = min(places, key=lambda place: abs(place - middle), default=None)
    return None if place is None else (text[:place], text[place:])


_NEW_TEXT = 0.4
"""A text is a new one."""
_SCATTERED = 5
"""Other values that are tried."""


def _between(low: Value, value: Value, high: Value) -> bool:
    if isinstance(value, str):
        return str(low) <= value <= str(high)
    return all(isinstance(one, int | float) for one in (low, high, value)) and (
        float(str(low)) <= float(str(value)) <= float(str(high))
    )


_SEARCHED = 60
"""Values tried in turn for one that is not taken."""
_TRIED = 5
"""Texts of a column that get new endings."""

_ENDINGS = ("a", "e", "o", "er", "en", "is", "in", "ar", "ton", "son", "ley", "ette")
"""Make a new text of an old one."""
