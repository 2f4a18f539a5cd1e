"""The shapes of a database's columns, read from its rows."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lm_eval_ext.sql.distill.formats import FORMATS, Format, pattern_of
from lm_eval_ext.sql.distill.shape import DECIMALS, LEVELS, NOTHING, Kind, Shape
from lm_eval_ext.sql.rewrites import Need
from lm_eval_ext.sql.schema import Column, Schema, Table
from lm_eval_ext.sql.values import Value, quoted

_READ = 20_000
"""Distinct values read per column."""

_READ_AS_DATES = 1_000
"""Distinct values that are tried as dates, roughly."""

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


def shape_of(values: Sequence[Value], column: Column, *, nulls: bool, rows: int) -> Shape:
    """Returns the shape of a column.

    Args:
        values: Its distinct values other than NULL.
        column: As declared; decides where there are no values.
        nulls: Whether some value is NULL.
        rows: How many there are.
    """
    nullable = nulls
    if not values:
        return _declared(column, nullable=nullable)
    known = frozenset(values)
    values = [value for value in values if value not in NOTHING] or values
    form = _format_of(values)
    if form is not None:
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
        return replace(_of_texts(texts, nullable=nullable, words=words), known=known)
    return Shape("other", nullable, known)


def _format_of(values: Sequence[Value]) -> Format | None:
    """Returns the format that most values are written in, of numbers all; None if there is none.

    A sentinel such as 0000-00-00 or a day without a leading zero does not change what the column
    holds.
    """
    some = values[:: max(len(values) // _READ_AS_DATES, 1)]
    texts = all(isinstance(value, str) for value in some)
    counts = [
        sum(isinstance(v, str | int) and form.read(v) is not None for v in some) for form in FORMATS
    ]
    most = max(counts)
    enough = most > len(some) / 2 if texts else most == len(some)
    return FORMATS[counts.index(most)] if enough else None


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
    return next((n for n in range(1, DECIMALS) if round(number, n) == number), DECIMALS)


class Shapes(Mapping[tuple[str, str], Shape]):
    """The shapes of all columns, by the lower-case names of table and column."""

    def __init__(self, connection: sqlite3.Connection, schema: Schema) -> None:
        self.schema = schema
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
        """Returns the columns whose values must differ now.

        Rewrites rely on it, or they are names that the original has once each.
        """
        name = table.name.lower()
        return [
            (column.name,)
            for column in table.columns
            if (shape := self._shapes.get((name, column.name.lower()))) is not None
            and (shape.unique or (shape.differing and shape.relaxed < LEVELS - 1))
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
            alike = shape.kind in ("category", "code", "other")
            shape.scattered = not alike and len(values) >= max(_FEW, _OWN * full)
            shape.differing = shape.kind == "text" and len(values) == full >= _FEW
            self._shapes[table.name.lower(), column.name.lower()] = shape
