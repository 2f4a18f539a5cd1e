"""Which values the columns of a database hold: what new rows are made from."""

import random
import sqlite3
from collections.abc import Sequence

from lm_eval_ext.sql.distill.scratch_db import quoted
from lm_eval_ext.sql.distill.values import above, below
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import Value

_SAMPLE = 40
"""Rows kept per table, half from each end."""


class Pools:
    """Rows and extreme values of each table that rows can be added to.

    Attributes:
        rows: Some rows of each, by lower-case names of table and column.

    Args:
        connection: Of the database; read again for a table after :meth:`forget`.
        schema: Its schema.
    """

    def __init__(self, connection: sqlite3.Connection, schema: Schema) -> None:
        self._connection = connection
        self._schema = schema
        self.rows: dict[str, list[dict[str, Value]]] = {}
        self._extremes: dict[tuple[str, str], tuple[Value, Value]] = {}
        for name in ordinary_tables(connection):
            self.rows[name.lower()] = self._sample(name)

    def forget(self, tables: frozenset[str]) -> None:
        """Reads some tables again, as rows were added."""
        for table in sorted(tables):
            self.rows[table] = self._sample(self._schema[table].name)
        for key in [key for key in self._extremes if key[0] in tables]:
            del self._extremes[key]

    def template(self, table: str, rng: random.Random) -> dict[str, Value]:
        """Returns a copy of one of a table's rows; empty if it has none."""
        rows = self.rows.get(table)
        return dict(rng.choice(rows)) if rows else {}

    def edge(self, table: str, column: str, rng: random.Random) -> Value:
        """Returns a column's smallest or largest value, or one just beyond or within."""
        low, high = self.edges(table, column)
        return rng.choice((low, high, above(high), below(low), below(high), above(low)))

    def find(
        self, table: str, key: Sequence[str], values: Sequence[Value]
    ) -> dict[str, Value] | None:
        """Returns the row that has a key, None if there is none."""
        names = [c.name for c in self._schema[table].columns if not c.generated]
        where = " AND ".join(f"{quoted(name)} = ?" for name in key)
        try:
            row = self._connection.execute(
                f"SELECT {', '.join(map(quoted, names))} FROM "
                f"{quoted(self._schema[table].name)} WHERE {where}",
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
        parts = ", ".join(quoted(column.name) for column in columns)
        rows: list[tuple[Value, ...]] = []
        try:
            query = f"SELECT {parts} FROM {quoted(name)}"
            (count,) = self._connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()
            rows += self._connection.execute(f"{query} LIMIT {_SAMPLE // 2}").fetchall()
            start = max(count - _SAMPLE // 2, len(rows))
            rows += self._connection.execute(f"{query} LIMIT -1 OFFSET {start}").fetchall()
        except sqlite3.Error:  # a virtual table whose module is not at hand
            return []
        names = [column.name.lower() for column in columns]
        return [dict(zip(names, map(_clean, row), strict=True)) for row in rows]


def ordinary_tables(connection: sqlite3.Connection) -> list[str]:
    """Returns the tables that are neither virtual nor, as its shadows, a virtual one's business."""
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
    """Text that is no Unicode can be read, not written: it is replaced."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
