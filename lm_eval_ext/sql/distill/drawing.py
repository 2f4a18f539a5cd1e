"""Values for columns of which nothing is known but that they may matter."""

import random
import sqlite3

from lm_eval_ext.sql.distill.hints import literals_by_column, sorted_by
from lm_eval_ext.sql.distill.pools import Pools
from lm_eval_ext.sql.distill.scopes import Cell, Query
from lm_eval_ext.sql.distill.values import above, fresh
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import Value


class Drawer:
    """Draws values during one attempt.

    Attributes:
        history: What was used in the attempt so far, by table and column.
    """

    def __init__(
        self, connection: sqlite3.Connection, query: Query, schema: Schema, pools: Pools,
        rng: random.Random,
    ) -> None:  # fmt: skip
        self._connection = connection
        self._query = query
        self._schema = schema
        self._pools = pools
        self._rng = rng
        self._odd = rng.choice((0.15, 0.5))
        self._literals = query.noted("literals", literals_by_column)
        self._sorted = query.noted("sorted", sorted_by)
        self.history: dict[tuple[str, str], list[Value]] = {}

    def vary(self, cell: Cell, value: Value) -> Value:
        """Returns a value, or now and then another one."""
        return value if self._rng.random() > self._odd else self.draw(cell)

    def note(self, cell: Cell, value: Value) -> None:
        """Remembers what a cell was given."""
        self.history.setdefault((self._query.table_of(cell), cell[2]), []).append(value)

    def draw(self, cell: Cell) -> Value:
        """Returns a value that may tell queries apart in a column."""
        name, column_name = self._query.table_of(cell), cell[2]
        table = self._schema[name]
        column = table.column(column_name)
        assert column is not None
        choice = self._rng.random()
        if choice < 0.25 and (seen := self.history.get((name, column_name))):  # noqa: PLR2004
            return self._rng.choice(seen)
        if choice < 0.4 and (named := self._literals.get((name, column_name))):  # noqa: PLR2004
            value: Value = self._rng.choice(named)
            return value
        if choice < (0.75 if cell in self._sorted else 0.6):
            return self._pools.edge(name, column_name, self._rng)
        choice = self._rng.random()
        if choice < 0.1 and not column.not_null:  # noqa: PLR2004
            return None
        if choice < 0.3:  # noqa: PLR2004
            return fresh(self._connection, table, column)
        value = self._pools.template(name, self._rng).get(column_name)
        return above(value) if choice < 0.45 else value  # noqa: PLR2004
