"""One row for each table that a SELECT combines, so that its conditions hold or just fail."""

import random
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lm_eval_ext.sql.distill.aiming import aim
from lm_eval_ext.sql.distill.assignment import Assignment
from lm_eval_ext.sql.distill.binding import bind, bind_by_key, parents_first
from lm_eval_ext.sql.distill.drawing import Drawer
from lm_eval_ext.sql.distill.hints import takes_the_first
from lm_eval_ext.sql.distill.inserting import Inserter, RefusedError, placeholder
from lm_eval_ext.sql.distill.pools import Pools
from lm_eval_ext.sql.distill.runner import NoResultError, Runner
from lm_eval_ext.sql.distill.scopes import Cell, Query, Scope
from lm_eval_ext.sql.distill.values import fresh
from lm_eval_ext.sql.parsing import to_sql
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import Value

if TYPE_CHECKING:
    from lm_eval_ext.sql.distill.aggregate_targets import Held


Values = dict[Cell, Value]

_NESTED = 3
"""Subqueries within subqueries that get rows of their own."""

_STEPS = 1_000_000
"""Instructions that a subquery may take when its value is asked for."""


class Witness:
    """Builds rows for a gold during one attempt.

    Attributes:
        share_bound: How often a row that is there serves instead of a new one.
        cache: What holds until the database changes.
        held: Numbers that are to stay equal to values, by the subqueries that compute them.
        balanced: What is to be held so from now on, if the attempt is a success.
    """

    def __init__(  # noqa: PLR0917 (its tools, all different)
        self, query: Query, schema: Schema, pools: Pools, runner: Runner, inserter: Inserter,
        rng: random.Random, cache: dict[Any, Any],
    ) -> None:  # fmt: skip
        self.query = query
        self.rng = rng
        self.inserter = inserter
        self.schema = schema
        self.pools = pools
        self.runner = runner
        self.cache = cache
        self.share_bound = rng.choice((0.0, 0.3, 0.6))
        self.drawer = Drawer(runner.connection, query, schema, pools, rng)
        first_counts = query.noted("first", takes_the_first)
        inserter.front = rng.random() < (0.35 if first_counts else 0.1)
        self.held: dict[str, Held] = cache.setdefault("held", {})
        self.balanced: list[Held] = []

    def on(self, query: Query) -> "Witness":
        """Returns one that builds rows for another gold in the same attempt."""
        other = Witness(
            query, self.schema, self.pools, self.runner, self.inserter, self.rng, self.cache
        )
        other.balanced = self.balanced
        return other

    def build(
        self, scope: Scope, presets: Values | None = None, *, miss: bool = False, depth: int = 0
    ) -> Values:
        """Adds the rows of one combination.

        Args:
            scope: Whose conditions they are to satisfy.
            presets: What cells must be.
            miss: Whether just one of the conditions is to fail.
            depth: How many SELECTs ask for this one.

        Returns:
            The values of all cells, to be shared with further rows.

        Raises:
            RefusedError: They do not fit.
        """
        if depth > _NESTED:
            raise RefusedError("nested too deeply")
        values: Values = dict(presets or {})
        for inner in scope.derived.values():
            values.update(self.build(inner, values, miss=miss, depth=depth + 1))
        if not scope.tables:
            return values
        assignment = Assignment(self.query)
        for cell, value in values.items():
            assignment.set(cell, value)
        aim(self, scope, assignment, miss=miss, depth=depth)
        existing = bind(self, scope, assignment)
        existing |= bind_by_key(self, scope, assignment)
        assignment.grant(self.rng, self.drawer.draw)
        for alias, table in parents_first(self, scope):
            existing |= bind_by_key(self, scope, assignment, alias)
            if alias not in existing:
                self._add(scope, alias, table, assignment)
        return values | {
            cell: assignment.get(cell)
            for cell in self.query.cells_of(scope)
            if assignment.known(cell)
        }

    def rows_of(self, table: str) -> list[dict[str, Value]]:
        """Returns rows of a table: some of those before the attempt, and those added in it."""
        added = [
            self.inserter.read(a) for a in self.inserter.added if a.table.name.lower() == table
        ]
        return [*self.pools.rows.get(table, []), *(row for row in added if row is not None)]

    def fresh_groups(self, scope: Scope) -> Values:
        """Returns values for what a SELECT groups by that no group has yet."""
        found: Values = {}
        for group in scope.groups:
            cell = self.query.cell(group.unnest(), scope)
            if cell is not None:
                table = self.schema[self.query.table_of(cell)]
                column = table.column(cell[2])
                assert column is not None
                found[cell] = fresh(self.runner.connection, table, column)
        return found

    def values(self, query: exp.Expr) -> list[Value]:
        """Returns the first column of a subquery, as far as it runs on its own."""
        return self.values_of(self.text(query))

    def text(self, query: exp.Expr) -> str:
        """Returns a subquery's text."""
        texts = self.query.noted("texts", lambda _: {})
        node = query.unnest()
        if id(node) not in texts:  # a node of the gold's tree, which stays
            texts[id(node)] = to_sql(node)
        return str(texts[id(node)])

    def values_of(self, sql: str) -> list[Value]:
        """Returns the first column of a query; nothing where it fails or takes long."""
        try:
            return [row[0] for row in self.runner.rows(sql, steps=_STEPS)]
        except NoResultError:
            return []

    def _add(self, scope: Scope, alias: str, name: str, assignment: Assignment) -> None:
        table = self.schema[name]
        row = self.pools.template(name, self.rng)
        for column in table.columns:
            row.setdefault(column.name.lower(), placeholder(column))
        cells = self.query.cells_in(scope, alias)
        pinned = set()
        for cell in cells:
            if assignment.known(cell):
                row[cell[2]] = assignment.get(cell)
                pinned.add(cell[2])
            else:
                row[cell[2]] = self.drawer.vary(cell, row.get(cell[2]))
        self.inserter.insert(table, row, frozenset(pinned), self.rng)
        for cell in cells:
            assignment.set(cell, row.get(cell[2]))
            self.drawer.note(cell, row.get(cell[2]))
