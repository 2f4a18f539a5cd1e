"""Comparisons of one value with literals: which follow from another, which contradict it.

SQLite orders all values: numbers, then texts (by their bytes, in binary collation), then
blobs; NULL satisfies no comparison. So from ``x > 5`` follows ``x > 2`` whatever is stored in
``x``, as long as neither literal is converted before it is compared.
"""

import re
from dataclasses import dataclass

from sqlglot import exp

from lm_eval_ext.sql.proofs.facts import Facts

Point = tuple[int, float | int | bytes]
"""A literal as SQLite orders it: (0, number) or (1, text as bytes)."""

_FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_LOOKS_LIKE_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class Bound:
    """One comparison: the value's text, the operator and what it is compared with.

    For ``in`` there may be several points, else one.
    """

    value: str
    operator: str
    points: tuple[Point, ...]

    def holds(self, point: Point) -> bool:
        """Whether a value that equals ``point`` satisfies the comparison."""
        if self.operator == "in":
            return point in self.points
        return _compare(self.operator, point, self.points[0])


def bounds(condition: exp.Expr, facts: Facts) -> list[Bound]:
    """Returns what a condition says, all of which must hold; nothing if it is none of ours."""
    condition = condition.unnest()
    if isinstance(condition, exp.Between):
        low = _bound(condition.this, ">=", [condition.args["low"]], facts)
        high = _bound(condition.this, "<=", [condition.args["high"]], facts)
        return [low, high] if low and high else []
    if isinstance(condition, exp.In):
        if not condition.expressions:
            return []
        found = _bound(condition.this, "in", condition.expressions, facts)
    else:
        operators: dict[type[exp.Expr], str] = {
            exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.GT: ">", exp.LTE: "<=", exp.GTE: ">=",
        }  # fmt: skip
        operator = operators.get(type(condition))
        if operator is None:
            return []
        left, right = condition.this, condition.expression
        found = _bound(left, operator, [right], facts) or _bound(
            right, _FLIPPED[operator], [left], facts
        )
    return [found] if found else []


def implies(known: Bound, asked: Bound) -> bool:  # noqa: PLR0911 (one case after the other)
    """Whether every value (of the same expression) that satisfies one satisfies the other."""
    if known.value != asked.value:
        return False
    if known.operator in ("=", "in"):
        return all(asked.holds(point) for point in known.points)
    if asked.operator in ("=", "in"):
        return False
    here, there = known.points[0], asked.points[0]
    if known.operator == "<>":
        return asked.operator == "<>" and here == there
    upwards = known.operator[0] == ">"
    if asked.operator == "<>":
        return not known.holds(there)
    if asked.operator[0] != known.operator[0]:
        return False
    if here == there:
        return known.operator == asked.operator or asked.operator.endswith("=")
    return (here > there) if upwards else (here < there)


def contradict(one: Bound, other: Bound) -> bool:
    """Whether no value satisfies both comparisons."""
    if one.value != other.value:
        return False
    for a, b in ((one, other), (other, one)):
        if a.operator in ("=", "in"):
            return not any(b.holds(point) for point in a.points)
    if "<>" in (one.operator, other.operator) or one.operator[0] == other.operator[0]:
        return False
    low, high = (one, other) if one.operator[0] == ">" else (other, one)
    # Values lie between any two numbers and any two texts that differ, or so we must think.
    return low.points[0] > high.points[0] or (
        low.points[0] == high.points[0] and not (low.operator == ">=" and high.operator == "<=")
    )


def _compare(operator: str, a: Point, b: Point) -> bool:
    return {
        "=": a == b, "<>": a != b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b,
    }[operator]  # fmt: skip


def _bound(value: exp.Expr, operator: str, literals: list[exp.Expr], facts: Facts) -> Bound | None:
    kind = _kind(value, facts)
    if kind is None:
        return None
    points = [_point(literal, kind[1]) for literal in literals if isinstance(literal, exp.Literal)]
    if len(points) != len(literals) or None in points:
        return None
    return Bound(kind[0], operator, tuple(point for point in points if point is not None))


def _kind(value: exp.Expr, facts: Facts) -> tuple[str, str] | None:
    """Returns a name for a value and its affinity; None if we do not know how it compares."""
    name = facts.name(value)
    if name is not None:
        column = facts.column(name)
        return (repr(name), column.affinity) if column.collation == "BINARY" else None
    if isinstance(value, exp.Count) and isinstance(value.this, exp.Star):
        return "COUNT(*)", "BLOB"
    if isinstance(value, exp.Length) and (inner := facts.name(value.this)) is not None:
        return f"LENGTH{inner!r}", "BLOB"
    return None


def _point(literal: exp.Literal, affinity: str) -> Point | None:
    """Returns a literal's place in SQLite's order, None where it would be converted first."""
    text = str(literal.this)
    if literal.is_string:
        if affinity in ("INTEGER", "REAL", "NUMERIC") and _LOOKS_LIKE_NUMBER.fullmatch(text):
            return None
        return (1, text.encode("utf-8", "surrogateescape"))
    if affinity == "TEXT":
        return None
    try:
        return (0, int(text) if text.isdigit() else float(text))
    except ValueError:
        return None
