"""One row for each table that a SELECT combines, so that its conditions hold, or just one fails.

Three steps that call each other, since a subquery needs rows of its own: aiming turns conditions
into constraints on cells, binding reuses existing rows, and building adds the others.
"""

from sqlglot import exp

from lm_eval_ext.sql.distill.attempt import Assignment, Attempt, Values, ValueSampler
from lm_eval_ext.sql.distill.hints import (
    Compared,
    Equal,
    Exists,
    Goal,
    Member,
    OneOf,
    cell_of,
    output_of,
    plan,
    takes_the_first,
)
from lm_eval_ext.sql.distill.inserting import RefusedError, placeholder
from lm_eval_ext.sql.distill.query import Cell, Query, Scope
from lm_eval_ext.sql.distill.scratch_db import NoResultError
from lm_eval_ext.sql.distill.values import compares, fresh, nearby, satisfying
from lm_eval_ext.sql.parsing import to_sql
from lm_eval_ext.sql.values import Value

_NESTED = 3
"""Levels of subqueries that get rows of their own."""

_STEPS = 1_000_000
"""Instructions that a subquery may take when its values are read."""

# Chances per decision (attempt.py says what a change entails).
_SHARED = (0.0, 0.3, 0.6)
"""An existing row serves instead of a new one; one of the three holds for an attempt."""
_FRONT = 0.1
_FRONT_IF_FIRST_COUNTS = 0.35
"""New rows are put before all others; the second, if a subquery's first row decides."""
_NEW_RESULTS = 0.25
"""Results have values that no row has: results are compared as sets."""
_EXISTS_BUILT = 0.7
"""Rows are built for EXISTS, or rows that just fail for NOT EXISTS."""
_MEMBERS_READ = 0.7
_MEMBERS_SUFFICE = 0.6
"""The values of IN's subquery are read; if there are some, no rows are built for it."""
_MEMBER_FIRST = 0.6
"""A new row of IN's subquery gives the value; otherwise the value comes first."""
_INNER_BUILT = 0.6
"""Rows are built for the subquery of a comparison."""
_EVEN = 0.5
_BIND_TRIES = 8
"""Existing rows that are tried for one table."""


class RowBuilder:
    """Builds rows for a gold during one attempt."""

    def __init__(self, query: Query, attempt: Attempt) -> None:
        self.query = query
        self.attempt = attempt
        self.rng = attempt.rng
        self.inserter = attempt.inserter
        self.schema = attempt.schema
        self.pools = attempt.pools
        self.shapes = attempt.shapes
        self.runner = attempt.runner
        self._share_bound = self.rng.choice(_SHARED)
        self._new_results = self.rng.random() < _NEW_RESULTS
        self.sampler = ValueSampler(query, attempt)
        front = _FRONT_IF_FIRST_COUNTS if query.cached("first", takes_the_first) else _FRONT
        self.inserter.front = self.rng.random() < front

    def on(self, query: Query) -> "RowBuilder":
        """Returns a builder of rows for another gold in the same attempt."""
        return RowBuilder(query, self.attempt)

    def build(
        self, scope: Scope, presets: Values | None = None, *, miss: bool = False, depth: int = 0
    ) -> Values:
        """Adds the rows of one combination.

        Args:
            scope: The SELECT whose conditions they should satisfy.
            presets: Values that cells must have.
            miss: Whether just one of the conditions should fail.
            depth: How many calls are open around this one.

        Returns:
            The values of all cells, to share with further rows.

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
        assignment = Assignment(self.query, self.shapes, self.rng, self.sampler.draw)
        for cell, value in values.items():
            assignment.set(cell, value)
        self._aim(scope, assignment, miss=miss, depth=depth)
        existing = self._bind(scope, assignment)
        existing |= self._bind_by_key(scope, assignment)
        assignment.satisfy_constraints()
        for alias, table in self._parents_first(scope):
            existing |= self._bind_by_key(scope, assignment, alias)
            if alias not in existing:
                self._add(scope, alias, table, assignment)
        return values | {
            cell: assignment.get(cell)
            for cell in self.query.cells_of(scope)
            if assignment.known(cell)
        }

    def rows_of(self, table: str) -> list[dict[str, Value]]:
        """Returns sample rows of a table, and the rows added in this attempt."""
        added = [
            self.inserter.read(a) for a in self.inserter.added if a.table.name.lower() == table
        ]
        return [*self.pools.rows.get(table, []), *(row for row in added if row is not None)]

    def fresh_groups(self, scope: Scope) -> Values:
        """Returns values that no group of a SELECT has yet, for the columns it groups by."""
        found: Values = {}
        for group in scope.groups:
            cell = self.query.cell(group.unnest(), scope)
            if cell is not None and (value := self._fresh(cell)) is not None:
                found[cell] = value
        return found

    def _fresh(self, cell: Cell) -> Value:
        name = self.query.table_of(cell)
        table = self.schema[name]
        return fresh(self.runner.connection, table, table[cell[2]], self.shapes[name, cell[2]])

    def values(self, query: exp.Expr) -> list[Value]:
        """Returns the first column of a subquery; empty if it does not run on its own."""
        return self.values_of(self.text(query))

    def text(self, query: exp.Expr) -> str:
        """Returns a subquery's SQL."""
        texts = self.query.cached("texts", lambda _: {})
        node = query.unnest()
        if id(node) not in texts:
            texts[id(node)] = to_sql(node)
        return str(texts[id(node)])

    def values_of(self, sql: str) -> list[Value]:
        """Returns the first column of a query; empty if it fails or takes long."""
        try:
            return [row[0] for row in self.runner.rows(sql, steps=_STEPS)]
        except NoResultError:
            return []

    def _aim(self, scope: Scope, assignment: Assignment, *, miss: bool, depth: int) -> None:
        """Turns conditions into equalities and constraints, and builds rows for subqueries."""
        rng = self.rng
        goals: list[Goal] = []
        parts = scope.parts
        failing = rng.randrange(len(parts)) if parts and miss else -1
        for number, part in enumerate(parts):
            goals += plan(part, number != failing, rng)
        for goal in goals:
            if isinstance(goal, Equal):
                left, right = (self.query.cell(e.unnest(), scope) for e in (goal.left, goal.right))
                if left is not None and right is not None:
                    assignment.join(left, right)
        for goal in goals:
            if isinstance(goal, OneOf):
                self._add_one_of(goal, scope, assignment)
            elif isinstance(goal, Member):
                self._add_member(goal, scope, assignment, depth)
            elif isinstance(goal, Compared):
                self._add_compared(goal, scope, assignment, depth)
            elif isinstance(goal, Exists):
                inner = self.query.scope_of(goal.query)
                if inner is not None and rng.random() < _EXISTS_BUILT:
                    self.build(inner, miss=not goal.truth, depth=depth + 1)

    def _add_one_of(self, goal: OneOf, scope: Scope, assignment: Assignment) -> None:
        rng = self.rng
        cell = cell_of(self.query, goal.expression, scope)
        if cell is not None:
            assignment.constrain(cell, goal.values, goal.test)
        elif fitting := [value for value in goal.values if goal.test(value)]:
            assignment.make(goal.expression, scope, rng.choice(fitting))

    def _add_member(self, goal: Member, scope: Scope, assignment: Assignment, depth: int) -> None:
        rng = self.rng
        inner = self.query.scope_of(goal.query)
        whole = goal.query.unnest()
        if isinstance(whole, exp.Intersect):  # a member of both
            for side in (whole.this, whole.expression):
                member = Member(goal.expression, side, goal.truth)
                self._add_member(member, scope, assignment, depth)
            return
        cell = cell_of(self.query, goal.expression, scope)
        found = self.values(goal.query) if rng.random() < _MEMBERS_READ else []
        output = output_of(self.query, inner)
        if not goal.truth and cell is not None:
            members = set(found)
            assignment.constrain(cell, (), lambda value: value not in members)
        if inner is None or (found and rng.random() < _MEMBERS_SUFFICE):
            if goal.truth and cell is not None and found:
                some = (found[0], rng.choice(found), rng.choice(found))
                members = set(found)
                assignment.constrain(cell, some, lambda value: value in members)
            return
        presets: Values = {}
        if cell is not None and output is not None:
            if not assignment.known(cell) and rng.random() < _MEMBER_FIRST:
                built = self.build(inner, {}, miss=not goal.truth, depth=depth + 1)
                if built.get(output) is not None:
                    assignment.set(cell, built[output])
                return
            if not assignment.known(cell):
                assignment.set(cell, self.sampler.draw(cell))
            presets[output] = assignment.get(cell)
        self.build(inner, presets, miss=not goal.truth, depth=depth + 1)

    def _add_compared(
        self, goal: Compared, scope: Scope, assignment: Assignment, depth: int
    ) -> None:
        rng = self.rng
        cell = cell_of(self.query, goal.left, scope)
        right = goal.right.unnest()
        if not isinstance(right, exp.Query):
            other = assignment.value_of(right, scope)
            partner = self.query.cell(right, scope)
            if other is None and partner is not None:
                other = self.sampler.draw(partner)
                assignment.set(partner, other)
            if cell is not None and other is not None:
                assignment.constrain(
                    cell,
                    tuple(nearby(other)),
                    lambda value: compares(goal.operator, value, other),
                )
            return
        found = self.values(right)
        bound = found[0] if found else None
        inner = self.query.scope_of(right)
        output = output_of(self.query, inner)
        if bound is None and output is not None:
            bound = self.sampler.draw(output)
        if inner is not None and rng.random() < _INNER_BUILT:
            presets: Values = {}
            if output is not None:
                shape = self.shapes[self.query.table_of(output), output[2]]
                value = rng.choice([*shape.offered(nearby(bound))[:4], None])
                presets = {} if value is None else {output: value}
            self.build(inner, presets, miss=rng.random() < _EVEN, depth=depth + 1)
            if found := self.values(right):
                bound = found[0]
        if cell is not None:
            near = tuple(nearby(bound))
            assignment.constrain(cell, near, lambda v: compares(goal.operator, v, bound))
        elif wanted := satisfying(goal.operator, bound):
            assignment.make(goal.left, scope, rng.choice(wanted))

    def _bind(self, scope: Scope, assignment: Assignment) -> set[str]:
        """Lets existing rows serve for some aliases; returns these."""
        bound: set[str] = set()
        aliases = list(scope.tables)
        self.rng.shuffle(aliases)
        for alias in aliases[:-1]:
            rows = self.pools.rows.get(scope.tables[alias], [])
            if not rows or self.rng.random() > self._share_bound:
                continue
            cells = self.query.cells_in(scope, alias)
            for row in self.rng.sample(rows, min(_BIND_TRIES, len(rows))):
                if all(assignment.fits(cell, row.get(cell[2])) for cell in cells):
                    for cell in cells:
                        assignment.set(cell, row.get(cell[2]))
                    bound.add(alias)
                    break
        return bound

    def _bind_by_key(
        self, scope: Scope, assignment: Assignment, only: str | None = None
    ) -> set[str]:
        """Lets existing rows serve for aliases whose key is determined; returns these."""
        bound: set[str] = set()
        for alias, name in scope.tables.items():
            if only not in (None, alias):
                continue
            table = self.schema[name]
            for key in table.unique_keys:
                cells = [(scope.number, alias, part.lower()) for part in key]
                if not all(assignment.known(cell) for cell in cells):
                    continue
                row = self.pools.find(name, key, [assignment.get(cell) for cell in cells])
                if row is not None:
                    for cell in self.query.cells_of(scope):
                        if cell[:2] == (scope.number, alias):
                            assignment.set(cell, row.get(cell[2]))
                    bound.add(alias)
                    break
        return bound

    def _parents_first(self, scope: Scope) -> list[tuple[str, str]]:
        """Orders aliases so that the tables whose keys are joined on come first."""
        used = {cell[1:] for cell in self.query.cells_of(scope) if cell[0] == scope.number}
        keyed: list[tuple[str, str]] = []
        others: list[tuple[str, str]] = []
        for alias, name in scope.tables.items():
            keys = {key[0].lower() for key in self.schema[name].unique_keys if len(key) == 1}
            list_ = keyed if any((alias, key) in used for key in keys) else others
            list_.append((alias, name))
        if self.rng.random() < _EVEN:  # two tables may share a key
            keyed.reverse()
        return keyed + others

    def _add(self, scope: Scope, alias: str, name: str, assignment: Assignment) -> None:
        table = self.schema[name]
        row = self.pools.template(name, self.rng)
        for column in table.columns:
            name_of = column.name.lower()
            shape = self.shapes[name, name_of]
            row.setdefault(name_of, placeholder(column, shape))
            row[name_of] = shape.scatter(row[name_of], self.rng)
        cells = self.query.cells_in(scope, alias)
        shown = {cell for output in scope.outputs for cell in self.query.cells(output, scope)}
        pinned = set()
        for cell in cells:
            if assignment.known(cell):
                row[cell[2]] = assignment.get(cell)
                pinned.add(cell[2])
            elif self._new_results and cell in shown and (new := self._fresh(cell)) is not None:
                row[cell[2]] = new
                pinned.add(cell[2])
            else:
                row[cell[2]] = self.sampler.vary(cell, row.get(cell[2]))
        self.inserter.insert(table, row, frozenset(pinned), self.rng)
        for cell in cells:
            assignment.set(cell, row.get(cell[2]))
            self.sampler.note(cell, row.get(cell[2]))
