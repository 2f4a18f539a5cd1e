"""Adding rows so that keys stay valid: with new keys where they clash, with parents if missing."""

import random
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lm_eval_ext.sql.distill.shape import Shape
from lm_eval_ext.sql.distill.shapes import Shapes
from lm_eval_ext.sql.distill.values import all_equal, fresh
from lm_eval_ext.sql.schema import Column, ForeignKey, Schema, Table
from lm_eval_ext.sql.values import Value, quoted, quoted_all

_DEPTH = 5
"""Levels of parents that may be added for one row."""

_LEAST = -1_000
"""Smallest rowid of a row that is put before all others."""

_PARENTS = 20
"""Existing parents of which one is drawn."""


class RefusedError(Exception):
    """The row cannot be added without breaking a key or a constraint."""


@dataclass
class Added:
    """An added row; ``where`` is a condition that finds it, ``key`` its parameters."""

    table: Table
    where: str
    key: tuple[Value, ...]


class Inserter:
    """Adds rows to a database whose foreign keys SQLite does not enforce.

    Attributes:
        added: The rows, in their order.
        front: Whether rows are put before all others where possible: a subquery without an
            order gives its first row.

    Args:
        connection: Of the database.
        schema: Its schema.
        samples: Rows to take values from, by the lower-case names of the tables that rows can
            be added to.
        shapes: What each column may hold.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        schema: Schema,
        samples: Mapping[str, list[dict[str, Value]]],
        shapes: Shapes,
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._shapes = shapes
        self._samples = samples
        self.added: list[Added] = []
        self.front = False

    def insert(
        self, table: Table, values: dict[str, Value], pinned: frozenset[str], rng: random.Random,
        depth: int = 0,
    ) -> int:  # fmt: skip
        """Adds a row, and the parents that it needs.

        Args:
            table: Its table.
            values: By lower-case column name; changed where a key requires it.
            pinned: Columns whose values must stay.
            rng: Draws among possible parents.
            depth: How many levels of children need this row.

        Returns:
            The row's position in :attr:`added`.

        Raises:
            RefusedError: It does not fit.
        """
        if depth > _DEPTH or table.name.lower() not in self._samples:
            raise RefusedError("too deep, or no ordinary table")
        for key in [*table.unique_keys, *self._shapes.promised_unique(table)]:
            pinned |= self._make_unique(table, key, values, pinned)
        columns = [column for column in table.columns if not column.generated]
        row = [values.get(column.name.lower()) for column in columns]
        names = [quoted(column.name) for column in columns]
        for column, value in zip(columns, row, strict=True):
            self._check(table, column.name, value)
        if self.front and not table.without_rowid and depth == 0:
            self._put_first(table, names, row, pinned)
        marks = ", ".join("?" * len(row))
        try:
            cursor = self._connection.execute(
                f"INSERT INTO {quoted(table.name)} ({', '.join(names)}) VALUES ({marks})", row
            )
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise RefusedError(str(error)) from None
        if table.rowid_alias is not None:
            values[table.rowid_alias.lower()] = cursor.lastrowid
        position = len(self.added)
        self.added.append(self.added_as(table, values, cursor.lastrowid))
        for reference in table.foreign_keys:
            self._provide(table, reference, values, pinned, rng, position, depth)
        return position

    def remove(self, added: Added) -> None:
        """Deletes a row."""
        self._connection.execute(
            f"DELETE FROM {quoted(added.table.name)} WHERE {added.where}", added.key
        )

    def update(self, added: Added, column: str, value: Value) -> None:
        """Changes a cell.

        Raises:
            RefusedError: The value does not fit.
        """
        self._check(added.table, column, value)
        try:
            self._connection.execute(
                f"UPDATE {quoted(added.table.name)} SET {quoted(column)} = ? WHERE {added.where}",
                (value, *added.key),
            )
        except (sqlite3.Error, OverflowError) as error:
            raise RefusedError(str(error)) from None

    def read(self, added: Added) -> dict[str, Value] | None:
        """Returns a row's values by lower-case column name; None if it is gone."""
        names = [column.name for column in added.table.columns]
        row = self._connection.execute(
            f"SELECT {quoted_all(names)} FROM {quoted(added.table.name)} WHERE {added.where}",
            added.key,
        ).fetchone()
        return None if row is None else dict(zip((n.lower() for n in names), row, strict=True))

    def _check(self, table: Table, column: str, value: Value) -> None:
        # The INTEGER PRIMARY KEY gets its number from SQLite.
        if value is None and column == table.rowid_alias:
            return
        if not self._shapes.fits(table.name, column, value):
            raise RefusedError(f"{value!r} could not be real in {table.name}.{column}")

    def holds(self, added: Added) -> bool:
        """Whether all references of a row are valid."""
        row = self.read(added)
        return row is None or all(
            self._satisfied(reference, row) for reference in added.table.foreign_keys
        )

    def added_as(self, table: Table, values: dict[str, Value], rowid: int | None) -> Added:
        """Returns what finds a row again."""
        if not table.without_rowid:
            return Added(table, f"{rowid_name(table)} = ?", (rowid,))
        key = [column.name for column in table.columns if column.primary_key]
        return Added(table, all_equal(key), tuple(values.get(name.lower()) for name in key))

    def _put_first(
        self, table: Table, names: list[str], row: list[Value], pinned: frozenset[str]
    ) -> None:
        name = rowid_name(table)
        (least,) = self._connection.execute(
            f"SELECT min({name}) FROM {quoted(table.name)}"
        ).fetchone()
        if least is None or least <= _LEAST:
            return
        alias = table.rowid_alias
        if alias is None:
            names.append(name)
            row.append(least - 1)
        elif alias.lower() not in pinned and self._shapes.fits(table.name, alias, least - 1):
            row[names.index(quoted(alias))] = least - 1

    def _make_unique(
        self, table: Table, key: tuple[str, ...], values: dict[str, Value], pinned: frozenset[str]
    ) -> frozenset[str]:
        """Makes a key differ from all others; returns the changed column."""
        parts = [values.get(name.lower()) for name in key]
        if None in parts and table.rowid_alias not in key:
            return frozenset()
        taken = f"SELECT 1 FROM {quoted(table.name)} WHERE {all_equal(key)} LIMIT 1"
        if None not in parts and not self._one(taken, parts):
            return frozenset()
        referring = {c.lower() for f in table.foreign_keys for c in f.columns}
        free = [name for name in key if name.lower() not in pinned]
        if not free:
            raise RefusedError("key taken")
        # A column without a foreign key can take any value.
        free.reverse()
        for chosen in sorted(free, key=lambda name: name.lower() in referring):
            name = chosen.lower()
            shape = self._shapes[table.name.lower(), name]
            new = fresh(self._connection, table, table[chosen], shape)
            if new is not None or chosen == table.rowid_alias:
                values[name] = new
                return frozenset({name})
        raise RefusedError("no value left for the key")

    def _provide(  # noqa: PLR0917
        self, table: Table, reference: ForeignKey, values: dict[str, Value],
        pinned: frozenset[str], rng: random.Random, position: int, depth: int,
    ) -> None:  # fmt: skip
        """Makes a reference of a row just added valid."""
        if self._satisfied(reference, values):
            return
        parent = self._parent(reference)
        free = [name.lower() for name in reference.columns if name.lower() not in pinned]
        if parent is not None and len(free) == len(reference.columns):
            changes = self._some_parent(parent, reference, rng)
            if changes is not None:
                self._change(table, values, position, changes)
                return
        if parent is not None:
            self._make_parent(parent, reference, values, rng, depth)
            return
        nullable = [name for name in free if not table[name].not_null]
        if not nullable:
            raise RefusedError("no parent")
        self._change(table, values, position, {nullable[0]: None})

    def _change(
        self, table: Table, values: dict[str, Value], position: int, changes: dict[str, Value]
    ) -> None:
        for name, value in changes.items():
            self.update(self.added[position], table[name].name, value)
            values[name] = value
        if table.without_rowid:
            self.added[position] = self.added_as(table, values, None)

    def _make_parent(
        self, parent: Table, reference: ForeignKey, values: dict[str, Value],
        rng: random.Random, depth: int,
    ) -> None:  # fmt: skip
        made = dict(rng.choice(self._samples.get(parent.name.lower()) or [{}]))
        for column in parent.columns:
            name = column.name.lower()
            shape = self._shapes[parent.name.lower(), name]
            made[name] = shape.scatter(made.get(name, placeholder(column, shape)), rng)
        targets = [name.lower() for name in reference.parent_columns]
        for name, target in zip(reference.columns, targets, strict=True):
            made[target] = values.get(name.lower())
        self.insert(parent, made, frozenset(targets), rng, depth + 1)
        if not self._satisfied(reference, values):
            raise RefusedError("no parent")

    def _some_parent(
        self, parent: Table, reference: ForeignKey, rng: random.Random
    ) -> dict[str, Value] | None:
        targets = quoted_all(reference.parent_columns)
        present = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in reference.parent_columns)
        found = self._connection.execute(
            f"SELECT {targets} FROM {quoted(parent.name)} WHERE {present} LIMIT {_PARENTS}"
        ).fetchall()
        if not found:
            return None
        row = rng.choice(found)
        return dict(zip((name.lower() for name in reference.columns), row, strict=True))

    def _satisfied(self, reference: ForeignKey, values: Mapping[str, Value]) -> bool:
        parts = [values.get(name.lower()) for name in reference.columns]
        if None in parts:
            return True
        parent = self._parent(reference)
        if parent is None:
            return False
        where = all_equal(reference.parent_columns)
        return self._one(f"SELECT 1 FROM {quoted(parent.name)} WHERE {where} LIMIT 1", parts)

    def _parent(self, reference: ForeignKey) -> Table | None:
        if reference.parent not in self._schema:
            return None
        parent = self._schema[reference.parent]
        known = all(parent.column(name) is not None for name in reference.parent_columns)
        fits = known and len(reference.parent_columns) == len(reference.columns)
        return parent if fits and not parent.view else None

    def _one(self, sql: str, parameters: list[Value]) -> bool:
        try:
            return self._connection.execute(sql, parameters).fetchone() is not None
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise RefusedError(str(error)) from None


def placeholder(column: Column, shape: Shape) -> Value:
    """Returns a value for a column of an empty table."""
    if shape.format is not None:
        return shape.format.write(_SOME_DAY)
    return "a" if column.affinity in ("TEXT", "BLOB") else 1


_SOME_DAY = datetime(2010, 1, 1)


def rowid_name(table: Table) -> str:
    """Returns a name of a table's rowid.

    Raises:
        RefusedError: Columns have all of its names.
    """
    taken = {column.name.lower() for column in table.columns}
    found = next((name for name in ("rowid", "oid", "_rowid_") if name not in taken), None)
    if found is None:
        raise RefusedError("no name left for the rowid")
    return found
