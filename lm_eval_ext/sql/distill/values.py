"""Values for new rows: those in a database's columns, and others that sort just beside them."""

import math
import random
import re
import sqlite3
from collections.abc import Iterable, Sequence

from lm_eval_ext.sql.distill.shape import Shape
from lm_eval_ext.sql.distill.shapes import Shapes
from lm_eval_ext.sql.parsing import HOLDS
from lm_eval_ext.sql.schema import Column, Schema, Table
from lm_eval_ext.sql.values import Value, quoted, quoted_all

_LARGEST = 2**53
"""Larger integers are not all exact as floats, so no value is built from them."""

_SAMPLE = 40
"""Rows read per table, half from each end."""


def above(value: Value) -> Value:
    """Returns a value that sorts just after another."""
    if isinstance(value, str):
        last = value[-1:]
        # "1987-07-01" becomes "1987-07-02": most dates stay dates.
        return value[:-1] + str(int(last) + 1) if last in set("012345678") else value + "a"
    if isinstance(value, int | float) and abs(value) < _LARGEST:
        return value + 1
    return value


def below(value: Value) -> Value:
    """Returns a value that sorts just before another."""
    if isinstance(value, str):
        last = value[-1:]
        return value[:-1] + str(int(last) - 1) if last in set("123456789") else value[:-1]
    if isinstance(value, int | float) and abs(value) < _LARGEST:
        return value - 1
    return value


def compares(operator: str, left: Value, right: Value) -> bool:
    """Whether a comparison holds in SQLite, as far as that follows from the two values.

    Texts that look like numbers count as numbers here, as SQLite may convert them to the
    column's affinity. Unclear cases count as true: the database decides in the end.
    """
    if left is None or right is None:
        return False
    a, b = _plain(left), _plain(right)
    if isinstance(a, str) != isinstance(b, str) or isinstance(a, bytes) or isinstance(b, bytes):
        return True
    return HOLDS[operator](a, b)


OPPOSITE = {"=": "<>", "<>": "=", ">": "<=", "<=": ">", "<": ">=", ">=": "<"}
"""The operator that holds where the given one does not."""


def nearby(bound: Value) -> list[Value]:
    """Returns values on both sides of a bound, the closest ones first."""
    near = [bound, above(bound), below(bound), above(above(bound)), below(below(bound))]
    if isinstance(bound, int | float) and abs(bound) < _LARGEST:
        near += [bound + 10, bound - 10, bound * 2, 0, math.floor(bound), math.ceil(bound)]
    return near


def satisfying(operator: str, bound: Value) -> list[Value]:
    """Returns values for which a comparison with a bound holds, the closest ones first."""
    return [value for value in nearby(bound) if compares(operator, value, bound)]


def matching(pattern: str, rng: random.Random) -> str:
    """Returns a text that a LIKE pattern matches."""
    filler = rng.choice(("", "", "a", "xy", "b c"))
    return "".join({"%": filler, "_": "a"}.get(letter, letter) for letter in pattern)


def is_like(pattern: str, value: Value) -> bool:
    """Whether LIKE matches, ignoring the case of letters."""
    parts = [{"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern]
    return value is not None and bool(
        re.fullmatch("".join(parts), str(value), re.IGNORECASE | re.DOTALL)
    )


def with_number(value: Value, number: float) -> Value:
    """Returns a number in a value's format: for a date, the date with that year."""
    whole = int(number) if float(number).is_integer() else number
    if not isinstance(value, str):
        return whole
    return re.sub(r"^\s*-?\d*\.?\d*", str(whole), value, count=1)


def number_of(value: Value) -> float:
    """Returns the number that SQLite's arithmetic uses for a value."""
    if isinstance(value, int | float):
        return value
    found = re.match(r"\s*([+-]?\d+\.?\d*)", value) if isinstance(value, str) else None
    return 0 if found is None else float(found[1])


def fresh(connection: sqlite3.Connection, table: Table, column: Column, shape: Shape) -> Value:
    """Returns a value that no row of the table has in a column, in the format of the others.

    Returns None if there is none.
    """
    name, source = quoted(column.name), quoted(table.name)
    (top,) = connection.execute(f"SELECT max({name}) FROM {source}").fetchone()
    top = shape.latest or top
    if isinstance(top, str) and re.fullmatch(r"\d{1,15}", top):
        (number,) = connection.execute(
            f"SELECT max(CAST({name} AS INTEGER)) FROM {source}"
        ).fetchone()
        top = str(number).zfill(len(top))
    if top is None:
        top = "k1" if column.affinity in ("TEXT", "BLOB") else 1
        if shape.fits(top):
            return str(top) if isinstance(top, str) else top

    def taken(value: Value) -> bool:
        query = f"SELECT 1 FROM {source} WHERE {name} = ? LIMIT 1"
        return connection.execute(query, (value,)).fetchone() is not None

    return shape.fresh(_clean(top), taken)


def _plain(value: Value) -> Value:
    if isinstance(value, str) and value[-1:] in _DIGITS and _NUMBER.fullmatch(value):
        return float(value)
    return value


_DIGITS = frozenset("0123456789. ")
_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d*)?\s*")


class Pools:
    """Sample rows and extreme values of each table that rows can be added to.

    Attributes:
        rows: Some rows of each, by lower-case names of table and column.
    """

    def __init__(self, connection: sqlite3.Connection, schema: Schema, shapes: Shapes) -> None:
        self._connection = connection
        self._schema = schema
        self._shapes = shapes
        self.rows: dict[str, list[dict[str, Value]]] = {}
        self._extremes: dict[tuple[str, str], tuple[Value, Value]] = {}
        for name in ordinary_tables(connection):
            self.rows[name.lower()] = self._sample(name)

    def reread(self, tables: frozenset[str]) -> None:
        """Samples tables again after rows were added."""
        for table in sorted(tables):
            self.rows[table] = self._sample(self._schema[table].name)
        for key in [key for key in self._extremes if key[0] in tables]:
            del self._extremes[key]

    def template(self, table: str, rng: random.Random) -> dict[str, Value]:
        """Returns a copy of one of a table's rows; empty if it has none."""
        rows = self.rows.get(table)
        return dict(rng.choice(rows)) if rows else {}

    def edge(self, table: str, column: str, rng: random.Random) -> Value:
        """Draws a column's smallest or largest value, or one just beyond or within them."""
        low, high = self.edges(table, column)
        shape = self._shapes[table, column]
        fitting = shape.beside((low, high))
        return rng.choice(fitting) if fitting else low

    def find(
        self, table: str, key: Sequence[str], values: Sequence[Value]
    ) -> dict[str, Value] | None:
        """Returns the row that has a key, None if there is none."""
        names = [c.name for c in self._schema[table].columns if not c.generated]
        try:
            row = self._connection.execute(
                f"SELECT {quoted_all(names)} FROM "
                f"{quoted(self._schema[table].name)} WHERE {all_equal(key)}",
                values,
            ).fetchone()
        except (sqlite3.Error, OverflowError, UnicodeError):
            return None
        if row is None:
            return None
        return dict(zip((name.lower() for name in names), map(_clean, row), strict=True))

    def edges(self, table: str, column: str) -> tuple[Value, Value]:
        """Returns a column's smallest and largest value."""
        found = self._extremes.get((table, column))
        if found is None:
            name, source = quoted(column), quoted(self._schema[table].name)
            found = self._connection.execute(
                f"SELECT min({name}), max({name}) FROM {source}"
            ).fetchone()
            found = (_clean(found[0]), _clean(found[1]))
            self._extremes[table, column] = found
        return found

    def _sample(self, name: str) -> list[dict[str, Value]]:
        columns = [column for column in self._schema[name].columns if not column.generated]
        if not columns:
            return []
        parts = quoted_all(column.name for column in columns)
        rows: list[tuple[Value, ...]] = []
        try:
            query = f"SELECT {parts} FROM {quoted(name)}"
            (count,) = self._connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()
            rows += self._connection.execute(f"{query} LIMIT {_SAMPLE // 2}").fetchall()
            start = max(count - _SAMPLE // 2, len(rows))
            rows += self._connection.execute(f"{query} LIMIT -1 OFFSET {start}").fetchall()
        except sqlite3.Error:  # a virtual table whose module is unavailable
            return []
        names = [column.name.lower() for column in columns]
        return [dict(zip(names, map(_clean, row), strict=True)) for row in rows]


def all_equal(names: Iterable[str]) -> str:
    """Returns a condition that columns equal as many parameters."""
    return " AND ".join(f"{quoted(name)} = ?" for name in names)


def ordinary_tables(connection: sqlite3.Connection) -> list[str]:
    """Returns the tables that are neither virtual nor shadow tables of a virtual one."""
    found = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
        "ESCAPE '\\' ORDER BY name"
    ).fetchall()
    virtual = [name for name, sql in found if sql.upper().startswith("CREATE VIRTUAL")]
    return [
        name
        for name, _ in found
        if not any(name == other or name.startswith(f"{other}_") for other in virtual)
    ]


def _clean(value: Value) -> Value:
    """Replaces bytes that are not valid text: they can be read, but not written."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
