"""The values that a column may hold: its own, constants of golds, and their neighbours.

Nothing else is ever put into a small database, so that no right query meets a value that it had
no reason to expect: texts are the column's own or the golds', integers stay integers, numbers get
no more decimals, columns that hold dates get days of the calendar only, and no column gets its
first NULL.
"""

import datetime
import math
import re
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from lm_eval_ext.sql.schema import Column, Table, fold
from lm_eval_ext.sql.values import Value, quoted

Kind = Literal["integer", "decimal", "date", "digits", "text", "blob"]

DATE_FORMATS = (
    "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%H:%M:%S", "%H:%M", "%Y/%m/%d", "%m/%d/%Y",
    "%m/%d/%Y %H:%M", "%d/%m/%Y", "%Y-%m", "%Y%m%d", "%B %d, %Y",
)  # fmt: skip
"""Formats of dates and times; names of months are English unless a program sets its locale."""

MAX_SAMPLE = 4_000
"""Distinct values that are read of a column, the most frequent first."""

MAX_VALUES = 40
"""Values of a column that small databases are made from."""

MIN_DATE_SHARE = 0.6
"""Share of a column's texts that must have one format: sentinels such as 0000-00-00 are no days."""

_CHECKED_TEXTS = 200
"""About how many texts of a column decide whether it holds dates."""

MAX_CLOSED_TEXTS = 8
"""A column with so few texts, or of single words, gets none that are made of others."""

MAX_DECIMALS = 6
MAX_DIGITS = 18
"""The longest texts of digits that count as numbers: longer ones exceed SQLite's integers."""

LARGEST_INTEGER = 2**63 - 1

_COMPACT_DAY = 8
"""Length of a day as ``%Y%m%d``, which strptime reads of shorter texts, too."""

_LETTER_RUN = re.compile(r"([^\W\d_])\1\1", re.IGNORECASE)
"""Three equal letters in a row."""


@dataclass
class Domain:
    """The values that a column of a small database may have.

    Attributes:
        kind: The kind of most of its values.
        values: Values of the original, in a fixed order; for dates, only days of the calendar.
        has_nulls: Whether the original has a NULL; always so in a table without rows, if allowed.
        unique: Whether no two rows of the original have the same value.
        date_format: The format of dates, as of ``strptime``.
        decimals: Most digits behind the point.
        padded: Whether dates have leading zeros.
        lowest: The lowest number.
        has_runs: Whether some text has three equal letters in a row.
        constants: Values that golds name, and their neighbours.
        spellings: Texts of golds that the original has in another case.
        sample: Texts of the original, more of them than ``values``; also those that are no days.
    """

    kind: Kind
    values: list[Value]
    has_nulls: bool = False
    unique: bool = False
    date_format: str = ""
    decimals: int = 0
    padded: bool = True
    lowest: float = 0
    has_runs: bool = False
    constants: list[Value] = field(default_factory=list)
    spellings: set[Value] = field(default_factory=set)
    sample: list[str] = field(default_factory=list)

    @property
    def is_number(self) -> bool:
        """Whether its values can be added and subtracted."""
        return self.kind in ("integer", "decimal")

    @property
    def vocabulary(self) -> list[Value]:
        """All values but NULL."""
        return list(dict.fromkeys([*self.constants, *self.values]))

    def add_constant(self, constant: Value) -> list[Value]:
        """Add a constant that golds compare the column with, and its neighbours.

        Returns:
            The values that were added; none if the constant is of another kind.
        """
        if not self.fits(constant):
            return []
        return self._add([constant, *self.neighbours(constant)])

    def add_lengths(self, length: int) -> list[Value]:
        """Add texts of about a length: the next ones below it, and those of it or above."""
        texts = sorted(self.sample, key=len)
        position = bisect_left(texts, length, key=len)
        nearest = texts[max(0, position - 3) : position + 3]
        missing_lengths = {length - 1, length, length + 1} - set(map(len, nearest))
        return self._add([*nearest, *self._two_words(missing_lengths)])

    def _two_words(self, lengths: Set[int]) -> Iterator[str]:
        """Yield two words of the column for each length, where texts have several words."""
        if not self._takes_combinations:
            return
        words_by_length: dict[int, list[str]] = {}
        for text in self.sample[:MAX_VALUES]:
            for word in text.split():
                words_by_length.setdefault(len(word), []).append(word)
        for length in sorted(lengths):
            for first_length in sorted(words_by_length):
                second_words = words_by_length.get(length - 1 - first_length)
                if second_words:
                    yield f"{words_by_length[first_length][0]} {second_words[-1]}"
                    break

    @property
    def _takes_combinations(self) -> bool:
        """Whether texts have several words, so that other words may stand beside them."""
        return len(self.sample) > MAX_CLOSED_TEXTS and any(" " in text for text in self.sample)

    def add_containing(self, piece: str) -> list[Value]:
        """Add texts that hold a piece of text somewhere, or are it."""
        folded = piece.casefold()
        if self.kind != "text" or not piece.strip():
            return []
        texts = [text for text in self.sample if folded in text.casefold()]
        texts.sort(key=lambda text: (text.casefold() != folded, len(text)))
        # A few letters may stand anywhere; only words are put beside others.
        combined = self._combine(piece) if len(piece) > 1 else []
        return self._add([*texts[:3], *texts[-3:], *combined])

    def _add(self, values: Iterable[Value]) -> list[Value]:
        # LIKE takes texts that differ by case alone for equal: no database has both.
        spellings = {text.casefold(): text for text in self.sample}
        added: dict[Value, None] = {}
        for value in values:
            spelled = value
            if isinstance(value, str):
                spelled = spellings.get(value.casefold(), value)
            if spelled != value:
                self.spellings.add(value)
            added[spelled] = None
        self.constants = list(dict.fromkeys([*self.constants, *added]))
        return list(added)

    def fits(self, value: Value) -> bool:
        """Return whether a value is of the column's kind."""
        if isinstance(value, str):
            return self._fits_text(value)
        if isinstance(value, float):
            return self.kind == "decimal" and _count_decimals(value) <= self.decimals
        return isinstance(value, int) and self.kind in ("integer", "decimal", "digits")

    def _fits_text(self, text: str) -> bool:
        if self.kind == "digits":
            return _is_digits(text)
        if self.kind != "date":
            return self.kind == "text"
        day = _parse_date(text, self.date_format)
        if day is None:
            return False
        return not self.padded or _write_date(day, self.date_format) == text

    def neighbours(self, value: Value) -> Iterator[Value]:
        """Yield the neighbours of a value: one step up and down; for dates other years, too."""
        if self.kind == "digits":
            yield from _neighbouring_digits(str(value), padded=isinstance(value, str))
        elif isinstance(value, str):
            if self.kind == "date":
                yield from self._neighbouring_dates(value)
            elif self.kind == "text":
                yield from self._neighbouring_texts(value)
        elif self.is_number and isinstance(value, (int, float)):
            yield from self._neighbouring_numbers(value)

    def _neighbouring_dates(self, value: str) -> Iterator[str]:
        day = _parse_date(value, self.date_format)
        if day is not None:
            for steps in (-1, 1, -365, 366):
                yield from self._moved_date(day, steps)

    def _neighbouring_texts(self, value: str) -> Iterator[str]:
        texts = sorted({*self.sample, value})
        position = texts.index(value)
        if position > 0:
            yield texts[position - 1]
        if position + 1 < len(texts):
            yield texts[position + 1]
        longer_texts = [text for text in self.sample if value in text and text != value]
        yield from longer_texts[:2]
        if len(texts) > MAX_CLOSED_TEXTS and any(" " in text for text in texts):
            yield from self._combine(value)

    def _neighbouring_numbers(self, value: float) -> Iterator[Value]:
        step = 10.0**-self.decimals if self.decimals else 1
        below, above = value - step, value + step
        if value in (below, above):  # too large for such a step
            below, above = value / 2, value * 2
        for number in (below, above):
            neighbour = round(number, self.decimals) if self.decimals else number
            if (neighbour >= 0 or self.lowest < 0) and is_storable(neighbour):
                yield neighbour

    def _moved_date(self, day: datetime.datetime, steps: int) -> Iterator[str]:
        """Yield a date some days later, or a time some minutes later, if there is one."""
        try:
            if "d" in self.date_format:
                moved = day + datetime.timedelta(days=steps)
            else:
                moved = day + datetime.timedelta(minutes=steps)
        except OverflowError:
            return
        text = _write_date(moved, self.date_format)
        if not self.padded:
            text = re.sub(r"(?<!\d)0(?=\d)", "", text)
        yield text

    def _combine(self, piece: str) -> list[str]:
        """Return a piece of text, alone and beside another text of the column."""
        folded = piece.casefold()
        neighbour = next((text for text in self.sample if folded not in text.casefold()), "")
        before, after = f"{neighbour} {piece}", f"{piece} {neighbour}"
        texts = (piece, after, before, f"{before} {neighbour}")
        return [text.strip() for text in texts if not self.has_new_letter_run(text)]

    def has_new_letter_run(self, text: str) -> bool:
        """Return whether a text has three equal letters in a row and no text of the column has."""
        return not self.has_runs and _LETTER_RUN.search(text) is not None


def is_storable(value: Value) -> bool:
    """Return whether SQLite can store a value: integers have 64 bits, and NaN becomes NULL."""
    if isinstance(value, int):
        return -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER
    return not isinstance(value, float) or math.isfinite(value)


def read_domain(connection: sqlite3.Connection, table: Table, column: Column) -> Domain:
    """Read what a column of the original holds.

    Raises:
        sqlite3.Error: The column cannot be read.
    """
    name, source = quoted(column.name), quoted(table.name)
    counts = connection.execute(
        f"SELECT {name}, COUNT(*) FROM {source} WHERE {name} IS NOT NULL GROUP BY {name}"
        f" COLLATE BINARY ORDER BY COUNT(*) DESC, {name} COLLATE BINARY LIMIT {MAX_SAMPLE}"
    ).fetchall()
    total, nulls = connection.execute(
        f"SELECT COUNT(*), SUM({name} IS NULL) FROM {source}"
    ).fetchone()
    values = [value for value, _ in counts]
    domain = _domain_of(values) if values else _invent_domain(column)
    domain.has_nulls = not column.not_null and (bool(nulls) or not total)
    domain.unique = bool(counts) and counts[0][1] == 1 and total > 1
    return domain


def _domain_of(values: list[Value]) -> Domain:
    """Return the domain of values, the most frequent first."""
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if isinstance(value, (int, float))]
    if 2 * len(numbers) >= len(values):
        return _number_domain(numbers)
    if not texts:
        return Domain("blob", _sample_values(values))
    dates = _date_domain(texts)
    if dates is not None:
        return dates
    if all(_is_digits(text) for text in texts):
        return Domain("digits", _sample_values(texts))
    has_runs = any(_LETTER_RUN.search(text) for text in texts)
    return Domain("text", _sample_values(texts), has_runs=has_runs, sample=texts)


def _number_domain(numbers: list[int | float]) -> Domain:
    floats = [number for number in numbers if isinstance(number, float)]
    if not floats:
        return Domain("integer", _sample_values(numbers), lowest=min(numbers))
    decimals = min(max(map(_count_decimals, floats)), MAX_DECIMALS)
    return Domain("decimal", _sample_values(numbers), decimals=decimals, lowest=min(numbers))


def _date_domain(texts: list[str]) -> Domain | None:
    """Return the domain of dates; None if most texts are none."""
    checked = texts[:: max(1, len(texts) // _CHECKED_TEXTS)]
    for date_format in DATE_FORMATS:
        dates = sum(_parse_date(text, date_format) is not None for text in checked)
        if dates >= MIN_DATE_SHARE * len(checked):
            return _domain_of_dates(texts, date_format)
    return None


def _domain_of_dates(texts: list[str], date_format: str) -> Domain:
    """Return the domain of texts of which most are dates of a format."""
    all_days, padded_days = [], []
    for text in texts:
        day = _parse_date(text, date_format)
        if day is None:
            continue
        all_days.append(text)
        if _write_date(day, date_format) == text:
            padded_days.append(text)
    padded = 2 * len(padded_days) >= len(all_days)
    days = padded_days if padded else all_days
    return Domain(
        "date", _sample_values(days), date_format=date_format, padded=padded, sample=texts
    )


def _invent_domain(column: Column) -> Domain:
    """Return a domain for a column without values, by its declared type."""
    declared = fold(column.type)
    if "date" in declared or "time" in declared:
        days = [f"2020-01-{day:02}" for day in range(1, 31)]
        return Domain("date", [*days], date_format=DATE_FORMATS[0])
    if column.numeric:
        return Domain("integer", list(range(1, 31)))
    texts = [f"{column.name} {number}" for number in range(1, 31)]
    return Domain("text", [*texts], sample=texts)


def _sample_values(values: Iterable[Value]) -> list[Value]:
    """Return some values: the most frequent, the extremes, and others at equal distances."""
    by_frequency = list(values)
    if len(by_frequency) <= MAX_VALUES:
        return by_frequency
    ordered = sorted(by_frequency, key=_sort_key)
    half = MAX_VALUES // 2
    step = len(ordered) / half
    distant = [ordered[int(number * step)] for number in range(half)]
    return list(dict.fromkeys([*by_frequency[: half - 2], ordered[0], ordered[-1], *distant]))


def _sort_key(value: Value) -> tuple[int, Value]:
    """Order values of several types as SQLite does: numbers, texts, blobs."""
    if isinstance(value, bytes):
        return 2, value
    if isinstance(value, str):
        return 1, value
    return 0, value


def _neighbouring_digits(text: str, *, padded: bool) -> Iterator[str]:
    """Yield the numbers beside one of digits; padded ones have as many digits."""
    number = int(text)
    width = len(text) if padded else 0
    for neighbour in (number - 1, number + 1):
        if neighbour >= 0:
            yield str(neighbour).zfill(width)


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS


def _parse_date(text: str, date_format: str) -> datetime.datetime | None:
    if not text[-1:].isdecimal():  # as all formats end, and most texts do not
        return None
    try:
        day = datetime.datetime.strptime(text, date_format)
    except ValueError:
        return None
    if "%Y%m%d" in date_format and len(text) != _COMPACT_DAY:
        return None
    return day


def _write_date(day: datetime.datetime, date_format: str) -> str:
    # strftime writes years before 1000 without zeros on some systems.
    return day.strftime(date_format.replace("%Y", f"{day.year:04}"))


def _count_decimals(number: float) -> int:
    """Return how many digits a number has behind the point, as Python writes it."""
    text = repr(number)
    if "e" in text:
        exponent = Decimal(text).as_tuple().exponent
        return max(0, -exponent) if isinstance(exponent, int) else 0
    return len(text.partition(".")[2].rstrip("0"))
