"""First grade: rules on conditions, and how comparisons of a value with literals are related.

SQLite orders all values: numbers, then texts (by their bytes, in binary collation), then
blobs; NULL satisfies no comparison. So ``x > 5`` implies ``x > 2`` whatever is stored in ``x``,
as long as neither literal is converted before it is compared.
"""

import re
from dataclasses import dataclass

from sqlglot import exp

from lm_eval_ext.sql.parsing import (
    COMPARISONS,
    HOLDS,
    MIRRORED,
    parts_of,
    select_of,
    sources,
    table_of,
    to_sql,
)
from lm_eval_ext.sql.proofs.facts import Facts, Name, at_most_one_row, facts_of
from lm_eval_ext.sql.proofs.places import is_aggregate, simplification
from lm_eval_ext.sql.proofs.rows import order_is_settled
from lm_eval_ext.sql.schema import Schema, Table

Point = tuple[int, float | int | bytes]
"""A literal as SQLite orders it: (0, number) or (1, text as bytes)."""

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
        return HOLDS[self.operator](point, self.points[0])


def bounds(condition: exp.Expr, facts: Facts) -> list[Bound]:
    """Returns the comparisons with literals that a condition amounts to; none if it is not one."""
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
        operator = COMPARISONS.get(type(condition))
        if operator is None:
            return []
        left, right = condition.this, condition.expression
        found = _bound(left, operator, [right], facts) or _bound(
            right, MIRRORED[operator], [left], facts
        )
    return [found] if found else []


def implies(known: Bound, asked: Bound) -> bool:  # noqa: PLR0911 (one return per case)
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
    # There may be a value between any two different numbers or texts.
    return low.points[0] > high.points[0] or (
        low.points[0] == high.points[0] and not (low.operator == ">=" and high.operator == "<=")
    )


def _bound(value: exp.Expr, operator: str, literals: list[exp.Expr], facts: Facts) -> Bound | None:
    kind = _kind(value, facts)
    if kind is None:
        return None
    points = [_point(literal, kind[1]) for literal in literals if isinstance(literal, exp.Literal)]
    if len(points) != len(literals) or None in points:
        return None
    return Bound(kind[0], operator, tuple(point for point in points if point is not None))


def _kind(value: exp.Expr, facts: Facts) -> tuple[str, str] | None:
    """Returns a name for a value and its affinity; None if it is unknown how it compares."""
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
    """Returns a literal's place in SQLite's order; None if it is converted before comparing."""
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


@simplification("one condition follows from another")
def implied_condition(select: exp.Select, schema: Schema) -> bool:
    """A condition that follows from another one of the same WHERE or HAVING."""
    clauses = [c for c in ("where", "having") if len(parts_of(select, c)) > 1]
    if not clauses:
        return False
    facts = facts_of(select, schema)
    for clause in clauses:
        if clause == "where" and _may_change_plan(select, facts, schema):
            continue
        parts = parts_of(select, clause)
        for i, part in enumerate(parts):
            asked = bounds(part, facts)
            for j, other in enumerate(parts):
                known = bounds(other, facts)
                follows = bool(asked) and all(any(implies(k, a) for k in known) for a in asked)
                if i != j and (part == other or follows):
                    _set_parts(select, clause, [p for p in parts if p is not part])
                    return True
    return False


@simplification("the outer query asks for the condition already")
def implied_outside(select: exp.Select, schema: Schema) -> bool:
    """A condition of a subquery on the outer row that the outer WHERE implies."""
    outside = select_of(select)
    if outside is None or select.args.get("where") is None:
        return False
    if select.find_ancestor(exp.Where) is None:
        return False
    inner = facts_of(select, schema)
    if not inner.sources or _may_change_plan(select, inner, schema):
        return False
    outer = facts_of(outside, schema, inner=inner)
    parts = parts_of(outside, "where")
    here = [part for part in parts if any(node is select for node in part.walk())]
    known = [bound for part in parts if part not in here for bound in bounds(part, outer)]
    if not outer.sources or len(here) != 1:
        return False
    mine = parts_of(select, "where")
    for part in mine:
        asked = [] if bounds(part, inner) else bounds(part, outer)
        if asked and all(any(implies(k, a) for k in known) for a in asked):
            _set_parts(select, "where", [p for p in mine if p is not part])
            return True
    return False


@simplification("every group has a row")
def nonempty_group(select: exp.Select, schema: Schema) -> bool:
    """HAVING COUNT(*) of at least one: each group has a row."""
    if select.args.get("group") is None or select.args.get("having") is None:
        return False
    facts = facts_of(select, schema)
    known = Bound("COUNT(*)", ">=", ((0, 1),))
    parts = parts_of(select, "having")
    for part in parts:
        asked = bounds(part, facts)
        if asked and all(implies(known, a) for a in asked):
            _set_parts(select, "having", [p for p in parts if p is not part])
            return True
    return False


@simplification("the conditions contradict each other")
def contradiction(select: exp.Select, schema: Schema) -> bool:
    """Conditions of one WHERE that cannot hold together."""
    parts = parts_of(select, "where")
    if not parts:
        return False
    facts = facts_of(select, schema)
    found = [bound for part in parts for bound in bounds(part, facts)]
    if any(contradict(a, b) for i, a in enumerate(found) for b in found[:i]):
        select.args["where"].set("this", exp.false())
        return True
    return False


@simplification("either way round the text holds that letter")
def swapped_letters(select: exp.Select, schema: Schema) -> bool:
    """``a || b LIKE '%x%'`` with one ASCII letter holds for any order of the operands."""
    for like in select.find_all(exp.Like):
        pattern, whole = like.expression, like.this.unnest()
        if not isinstance(pattern, exp.Literal) or not isinstance(whole, exp.DPipe):
            continue
        if isinstance(like.parent, exp.Escape):
            continue
        if not re.fullmatch(r"%[A-Za-z]%", pattern.this):
            continue
        parts = _pieces(whole)
        in_order = sorted(parts, key=to_sql)
        if parts != in_order or whole is not like.this:
            joined = in_order[0].copy()
            for part in in_order[1:]:
                joined = exp.DPipe(this=joined, expression=part.copy(), safe=True)
            like.set("this", joined)
            return True
    return False


def never(select: exp.Select) -> bool:
    """Whether :func:`contradiction` found a SELECT's conditions to be false."""
    where = select.args.get("where")
    return where is not None and isinstance(where.this, exp.Boolean) and not where.this.this


def _may_change_plan(select: exp.Select, facts: Facts, schema: Schema) -> bool:
    """Whether one condition less may change the order in which tables are joined, visibly."""
    if len(facts.sources) == 1 or order_is_settled(select, facts):
        return False
    return not at_most_one_row(select, schema, facts=facts)


def _pieces(text: exp.Expr) -> list[exp.Expr]:
    bare = text.unnest()
    return _pieces(bare.this) + _pieces(bare.expression) if isinstance(bare, exp.DPipe) else [text]


def _set_parts(select: exp.Select, clause: str, parts: list[exp.Expr]) -> None:
    if not parts:
        select.set(clause, None)
        return
    condition = parts[0].copy()
    for part in parts[1:]:
        condition = exp.And(this=condition, expression=part.copy())
    select.args[clause].set("this", condition)


@simplification("EXCEPT takes texts away from integers")
def never_equal(select: exp.Select, schema: Schema) -> bool:
    """The right side of EXCEPT if it gives texts and the left side only integers.

    Set operations convert nothing: 1 and '1' differ. A column of TEXT affinity holds no number,
    and COUNT and an INTEGER PRIMARY KEY are always integers.
    """
    parent = select.parent
    if not isinstance(parent, exp.Except) or parent.expression is not select:
        return False
    kept = parent.this
    if not isinstance(kept, exp.Select) or select.args.get("limit") is not None:
        return False
    if len(select.expressions) != 1 or len(kept.expressions) != 1:
        return False
    facts = facts_of(select, schema)
    name = facts.name(select.expressions[0].unalias())
    if name is None or facts.column(name).affinity != "TEXT" or not _is_integer(kept, schema):
        return False
    table = _table(facts, name)
    if table is None or table.view:
        return False  # values of a view's column need not have its declared type
    nothing = exp.Select(expressions=[exp.Null()], where=exp.Where(this=exp.false()))
    select.replace(nothing)
    return True


def _is_integer(select: exp.Select, schema: Schema) -> bool:
    value = select.expressions[0].unalias()
    if isinstance(value, exp.Count):
        return True
    facts = facts_of(select, schema)
    name = facts.name(value)
    if name is None or is_aggregate(select):
        return False
    table = _table(facts, name)
    return table is not None and (table.rowid_alias or "").casefold() == name[1]


def _table(facts: Facts, name: Name) -> Table | None:
    found = (s for s in sources(facts.select) if s.alias_or_name.casefold() == name[0])
    return table_of(next(found), facts.schema)


SIMPLIFICATIONS = (
    implied_condition,
    implied_outside,
    nonempty_group,
    contradiction,
    swapped_letters,
    never_equal,
)
