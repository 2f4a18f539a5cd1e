"""Values of cells that equalities tie together."""

import random
from collections.abc import Callable

from sqlglot import exp

from lm_eval_ext.sql.distill.planning import literal
from lm_eval_ext.sql.distill.scopes import Cell, Query, Scope
from lm_eval_ext.sql.distill.values import number_of, of_length, with_number
from lm_eval_ext.sql.values import Value

Draw = Callable[[Cell], Value]
"""Gives a plausible value for a cell."""


class Assignment:
    """Classes of cells that have one value.

    Args:
        query: The gold.
    """

    def __init__(self, query: Query) -> None:
        self._query = query
        self._above: dict[Cell, Cell] = {}
        self._values: dict[Cell, Value] = {}
        self._wishes: dict[Cell, list[tuple[tuple[Value, ...], Callable[[Value], bool]]]] = {}

    def root(self, cell: Cell) -> Cell:
        """Returns the cell that stands for its class."""
        while cell in self._above:
            cell = self._above[cell]
        return cell

    def known(self, cell: Cell) -> bool:
        """Whether the cell has a value, be it NULL."""
        return self.root(cell) in self._values

    def get(self, cell: Cell) -> Value:
        """Returns a cell's value, None where it has none."""
        return self._values.get(self.root(cell))

    def set(self, cell: Cell, value: Value) -> None:
        """Gives a cell, and those tied to it, a value unless they have one."""
        self._values.setdefault(self.root(cell), value)

    def tie(self, one: Cell, other: Cell) -> None:
        """Makes two cells have the same value; where both have one already, they keep theirs."""
        a, b = self.root(one), self.root(other)
        if a == b or (a in self._values and b in self._values):
            return
        if b in self._values:
            a, b = b, a
        self._above[b] = a
        self._wishes.setdefault(a, []).extend(self._wishes.pop(b, []))

    def wish(self, cell: Cell, values: tuple[Value, ...], test: Callable[[Value], bool]) -> None:
        """Notes what a cell should be."""
        self._wishes.setdefault(self.root(cell), []).append((values, test))

    def fits(self, cell: Cell, value: Value) -> bool:
        """Whether a value agrees with what is known and wished of a cell."""
        root = self.root(cell)
        if root in self._values:
            return self._values[root] == value
        return all(test(value) for _, test in self._wishes.get(root, []))

    def grant(self, rng: random.Random, draw: Draw) -> None:
        """Gives every cell with wishes a value that fulfils as many of them as can be."""
        for root, wishes in list(self._wishes.items()):
            if root in self._values or (not wishes and rng.random() < _LEFT_OPEN):
                continue
            offered = [value for values, _ in wishes for value in values]
            offered += (
                [draw(root) for _ in range(3)] if rng.random() < _DRAWN or not offered else []
            )
            good = [value for value in offered if all(test(value) for _, test in wishes)]
            value = rng.choice(good or offered)
            if wishes or value is not None:
                self._values[root] = value

    def make(
        self,
        expression: exp.Expr,
        scope: Scope,
        value: Value,
        rng: random.Random,
        draw: Draw,
    ) -> None:
        """Gives the columns of an expression values from which it has a given one, if it can."""
        node = expression.unnest()
        if isinstance(node, exp.Column):
            cell = self._query.cell(node, scope)
            if cell is not None:
                self.set(cell, value)
        elif isinstance(node, exp.AggFunc | exp.Distinct | exp.Lower | exp.Upper | exp.Abs):
            inner = node.expressions[0] if isinstance(node, exp.Distinct) else node.this
            if isinstance(inner, exp.Expr):
                self.make(inner, scope, value, rng, draw)
        elif isinstance(node, exp.Length) and isinstance(value, int | float):
            cell = self._query.cell(node.this.unnest(), scope)
            if cell is not None:
                self.set(cell, of_length(str(draw(cell) or ""), int(value)))
        elif isinstance(node, exp.DPipe | exp.Concat) and value is not None:
            self._concatenated(node, scope, str(value), rng, draw)
        elif isinstance(node, exp.Add | exp.Sub | exp.Mul) and value is not None:
            self._computed(node, scope, number_of(value), rng, draw)

    def value_of(self, expression: exp.Expr, scope: Scope) -> Value:
        """Returns a column's or a constant's value where it is known, None otherwise."""
        node = expression.unnest()
        constant = literal(node)
        if constant is not None:
            return constant[0]
        if isinstance(node, exp.AggFunc):
            return self.value_of(node.this, scope) if node.this is not None else None
        cell = self._query.cell(node, scope)
        return None if cell is None else self.get(cell)

    def _concatenated(
        self, node: exp.Expr, scope: Scope, text: str, rng: random.Random, draw: Draw
    ) -> None:
        cut = rng.randint(0, len(text))
        left = self.value_of(node.this, scope)
        if isinstance(left, str) and text.startswith(left):
            cut = len(left)
        self.make(node.this, scope, text[:cut], rng, draw)
        self.make(node.args["expression"], scope, text[cut:], rng, draw)

    def _computed(
        self, node: exp.Expr, scope: Scope, target: float, rng: random.Random, draw: Draw
    ) -> None:
        shapes: list[Value] = []
        for side in (node.this, node.expression):
            cell = self._query.cell(side.unnest(), scope)
            known = self.value_of(side, scope)
            shapes.append(known if known is not None or cell is None else draw(cell))
        right = number_of(shapes[1])
        if isinstance(node, exp.Add):
            left = target - right
        elif isinstance(node, exp.Sub):
            left = target + right
        else:
            divisors = [n for n in (101, 100, 103, 7, 3, 2, 1) if target % n == 0]
            right = rng.choice(divisors or [1])
            left = target / right
        self.make(node.expression, scope, with_number(shapes[1], right), rng, draw)
        self.make(node.this, scope, with_number(shapes[0], left), rng, draw)


_LEFT_OPEN = 0.7
"""How often cells that are only tied to each other are left to become a fresh key."""

_DRAWN = 0.3
"""How often values of the column's own are offered beside those that a condition names."""
