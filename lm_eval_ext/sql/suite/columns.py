"""What a column may hold: its own values, constants of golds, and their neighbours.

Nothing else is ever put into a small database, so that no right query meets a value that it had
no reason to expect: texts are the column's own or the golds', integers stay integers, numbers get
no more decimals, columns that hold dates get days of the calendar only, and no column gets its
first NULL.
"""

import datetime
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from lm_eval_ext.sql.schema import Column, Table
from lm_eval_ext.sql.values import Value, quoted

Kind = Literal["integer", "decimal", "date", "digits", "text", "blob"]

FORMATS = (
    "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%H:%M:%S", "%H:%M", "%Y/%m/%d", "%m/%d/%Y",
    "%m/%d/%Y %H:%M", "%d/%m/%Y", "%Y-%m", "%Y%m%d", "%B %d, %Y",
)  # fmt: skip
"""Formats of dates and times; names of months are English unless a program sets its locale."""

_SAMPLE = 4_000
"""Distinct values that are read of a column, the most frequent first."""

_KEPT = 40
"""Of these, how many small databases are made from."""

_DATES = 0.6
"""Share of a column's texts that must have one format: sentinels such as 0000-00-00 are no days."""

_CLOSED = 8
"""A column with so few texts, or of single words, gets none that are made of others."""

_RUN = re.compile(r"([^\W\d_])\1\1", re.IGNORECASE)


@dataclass
class Domain:
    """The values of one column.

    Attributes:
        kind: Of most of its values.
        own: Values of the original, in a fixed order; for dates, only days of the calendar.
        constants: Values that golds name, and their neighbours.
        spellings: Texts of golds that the original has in another case.
        sample: Texts of the original, more of them than ``own`` has; also those that are no days.
        nulls: Whether the original has a NULL; always so in a table without rows, if allowed.
        unique: Whether no two rows of the original have the same value.
        format: Of dates.
    """

    kind: Kind
    own: list[Value]
    nulls: bool = False
    unique: bool = False
    format: str = ""
    decimals: int = 0
    padded: bool = True
    lowest: float = 0
    runs: bool = False
    constants: list[Value] = field(default_factory=list)
    spellings: set[Value] = field(default_factory=set)
    sample: list[str] = field(default_factory=list)

    @property
    def vocabulary(self) -> list[Value]:
        """All values but NULL."""
        return list(dict.fromkeys([*self.constants, *self.own]))

    def name(self, constant: Value) -> list[Value]:
        """Adds a constant that golds compare the column with, and what stands beside it."""
        new = [constant, *self.beside(constant)] if self.fits(constant) else []
        return self._add(new)

    def _add(self, new: Iterable[Value]) -> list[Value]:
        # LIKE takes texts that differ by case alone for equal: no database has both.
        own = {text.casefold(): text for text in self.sample}
        texts = {v: own.get(v.casefold(), v) if isinstance(v, str) else v for v in new}
        self.spellings |= {v for v, known in texts.items() if v != known}
        found = list(dict.fromkeys(texts.values()))
        self.constants = list(dict.fromkeys([*self.constants, *found]))
        return found

    def fits(self, value: Value) -> bool:
        """Whether a value is of the column's kind."""
        if isinstance(value, str):
            if self.kind == "date":
                day = _parsed(value, self.format)
                return day is not None and (not self.padded or _padded(day, self.format) == value)
            return self.kind == "text" or (self.kind == "digits" and value.isdecimal())
        if isinstance(value, float):
            return self.kind == "decimal" and _decimals(value) <= self.decimals
        return isinstance(value, int) and self.kind in ("integer", "decimal", "digits")

    def beside(self, value: Value) -> Iterator[Value]:
        """Yields the neighbours of a value: one step up and down; for dates other years, too."""
        if self.kind == "date" and isinstance(value, str):
            day = _parsed(value, self.format)
            for days in (-1, 1, -365, 366):
                if day is not None:
                    yield from self._written(day, days)
        elif self.kind == "digits":
            width = len(value) if isinstance(value, str) else 0
            for number in (int(str(value)) - 1, int(str(value)) + 1):
                if number >= 0:
                    yield str(number).zfill(width)
        elif self.kind == "text" and isinstance(value, str):
            texts = sorted({*self.sample, value})
            at = texts.index(value)
            yield from (texts[i] for i in (at - 1, at + 1) if 0 <= i < len(texts))
            yield from [text for text in self.sample if value in text and text != value][:2]
            if len(texts) > _CLOSED and any(" " in text for text in texts):
                yield from self._joined(value)
        elif isinstance(value, (int, float)) and self.kind in ("integer", "decimal"):
            step = 10.0**-self.decimals if self.decimals else 1
            for near in (value - step, value + step):
                if near >= 0 or self.lowest < 0:
                    yield round(near, self.decimals) if self.decimals else near

    def _written(self, day: datetime.datetime, days: int) -> Iterator[str]:
        try:
            moved = day + (
                datetime.timedelta(days=days)
                if "d" in self.format
                else datetime.timedelta(minutes=days)
            )
        except OverflowError:
            return
        text = _padded(moved, self.format)
        yield text if self.padded else re.sub(r"(?<!\d)0(?=\d)", "", text)

    def long(self, length: int) -> list[Value]:
        """Adds texts of about a length: the next ones below it, and those of it or above."""
        texts = sorted(self.sample, key=len)
        at = sum(len(text) < length for text in texts)
        return self._add(texts[max(0, at - 3) : at + 3])

    def contain(self, piece: str) -> list[Value]:
        """Adds texts that hold a piece of text somewhere, or are it."""
        low = piece.casefold()
        if self.kind != "text" or not piece.strip():
            return []
        found = sorted(
            (text for text in self.sample if low in text.casefold()),
            key=lambda text: (text.casefold() != low, len(text)),
        )
        # A few letters may stand anywhere; only words are put beside others.
        made = self._joined(piece) if len(piece) > 1 else []
        return self._add([*found[:3], *found[-3:], *made])

    def _joined(self, piece: str) -> list[str]:
        """A piece of text, alone and beside another text of the column."""
        low = piece.casefold()
        other = next((text for text in self.sample if low not in text.casefold()), "")
        made = (piece, f"{piece} {other}", f"{other} {piece}", f"{other} {piece} {other}")
        return [text.strip() for text in made if not self.odd(text)]

    def odd(self, text: str) -> bool:
        """Whether a text has a run of three equal letters and no text of the column has one."""
        return not self.runs and _RUN.search(text) is not None


def read_domain(connection: sqlite3.Connection, table: Table, column: Column) -> Domain:
    """Reads what a column of the original holds."""
    name, source = quoted(column.name), quoted(table.name)
    found = connection.execute(
        f"SELECT {name}, COUNT(*) FROM {source} WHERE {name} IS NOT NULL GROUP BY {name}"
        f" COLLATE BINARY ORDER BY COUNT(*) DESC, {name} COLLATE BINARY LIMIT {_SAMPLE}"
    ).fetchall()
    total, nulls = connection.execute(
        f"SELECT COUNT(*), SUM({name} IS NULL) FROM {source}"
    ).fetchone()
    values = [value for value, _ in found]
    domain = _domain_of(values) if values else _invented(column)
    domain.nulls = not column.not_null and (bool(nulls) or not total)
    domain.unique = bool(found) and found[0][1] == 1 and total > 1
    return domain


def _domain_of(values: list[Value]) -> Domain:
    """The domain of values, the most frequent first."""
    texts = [v for v in values if isinstance(v, str)]
    numbers = [v for v in values if isinstance(v, (int, float))]
    if len(numbers) * 2 >= len(values):
        real = any(isinstance(v, float) for v in numbers)
        places = max((_decimals(v) for v in numbers if isinstance(v, float)), default=0)
        lowest = min(numbers)
        return Domain(
            "decimal" if real else "integer", _spread(numbers),
            decimals=min(places, 6) if real else 0, lowest=lowest,
        )  # fmt: skip
    if not texts:
        return Domain("blob", _spread(values))
    runs = any(_RUN.search(text) for text in texts)
    some = texts[:: max(1, len(texts) // 200)]
    for format_ in FORMATS:
        if sum(_parsed(text, format_) is not None for text in some) >= _DATES * len(some):
            days = [text for text in texts if _parsed(text, format_) is not None]
            padded = [t for t in days if _padded(_parsed(t, format_), format_) == t]  # type: ignore[arg-type]
            usual = padded if 2 * len(padded) >= len(days) else days
            return Domain(
                "date", _spread(usual), format=format_, padded=usual is padded, sample=texts
            )
    if all(text.isascii() and text.isdecimal() for text in texts):
        return Domain("digits", _spread(texts))
    return Domain("text", _spread(texts), runs=runs, sample=texts)


def _invented(column: Column) -> Domain:
    """A domain for a column without values, by its declared type."""
    if "DATE" in column.type.upper() or "TIME" in column.type.upper():
        return Domain("date", [f"2020-01-{day:02}" for day in range(1, 31)], format=FORMATS[0])
    if column.numeric:
        return Domain("integer", list(range(1, 31)))
    texts = [f"{column.name} {number}" for number in range(1, 31)]
    return Domain("text", [*texts], sample=texts)


def _spread(values: Iterable[Value]) -> list[Value]:
    """Some values: the most frequent, the extremes, and others at equal distances."""
    found = list(values)
    if len(found) <= _KEPT:
        return found
    ordered = sorted(found)  # type: ignore[type-var]
    step = len(ordered) / (_KEPT // 2)
    others = [ordered[int(i * step)] for i in range(_KEPT // 2)]
    return list(dict.fromkeys([*found[: _KEPT // 2 - 2], ordered[0], ordered[-1], *others]))


def _parsed(text: str, format_: str) -> datetime.datetime | None:
    if not text[-1:].isdecimal():  # as all formats end, and most texts do not
        return None
    try:
        day = datetime.datetime.strptime(text, format_)
    except ValueError:
        return None
    return day if "%Y%m%d" not in format_ or len(text) == 8 else None  # noqa: PLR2004


def _padded(day: datetime.datetime, format_: str) -> str:
    # strftime writes years before 1000 without zeros on some systems.
    return day.strftime(format_.replace("%Y", f"{day.year:04}"))


def _decimals(number: float) -> int:
    text = repr(number)
    return 17 if "e" in text else len(text.partition(".")[2].rstrip("0"))
