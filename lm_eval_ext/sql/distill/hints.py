"""What a gold's conditions say about values: goals for its rows, constants, sort keys."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from lm_eval_ext.sql.distill.query import Cell, Query, Scope
from lm_eval_ext.sql.distill.values import (
    OPPOSITE,
    compares,
    is_like,
    matching,
    nearby,
)
from lm_eval_ext.sql.parsing import COMPARISONS, MIRRORED
from lm_eval_ext.sql.values import Value


@dataclass(frozen=True)
class OneOf:
    """An expression should have one of some values.

    Attributes:
        expression: Of columns.
        values: Some that may fit.
        test: Whether a value fits.
    """

    expression: exp.Expr
    values: tuple[Value, ...]
    test: Callable[[Value], bool]


@dataclass(frozen=True)
class Equal:
    """Two expressions should have the same value."""

    left: exp.Expr
    right: exp.Expr


@dataclass(frozen=True)
class Compared:
    """A comparison with another expression, or with a subquery's only value, should hold."""

    left: exp.Expr
    operator: str
    right: exp.Expr


@dataclass(frozen=True)
class Member:
    """An expression's value should be among a subquery's values, or not."""

    expression: exp.Expr
    query: exp.Expr
    truth: bool


@dataclass(frozen=True)
class Exists:
    """A subquery should have rows, or none."""

    query: exp.Expr
    truth: bool


Goal = OneOf | Equal | Compared | Member | Exists


def plan(condition: exp.Expr, truth: bool, rng: random.Random) -> list[Goal]:  # noqa: FBT001, PLR0911
    """Returns goals that give a condition a truth value; draws one of several ways to do so."""
    if isinstance(condition, exp.Paren):
        return plan(condition.this, truth, rng)
    if isinstance(condition, exp.Not):
        return plan(condition.this, not truth, rng)
    if isinstance(condition, exp.And | exp.Or):
        sides = [condition.left, condition.right]
        # A conjunction fails by one part while the other holds, so that this part decides;
        # likewise a disjunction holds by one part.
        if truth != isinstance(condition, exp.And):
            chosen = rng.randrange(2)
            odd = isinstance(condition, exp.Or)
            return plan(sides[chosen], odd, rng) + plan(sides[1 - chosen], not odd, rng)
        return [goal for side in sides for goal in plan(side, truth, rng)]
    if isinstance(condition, exp.Exists):
        return [Exists(condition.this, truth)]
    if isinstance(condition, exp.In):
        return _in(condition, truth)
    if isinstance(condition, exp.Between):
        return _between(condition, truth, rng)
    if isinstance(condition, exp.Like):
        return _like(condition, truth, rng)
    if isinstance(condition, exp.Is) and isinstance(condition.expression, exp.Null):
        return [OneOf(condition.this, (None,) if truth else (), lambda v: (v is None) == truth)]
    operator = operator_of(condition)
    if operator is None:
        return []
    return _comparison(condition.this, operator, condition.expression, truth)


def literal(expression: exp.Expr) -> tuple[Value] | None:
    """Returns a constant's value in a tuple; None if the expression is not a constant."""
    if isinstance(expression, exp.Paren):
        return literal(expression.this)
    if isinstance(expression, exp.Null):
        return (None,)
    if isinstance(expression, exp.Neg):
        inner = literal(expression.this)
        value = inner[0] if inner else None
        return (-value,) if isinstance(value, int | float) else None
    if isinstance(expression, exp.Literal):
        if expression.is_string:
            return (str(expression.this),)
        text = str(expression.this)
        return (int(text),) if text.isdigit() else (float(text),)
    return None


def operator_of(condition: exp.Expr) -> str | None:
    """Returns a comparison's operator; None for other conditions."""
    return COMPARISONS.get(type(condition))


def _between(condition: exp.Expr, truth: bool, rng: random.Random) -> list[Goal]:  # noqa: FBT001
    """BETWEEN should fail at one of its bounds only."""
    failing = -1 if truth else rng.randrange(2)
    goals: list[Goal] = []
    for number, (operator, side) in enumerate(((">=", "low"), ("<=", "high"))):
        bound = condition.args[side]
        goals += _comparison(condition.this, operator, bound, number != failing)
    return goals


def _comparison(
    left: exp.Expr,
    operator: str,
    right: exp.Expr,
    truth: bool,  # noqa: FBT001
) -> list[Goal]:
    unlike = operator == "<>" and not truth
    if not truth:
        operator = OPPOSITE[operator]
    if literal(left) is not None:
        left, right, operator = right, left, MIRRORED[operator]
    bound = literal(right)
    if bound is not None:
        value = bound[0]
        near = (*nearby(value), None) if unlike else tuple(nearby(value))  # NULL <> x fails, too
        return [OneOf(left, near, lambda v: compares(operator, v, value) or (unlike and v is None))]
    if operator == "=" and not _is_subquery(left) and not _is_subquery(right):
        return [Equal(left, right)]
    if _is_subquery(left):
        left, right, operator = right, left, MIRRORED[operator]
    return [Compared(left, operator, right)]


def _in(condition: exp.Expr, truth: bool) -> list[Goal]:  # noqa: FBT001
    query = condition.args.get("query")
    if query is not None:
        return [Member(condition.this, query, truth)]
    listed = [literal(value) for value in condition.expressions]
    values = tuple(value[0] for value in listed if value is not None)
    if truth:
        return [OneOf(condition.this, values, lambda v: any(compares("=", v, w) for w in values))]
    others = tuple(near for value in values for near in nearby(value)[:3])
    return [OneOf(condition.this, others, lambda v: all(compares("<>", v, w) for w in values))]


def _like(condition: exp.Expr, truth: bool, rng: random.Random) -> list[Goal]:  # noqa: FBT001
    pattern = literal(condition.expression)
    if pattern is None or not isinstance(pattern[0], str):
        return []
    text = pattern[0]
    if truth:
        values = tuple(matching(text, rng) for _ in range(2))
        return [OneOf(condition.this, values, lambda v: is_like(text, v))]
    bare = text.replace("%", "").replace("_", "")
    almost = (bare[:-1] or "q", "q" + bare[1:], bare + "q", "q" + bare)
    values = tuple(value for value in almost if not is_like(text, value))
    return [OneOf(condition.this, values, lambda v: v is not None and not is_like(text, v))]


def _is_subquery(expression: exp.Expr) -> bool:
    return isinstance(expression.unnest(), exp.Query)


def cell_of(query: Query, expression: exp.Expr, scope: Scope) -> Cell | None:
    """Returns the cell of a column, or of the column in an aggregate other than COUNT."""
    node = expression.unnest()
    if isinstance(node, exp.AggFunc) and not isinstance(node, exp.Count):
        node = node.this.unnest() if node.this is not None else node
    return query.cell(node, scope)


def output_of(query: Query, inner: Scope | None) -> Cell | None:
    """Returns the cell of a subquery's first result column."""
    if inner is None or not inner.outputs:
        return None
    return cell_of(query, inner.outputs[0], inner)


def sorted_by(query: Query) -> set[Cell]:
    """Returns the cells that are sorted by, or aggregated other than by COUNT."""
    found: set[Cell] = set()
    for scope in query.scopes:
        parts = [*scope.orders, *scope.outputs]
        for expression in parts:
            for node in expression.find_all(exp.AggFunc):
                if not isinstance(node, exp.Count):
                    found.update(query.cells(node, scope))
        for expression in scope.orders:
            found.update(query.cells(expression, scope))
    return found


def literals_by_column(query: Query) -> dict[tuple[str, str], list[Value]]:
    """Returns the constants that columns are compared with."""
    found: dict[tuple[str, str], list[Value]] = {}
    for scope in query.scopes:
        for condition in scope.parts:
            for node in condition.walk():
                if operator_of(node) is not None:
                    pairs = [(node.this, node.expression), (node.expression, node.this)]
                elif isinstance(node, exp.In):
                    pairs = [(node.this, value) for value in node.expressions]
                elif isinstance(node, exp.Between):
                    pairs = [(node.this, node.args[side]) for side in ("low", "high")]
                else:
                    continue
                for one, other in pairs:
                    cell, bound = query.cell(one.unnest(), scope), literal(other)
                    if cell is not None and bound is not None:
                        found.setdefault((query.table_of(cell), cell[2]), []).append(bound[0])
    return found


def takes_the_first(query: Query) -> bool:
    """Whether a comparison uses the first row of a subquery that may have several."""
    for scope in query.scopes:
        for part in scope.parts:
            for side in (part.this, part.args.get("expression")):
                inner = side.unnest() if operator_of(part) and side is not None else None
                if isinstance(inner, exp.Select) and not inner.find(exp.AggFunc):
                    return True
    return False
