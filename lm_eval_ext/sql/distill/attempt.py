"""The data of one attempt to build rows: the values of cells, and a source of plausible values."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlglot import exp

from lm_eval_ext.sql.distill.hints import literal, literals_by_column, sorted_by
from lm_eval_ext.sql.distill.inserting import Inserter
from lm_eval_ext.sql.distill.query import Cell, Query, Scope
from lm_eval_ext.sql.distill.scratch_db import Runner
from lm_eval_ext.sql.distill.shapes import Shapes
from lm_eval_ext.sql.distill.values import Pools, fresh, number_of, with_number
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import Value

Values = dict[Cell, Value]

# Chances of each choice. A change of any of them, here or in the other modules, gives other rows,
# so POPULATE_VERSION must rise with it.
_LEFT_OPEN = 0.7
"""Cells that are only equal to each other stay open, and may become a new key."""
_DISTANT = 0.5
_FAR = 3
"""Some values get another one at some distance."""
_DRAWN = 0.3
"""Values are drawn for a cell beside those that its conditions name."""
_VARIED = (0.15, 0.5)
"""A cell under no condition gets a drawn value; one of the two chances holds for an attempt."""
_REPEATED = 0.25
_NAMED = 0.4
_EDGE = 0.6
_EDGE_IF_SORTED = 0.75
"""Upper ends on a scale from 0 to 1: a value used before in this attempt, a constant of the
query, a value at an end of the column's range; above, one of the following."""
_NULL = 0.1
_NEW = 0.3
_JUST_ABOVE = 0.45
"""Likewise: NULL, a value that no row has, one just above some row's value; else that value."""


@dataclass
class Attempt:
    """What the builders of rows share during one attempt.

    Attributes:
        cache: Values that hold until the database changes.
        targets: Numbers to keep equal to their targets, by the subqueries that compute them.
        new_targets: Those to keep from now on, if the attempt succeeds.
    """

    schema: Schema
    pools: Pools
    shapes: Shapes
    runner: Runner
    inserter: Inserter
    rng: random.Random
    cache: dict[Any, Any]
    targets: "dict[str, AggregateTarget]"
    new_targets: "list[AggregateTarget]" = field(default_factory=list)


_LARGEST_PRODUCT = 10**9
"""Larger numbers are not taken apart into factors."""

Draw = Callable[[Cell], Value]
"""Returns a plausible value for a cell."""


@dataclass(frozen=True)
class AggregateTarget:
    """A number that a subquery computes, and the value that it should equal.

    Attributes:
        sql: The subquery.
        target: The value.
        query: The gold that it is part of.
        scope: The SELECT that compares with it.
        compared: What is compared with it: a column, or a group's own average.
        inner: The subquery's SELECT.
        computed: The cell that it aggregates.
    """

    sql: str
    target: float
    query: Query
    scope: Scope
    compared: exp.Expr
    inner: Scope
    computed: Cell

    @property
    def table(self) -> str:
        """The table whose rows the number depends on."""
        return self.query.table_of(self.computed)


class Assignment:
    """Values of cells, which equalities join into classes of one value each."""

    def __init__(self, query: Query, shapes: Shapes, rng: random.Random, draw: Draw) -> None:
        self._query = query
        self._shapes = shapes
        self._rng = rng
        self._draw = draw
        self._above: dict[Cell, Cell] = {}
        self._values: dict[Cell, Value] = {}
        self._constraints: dict[Cell, list[tuple[tuple[Value, ...], Callable[[Value], bool]]]] = {}

    def root(self, cell: Cell) -> Cell:
        """Returns the cell that represents a cell's class."""
        while cell in self._above:
            cell = self._above[cell]
        return cell

    def known(self, cell: Cell) -> bool:
        """Whether the cell has a value, which may be NULL."""
        return self.root(cell) in self._values

    def get(self, cell: Cell) -> Value:
        """Returns a cell's value, None if it has none."""
        return self._values.get(self.root(cell))

    def set(self, cell: Cell, value: Value) -> None:
        """Gives a cell's class a value unless it has one."""
        self._values.setdefault(self.root(cell), value)

    def join(self, one: Cell, other: Cell) -> None:
        """Joins two cells' classes; if both have a value already, they keep theirs."""
        a, b = self.root(one), self.root(other)
        if a == b or (a in self._values and b in self._values):
            return
        if b in self._values:
            a, b = b, a
        self._above[b] = a
        self._constraints.setdefault(a, []).extend(self._constraints.pop(b, []))

    def constrain(
        self, cell: Cell, values: tuple[Value, ...], test: Callable[[Value], bool]
    ) -> None:
        """Notes values that a cell should have, and the test for them."""
        self._constraints.setdefault(self.root(cell), []).append((values, test))

    def fits(self, cell: Cell, value: Value) -> bool:
        """Whether a value agrees with a cell's value, or satisfies all constraints on it."""
        root = self.root(cell)
        if root in self._values:
            return self._values[root] == value
        return all(test(value) for _, test in self._constraints.get(root, []))

    def satisfy_constraints(self) -> None:
        """Gives every constrained cell a value, one that satisfies all constraints if possible."""
        for root, constraints in list(self._constraints.items()):
            if root in self._values or (not constraints and self._rng.random() < _LEFT_OPEN):
                continue
            shape = self._shapes[self._query.table_of(root), root[2]]
            offered = [v for values, _ in constraints for v in shape.offered(values)]
            if self._rng.random() < _DISTANT:
                offered += shape.further(offered[:_FAR], self._rng)
            if constraints and shape.kind == "category":
                offered += sorted(shape.known, key=str)
            good = [value for value in offered if all(test(value) for _, test in constraints)]
            if self._rng.random() < _DRAWN or not good:
                offered += (drawn := [self._draw(root) for _ in range(3)])
                good += [value for value in drawn if all(test(value) for _, test in constraints)]
            value = self._rng.choice(good or offered)
            if constraints or value is not None:
                self._values[root] = value

    def make(self, expression: exp.Expr, scope: Scope, value: Value) -> None:
        """Sets columns so that an expression has a given value, where that is supported."""
        node = expression.unnest()
        if isinstance(node, exp.Column):
            cell = self._query.cell(node, scope)
            if cell is not None:
                self.set(cell, value)
        elif isinstance(node, exp.AggFunc | exp.Distinct | exp.Lower | exp.Upper | exp.Abs):
            inner = node.expressions[0] if isinstance(node, exp.Distinct) else node.this
            if isinstance(inner, exp.Expr):
                self.make(inner, scope, value)
        elif isinstance(node, exp.Length) and isinstance(value, int | float):
            cell = self._query.cell(node.this.unnest(), scope)
            if cell is not None:
                shape = self._shapes[self._query.table_of(cell), cell[2]]
                self.set(cell, shape.of_length(int(value), self._rng))
        elif isinstance(node, exp.DPipe | exp.Concat) and value is not None:
            self._concatenated(node, scope, str(value))
        elif isinstance(node, exp.Add | exp.Sub | exp.Mul) and value is not None:
            self._computed(node, scope, number_of(value))

    def value_of(self, expression: exp.Expr, scope: Scope) -> Value:
        """Returns the value of a column or constant, None if it is unknown."""
        node = expression.unnest()
        constant = literal(node)
        if constant is not None:
            return constant[0]
        if isinstance(node, exp.AggFunc):
            return self.value_of(node.this, scope) if node.this is not None else None
        cell = self._query.cell(node, scope)
        return None if cell is None else self.get(cell)

    def _concatenated(self, node: exp.Expr, scope: Scope, text: str) -> None:
        cut = self._rng.randint(0, len(text))
        left = self.value_of(node.this, scope)
        if isinstance(left, str) and text.startswith(left):
            cut = len(left)
        self.make(node.this, scope, text[:cut])
        self.make(node.args["expression"], scope, text[cut:])

    def _computed(self, node: exp.Expr, scope: Scope, target: float) -> None:
        shapes: list[Value] = []
        for side in (node.this, node.expression):
            cell = self._query.cell(side.unnest(), scope)
            known = self.value_of(side, scope)
            shapes.append(known if known is not None or cell is None else self._draw(cell))
        right = number_of(shapes[1])
        if isinstance(node, exp.Add):
            left = target - right
        elif isinstance(node, exp.Sub):
            left = target + right
        else:
            right = self._rng.choice(_factors(target, shapes))
            left = target / right
        self.make(node.expression, scope, with_number(shapes[1], right))
        self.make(node.this, scope, with_number(shapes[0], left))


@lru_cache(maxsize=1 << 10)
def _divisors(whole: int) -> list[int]:
    low = [n for n in range(1, math.isqrt(whole) + 1) if whole % n == 0]
    return low + [whole // n for n in reversed(low)]


def _factors(product: float, like: Sequence[Value]) -> list[int]:
    """Returns the second one of two factors, for factors that have as many digits as two values.

    Where there are none, they are the two factors that lie closest together, and 1.
    """
    if not float(product).is_integer() or not 0 < product < _LARGEST_PRODUCT:
        return [1]
    whole = int(product)
    found = _divisors(whole)
    sizes = [len(str(int(number_of(value)))) for value in like]
    fitting = [n for n in found if [len(str(whole // n)), len(str(n))] == sizes]
    return fitting or [found[len(found) // 2], 1]


class ValueSampler:
    """Draws plausible values during one attempt.

    Attributes:
        history: Values used in the attempt so far, by table and column.
    """

    def __init__(self, query: Query, attempt: Attempt) -> None:
        self._connection = attempt.runner.connection
        self._query = query
        self._schema = attempt.schema
        self._pools = attempt.pools
        self._shapes = attempt.shapes
        self._rng = attempt.rng
        self._varied = self._rng.choice(_VARIED)
        self._literals = query.cached("literals", literals_by_column)
        self._sorted = query.cached("sorted", sorted_by)
        self.history: dict[tuple[str, str], list[Value]] = {}

    def vary(self, cell: Cell, value: Value) -> Value:
        """Returns the value or, at random, a drawn one."""
        return value if self._rng.random() > self._varied else self.draw(cell)

    def note(self, cell: Cell, value: Value) -> None:
        """Records the value that a cell was given."""
        self.history.setdefault((self._query.table_of(cell), cell[2]), []).append(value)

    def draw(self, cell: Cell) -> Value:
        """Draws a value that may distinguish queries on a column."""
        name, column_name = self._query.table_of(cell), cell[2]
        table = self._schema[name]
        column = table[column_name]
        shape = self._shapes[name, column_name]
        choice = self._rng.random()
        if choice < _REPEATED and (seen := self.history.get((name, column_name))):
            return self._rng.choice(seen)
        if choice < _NAMED and (named := self._literals.get((name, column_name))):
            beside = shape.beside([self._rng.choice(named)])
            if beside:
                return self._rng.choice(beside)
        if choice < (_EDGE_IF_SORTED if cell in self._sorted else _EDGE):
            return self._pools.edge(name, column_name, self._rng)
        choice = self._rng.random()
        if choice < _NULL and not column.not_null and self._shapes.fits(name, column_name, None):
            return None
        if choice < _NEW:
            new = fresh(self._connection, table, column, shape)
            if new is not None:
                return new
        value = self._pools.template(name, self._rng).get(column_name)
        following = shape.above(value)
        return following if choice < _JUST_ABOVE and shape.fits(following) else value
