"""What a column's values look like, so that values of added rows could be real.

A :class:`Shape` is read from the original's rows. It tells which values fit the column, and which
come just before and after another: the next day of a date, the next number of an identifier.
"""

import random
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any, Literal

from lm_eval_ext.sql.mutants.expressions import other_string
from lm_eval_ext.sql.rewrites import Need
from lm_eval_ext.sql.schema import Column, Schema, Table
from lm_eval_ext.sql.values import Value, quoted

Kind = Literal["integer", "number", "moment", "category", "code", "text", "other"]
"""What a column holds: whole numbers, numbers, dates or times of one format, words of a
vocabulary, texts of few patterns (identifiers, telephone numbers), other texts; anything else."""

_READ = 20_000
"""Distinct values read per column."""

_VOCABULARY = 40
"""Most words of a vocabulary."""
_REPEATED = 2
"""Rows per word, on average, from which a column of texts counts as a vocabulary."""

_PATTERNS = 3
_SEEN = 4
"""A column of texts with at most so many patterns, each seen so often on average, holds codes."""

_FEW = 4
_OWN = 0.8
"""A column of at least so many values has a value of its own in nearly every row from this share
of distinct values."""

_DECIMALS = 6
"""Most decimals of a number; a value has at most two more than its column's."""

_FURTHER = 60
"""Steps between a value and one at some distance."""

_BEYOND = 10
"""How far a number may lie below all others and below zero, where golds ask for that."""

_TEXTS = ("category", "code", "text")

_LARGEST = 2**53
"""Larger integers are not all exact as floats, so no value is built from them."""


@dataclass(frozen=True)
class Format:
    """A way to write dates or times; ``step`` is the time from one value to the next."""

    pattern: str
    written: str
    step: timedelta

    def read(self, value: Value) -> datetime | None:
        """Returns the moment; None if the value is not written in this way, or does not exist."""
        found = re.fullmatch(self.pattern, str(value))
        if found is None:
            return None
        parts = {name: int(text) for name, text in found.groupdict().items()}
        try:
            return datetime(**{"year": 2000, "month": 1, "day": 1, **parts})  # type: ignore[arg-type]
        except ValueError:
            return None

    def write(self, moment: datetime) -> str:
        """Returns the text of a moment."""
        return self.written.format(moment)


_YEAR, _MONTH, _DAY = r"(?P<year>\d{4})", r"(?P<month>\d\d)", r"(?P<day>\d\d)"
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d)"
_SECOND = r":(?P<second>\d\d)"
_LOOSE_DATE = r"(?P<month>[1-9]|1[0-2])/(?P<day>[1-9]|[12]\d|3[01])/(?P<year>\d{4})"
_LOOSE_CLOCK = r"(?P<hour>\d|1\d|2[0-3]):(?P<minute>\d\d)"
_A_DAY, _A_MINUTE, _A_SECOND = timedelta(days=1), timedelta(minutes=1), timedelta(seconds=1)

FORMATS = (
    Format(f"{_YEAR}-{_MONTH}-{_DAY}", "{0:%Y-%m-%d}", _A_DAY),
    Format(f"{_YEAR}-{_MONTH}-{_DAY} {_CLOCK}{_SECOND}", "{0:%Y-%m-%d %H:%M:%S}", _A_SECOND),
    Format(f"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}{_SECOND}", "{0:%Y-%m-%dT%H:%M:%S}", _A_SECOND),
    Format(f"{_YEAR}-{_MONTH}-{_DAY} {_CLOCK}", "{0:%Y-%m-%d %H:%M}", _A_MINUTE),
    Format(f"{_YEAR}/{_MONTH}/{_DAY}", "{0:%Y/%m/%d}", _A_DAY),
    Format(f"{_MONTH}/{_DAY}/{_YEAR}", "{0:%m/%d/%Y}", _A_DAY),
    Format(f"{_DAY}/{_MONTH}/{_YEAR}", "{0:%d/%m/%Y}", _A_DAY),
    Format(_LOOSE_DATE, "{0.month}/{0.day}/{0:%Y}", _A_DAY),
    Format(f"{_LOOSE_DATE} {_LOOSE_CLOCK}", "{0.month}/{0.day}/{0:%Y} {0.hour}:{0:%M}", _A_MINUTE),
    Format(f"{_CLOCK}{_SECOND}", "{0:%H:%M:%S}", _A_SECOND),
    Format(f"{_CLOCK}", "{0:%H:%M}", _A_MINUTE),
    Format(r"(?P<year>1[89]\d\d|20\d\d)(?P<month>\d\d)(?P<day>\d\d)", "{0:%Y%m%d}", _A_DAY),
)
"""The first one that all of a column's values are written in is the column's."""


@dataclass
class Shape:
    """What a column holds.

    Attributes:
        kind: See :data:`Kind`.
        nullable: Whether some value is NULL, or the table is empty and the column allows it.
        known: The original's values.
        named: Constants that golds compare the column with; they always fit.
        format: Of moments.
        least: The smallest number.
        decimals: The most that a number has.
        patterns: Of codes and texts (:func:`pattern_of`).
        exact: Whether patterns say how many letters and digits there are.
        relaxed: 1 if codes of other lengths and more decimals fit as well, 2 if a first NULL and
            a new word of a vocabulary do.
        never_null: Whether it is a key, or a rewrite relies on it.
        unique: Whether a rewrite relies on it that no value is there twice.
        scattered: Whether nearly every row has a value of its own.
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
    positive: bool = False
    _neighbours: dict[Any, tuple[Value, ...]] = field(default_factory=dict, repr=False)

    def fits(self, value: Value) -> bool:
        """Whether a new row may hold a value."""
        if value is None:
            return self.nullable or (self.relaxed > 1 and not self.never_null)
        if value in self.known or value in self.named:
            return True
        if self.format is not None:
            moment = self.format.read(value)
            return moment is not None and str(value) == self.format.write(moment)
        if self.kind in ("integer", "number"):
            return self._fits_number(value)
        allowed = self.kind in ("code", "text") or (self.kind == "category" and self.relaxed > 1)
        return allowed and isinstance(value, str) and self._fits_text(value)

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
        if not self.scattered or value is None:
            return value
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
        known = self.known - set(_NOTHING) or self.known
        numbers = sorted(value for value in known if isinstance(value, int | float))
        return [*numbers, *sorted(value for value in known if isinstance(value, str))]

    def of_length(self, length: int, rng: random.Random) -> Value:
        """Returns a text of a given length, if possible one that fits: of a known one's words."""
        length = max(length, 1)
        texts = [value for value in self._ordered if isinstance(value, str)]
        for text in [*rng.sample(texts, min(len(texts), _TRIED)), "a"]:
            if len(text) == length:
                return text
            word = max(re.findall(r"[^\W\d_]+", text), key=len, default="")
            size = len(word) + length - len(text)
            if word and size > 0:
                longer = (word + word.lower() * (size // len(word)))[:size]
                if self.fits(other := text.replace(word, longer, 1)):
                    return other
        return ("a" * length)[:length]

    def forget(self) -> None:
        """Judges values anew, since other ones fit now."""
        self._neighbours.clear()
        self.__dict__.pop("_unlike", None)

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
        for text in self._invented(top):
            if self.fits(text) and not taken(text):
                return text
        return None

    def _invented(self, top: Value) -> Iterator[str]:
        """Yields texts that begin like the column's own."""
        if self.kind == "text" or (self.kind == "category" and self.relaxed > 1):
            for source in (top, *self._sources):
                if isinstance(source, str):
                    upper = source.isupper()
                    yield from (source + (e.upper() if upper else e) for e in _ENDINGS)

    @property
    def _sources(self) -> list[str]:
        """Some of the texts that can get another ending."""
        texts = sorted(value for value in self.known if isinstance(value, str))
        return [text for text in texts if self.fits(text + _ENDINGS[0])][:_TRIED]

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
        return min(self.decimals + 2, _DECIMALS) if self.kind == "number" else 0

    def rounded(self, number: float) -> float:
        """Returns the nearest number that fits."""
        return round(number, self._places) if self.unit else number

    def _fits_number(self, value: Value) -> bool:
        if not isinstance(value, int | float) or not abs(value) < _LARGEST:
            return False
        named = [number for number in self.named if isinstance(number, int | float)]
        low = min([self.least, *named]) - (_BEYOND if self.relaxed and named else 0)
        if value <= 0 and (value < low or self.positive):
            return False
        return float(value).is_integer() or (self.kind == "number" and self.rounded(value) == value)

    def _fits_text(self, value: str) -> bool:
        if value != value.strip() or self._unlike.get(value.lower(), self.relaxed) > self.relaxed:
            return False
        if pattern_of(value, exact=self.exact) in self.patterns:
            return True
        return self.relaxed > 0 and self.exact and pattern_of(value, exact=False) in self._loose

    @cached_property
    def _unlike(self) -> dict[str, int]:
        """Texts that differ from a constant as near misses do, with the level at which they fit.

        Those that differ in case only never do.
        """
        texts = [text for text in self.named if isinstance(text, str)]
        found = {other_string(text).lower(): 2 for text in texts}
        return found | {text.lower(): _NEVER for text in texts}

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
        if isinstance(value, str) and self.kind in ("code", "text"):
            return _next_text(value, by, wide=not self.exact)
        return value


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

_NOTHING = ("", "null", "NULL", "N/A", "\\N")
"""Written for a missing value; says nothing of the others."""

_NEVER = 3
"""Above every level."""

_ENDINGS = ("a", "e", "o", "er", "en", "is", "in", "ar", "ton", "son", "ley", "ette")
"""Make a new text of an old one."""


def _next_text(text: str, by: int, *, wide: bool) -> str:
    """Counts a text's last number up or down, else its last letter; a word gets a letter more."""
    digits = re.search(r"\d+(?=\D*$)", text)
    if digits is not None:
        number = int(digits[0]) + by
        written = str(number).zfill(len(digits[0]))
        if number >= 0 and (wide or len(written) == len(digits[0])):
            return text[: digits.start()] + written + text[digits.end() :]
        return text
    if wide:
        return text + "a" if by > 0 else text[:-1]
    last = text[-1:]
    following = chr(ord(last) + by) if last else ""
    same = last.isascii() and following.isalpha() and last.isupper() == following.isupper()
    return text[:-1] + following if same else text


@lru_cache(maxsize=1 << 16)
def pattern_of(text: str, *, exact: bool) -> str:
    """Returns a text with A for letters and 9 for digits; unless exact, one for a run of them."""
    plain = re.sub(r"[^\W\d_]", "A", re.sub(r"\d", "9", text))
    return plain if exact else re.sub(r"(A+)", "A", re.sub(r"(9+)", "9", plain))


def shape_of(values: Sequence[Value], column: Column, *, nulls: bool, rows: int) -> Shape:
    """Returns the shape of a column.

    Args:
        values: Its distinct values other than NULL.
        column: As declared; decides where there are no values.
        nulls: Whether some value is NULL.
        rows: How many there are.
    """
    nullable = nulls or (rows == 0 and not column.not_null)
    if not values:
        return _declared(column, nullable=nullable)
    known = frozenset(values)
    values = [value for value in values if value not in _NOTHING] or values
    for form in FORMATS:
        if all(isinstance(v, str | int) and form.read(v) is not None for v in values):
            return Shape("moment", nullable, known, format=form)
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    texts = [value for value in values if isinstance(value, str)]
    if len(numbers) == len(values):
        decimals = max(map(_decimals, numbers))
        whole = decimals == 0 and column.affinity != "REAL"
        kind: Kind = "integer" if whole else "number"
        places = 0 if whole else max(decimals, 1)
        least = min(numbers)
        positive = least > 0 and column.primary_key > 0
        return Shape(kind, nullable, known, least=least, decimals=places, positive=positive)
    if len(texts) == len(values):
        words = len(texts) <= min(_VOCABULARY, rows / _REPEATED) and not column.primary_key
        return _of_texts(texts, nullable=nullable, words=words)
    return Shape("other", nullable, known)


def _of_texts(texts: list[str], *, nullable: bool, words: bool) -> Shape:
    known: frozenset[Value] = frozenset(texts)
    exact = frozenset(pattern_of(text, exact=True) for text in texts)
    few = len(exact) <= _PATTERNS and len(exact) * _SEEN <= len(texts)
    if not words and few and any(set(pattern) - {"A", " "} for pattern in exact):
        return Shape("code", nullable, known, patterns=exact, exact=True)
    loose = frozenset(pattern_of(text, exact=False) for text in texts)
    return Shape("category" if words else "text", nullable, known, patterns=loose)


def _declared(column: Column, *, nullable: bool) -> Shape:
    declared = column.type.upper()
    if "TIMESTAMP" in declared or "DATETIME" in declared:
        return Shape("moment", nullable, format=FORMATS[1])
    if "DATE" in declared:
        return Shape("moment", nullable, format=FORMATS[0])
    if column.affinity == "INTEGER":
        return Shape("integer", nullable)
    if column.affinity in ("REAL", "NUMERIC"):
        return Shape("number", nullable, decimals=2)
    return Shape("text", nullable, patterns=frozenset({"A", "9", "A9", "A A"}))


def _decimals(number: float) -> int:
    if number.is_integer():
        return 0
    return next((n for n in range(1, _DECIMALS) if round(number, n) == number), _DECIMALS)


class Shapes(Mapping[tuple[str, str], Shape]):
    """The shapes of all columns, by the lower-case names of table and column."""

    def __init__(self, connection: sqlite3.Connection, schema: Schema) -> None:
        self._shapes: dict[tuple[str, str], Shape] = {}
        self._keys: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for name in schema:
            table = schema[name]
            if not table.view:
                self._read(connection, table)
        for name in schema:
            self._refer(schema[name], schema)

    def __getitem__(self, key: tuple[str, str]) -> Shape:
        return self._shapes[key]

    def __iter__(self) -> "Iterable[tuple[str, str]]":  # type: ignore[override]
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def fits(self, table: str, column: str, value: Value) -> bool:
        """Whether a new row may hold a value now."""
        shape = self._shapes.get((table.lower(), column.lower()))
        return shape is None or shape.fits(value)

    def promise(self, needs: Iterable[Need]) -> None:
        """Keeps what rewrites rely on; the original's rows keep the rest."""
        for need in needs:
            shape = self._shapes.get((need.table.lower(), need.column.lower()))
            if shape is not None and need.kind == "no null":
                shape.never_null = True
            if shape is not None and need.kind == "unique":
                shape.unique = True
            if shape is not None and need.kind == "integers" and shape.kind == "number":
                shape.kind, shape.decimals = "integer", 0

    def name(self, table: str, column: str, constants: Sequence[Value]) -> None:
        """Lets constants of golds fit a column, and the key that it refers to."""
        self._shapes[table, column].name(constants)
        for key in self._keys.get((table, column), ()):
            self._shapes[key].name(constants)

    def promised_unique(self, table: Table) -> list[tuple[str, ...]]:
        """Returns the columns whose values must differ because rewrites rely on it."""
        name = table.name.lower()
        return [
            (column.name,)
            for column in table.columns
            if (shape := self._shapes.get((name, column.name.lower()))) is not None and shape.unique
        ]

    def relax(self, level: int) -> None:
        """Lets more values fit (:attr:`Shape.relaxed`), where nothing else has helped."""
        for shape in self._shapes.values():
            shape.relaxed = level
            shape.forget()

    def _refer(self, table: Table, schema: Schema) -> None:
        """Lets columns that refer to a key hold what the key may hold."""
        for reference in table.foreign_keys:
            if reference.parent not in schema:
                continue
            for name, target in zip(reference.columns, reference.parent_columns, strict=False):
                own = self._shapes.get((table.name.lower(), name.lower()))
                key = self._shapes.get((reference.parent.lower(), target.lower()))
                if own is None or key is None or own is key:
                    continue
                place = (reference.parent.lower(), target.lower())
                self._keys.setdefault((table.name.lower(), name.lower()), set()).add(place)
                if key.known:
                    if own.kind == "category":
                        own.kind, own.patterns, own.exact = key.kind, key.patterns, key.exact
                    own.known |= key.known

    def _read(self, connection: sqlite3.Connection, table: Table) -> None:
        source = quoted(table.name)
        for column in table.columns:
            name = quoted(column.name)
            try:
                rows, full = connection.execute(
                    f"SELECT count(*), count({name}) FROM {source}"
                ).fetchone()
                found = connection.execute(
                    f"SELECT DISTINCT {name} FROM {source} WHERE {name} IS NOT NULL LIMIT {_READ}"
                ).fetchall()
            except sqlite3.Error:  # a virtual table whose module is unavailable
                continue
            values = [value for (value,) in found]
            shape = shape_of(values, column, nulls=full < rows, rows=rows)
            shape.never_null = column.not_null
            numeric = shape.kind in ("integer", "number", "moment")
            shape.scattered = numeric and len(values) >= max(_FEW, _OWN * full)
            self._shapes[table.name.lower(), column.name.lower()] = shape
