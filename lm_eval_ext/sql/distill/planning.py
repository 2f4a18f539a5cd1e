"""From a condition to what single cells should hold for it to be true, or false."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from lm_eval_ext.sql.distill.values import (
    MIRRORED,
    OPPOSITE,
    compares,
    is_like,
    matching,
    satisfying,
)
from lm_eval_ext.sql.values import Value


@dataclass(frozen=True)
class Wish:
    """What an expression should be.

    Attributes:
        expression: Of columns.
        values: Some that will do.
        test: Whether a value will do.
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
    """An expression should compare in some way with another, or a subquery's only value."""

    left: exp.Expr
    operator: str
    right: exp.Expr


@dataclass(frozen=True)
class Member:
    """An expression should be, or not be, among a subquery's values."""

    expression: exp.Expr
    query: exp.Expr
    truth: bool


@dataclass(frozen=True)
class Exists:
    """A subquery should have rows, or none."""

    query: exp.Expr
    truth: bool


Goal = Wish | Equal | Compared | Member | Exists


def conjuncts(conditions: list[exp.Expr]) -> list[exp.Expr]:
    """Returns the parts of which all must hold."""
    found: list[exp.Expr] = []
    for condition in conditions:
        if isinstance(condition, exp.And):
            found += conjuncts([condition.left, condition.right])
        elif isinstance(condition, exp.Paren):
            found += conjuncts([condition.this])
        else:
            found.append(condition)
    return found


def plan(condition: exp.Expr, truth: bool, rng: random.Random) -> list[Goal]:  # noqa: FBT001, PLR0911
    """Returns goals that, reached, give a condition a truth value; draws where there are many."""
    if isinstance(condition, exp.Paren):
        return plan(condition.this, truth, rng)
    if isinstance(condition, exp.Not):
        return plan(condition.this, not truth, rng)
    if isinstance(condition, exp.And | exp.Or):
        sides = [condition.left, condition.right]
        # A conjunction fails by one part, the other holding (so that the part matters), and
        # a disjunction holds by one part.
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
        return [Wish(condition.this, (None,) if truth else (), lambda v: (v is None) == truth)]
    operator = operator_of(condition)
    if operator is None:
        return []
    return _comparison(condition.this, operator, condition.expression, truth)


def literal(expression: exp.Expr) -> tuple[Value] | None:
    """Returns a constant's value in a tuple; None if the expression is no constant."""
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
    """Returns a comparison's operator; None if it is no comparison."""
    kinds: dict[type[exp.Expr], str] = {
        exp.EQ: "=",
        exp.NEQ: "<>",
        exp.GT: ">",
        exp.GTE: ">=",
        exp.LT: "<",
        exp.LTE: "<=",
    }
    return kinds.get(type(condition))


def _between(condition: exp.Expr, truth: bool, rng: random.Random) -> list[Goal]:  # noqa: FBT001
    """It fails at one of its ends only."""
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
    if not truth:
        operator = OPPOSITE[operator]
    if literal(left) is not None:
        left, right, operator = right, left, MIRRORED[operator]
    bound = literal(right)
    if bound is not None:
        value = bound[0]
        return [
            Wish(left, tuple(satisfying(operator, value)), lambda v: compares(operator, v, value))
        ]
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
        return [Wish(condition.this, values, lambda v: any(compares("=", v, w) for w in values))]
    others = tuple(near for value in values for near in satisfying("<>", value)[:2])
    return [Wish(condition.this, others, lambda v: all(compares("<>", v, w) for w in values))]


def _like(condition: exp.Expr, truth: bool, rng: random.Random) -> list[Goal]:  # noqa: FBT001
    pattern = literal(condition.expression)
    if pattern is None or not isinstance(pattern[0], str):
        return []
    text = pattern[0]
    if truth:
        values = tuple(matching(text, rng) for _ in range(2))
        return [Wish(condition.this, values, lambda v: is_like(text, v))]
    bare = text.replace("%", "").replace("_", "")
    almost = (bare[:-1] or "q", "q" + bare[1:], bare + "q", "q" + bare)
    values = tuple(value for value in almost if not is_like(text, value))
    return [Wish(condition.this, values, lambda v: v is not None and not is_like(text, v))]


def _is_subquery(expression: exp.Expr) -> bool:
    return isinstance(expression.unnest(), exp.Query)
