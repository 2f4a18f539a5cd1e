"""Simplifications of conditions."""

import re

from sqlglot import exp

from lm_eval_ext.sql.mutants.base import conjuncts
from lm_eval_ext.sql.parsing import select_of, to_sql
from lm_eval_ext.sql.proofs.base import Simplification
from lm_eval_ext.sql.proofs.facts import Facts
from lm_eval_ext.sql.proofs.plans import order_is_settled
from lm_eval_ext.sql.proofs.ranges import Bound, bounds, contradict, implies
from lm_eval_ext.sql.proofs.reading import at_most_one_row, facts_of
from lm_eval_ext.sql.schema import Schema


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


def implied_outside(select: exp.Select, schema: Schema) -> bool:
    """A condition of a subquery on the outer row that the outer WHERE asks for, too."""
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


def swapped_letters(select: exp.Select, schema: Schema) -> bool:
    """``a || b LIKE '%x%'`` with one ASCII letter: any order of what is concatenated will do."""
    del schema
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


def sorted_conditions(select: exp.Select, schema: Schema) -> bool:
    """The order of conditions that AND connects does not matter."""
    del schema
    for clause in ("where", "having"):
        parts = parts_of(select, clause)
        in_order = sorted(parts, key=to_sql)
        if parts != in_order:
            _set_parts(select, clause, in_order)
            return True
    return False


def never(select: exp.Select) -> bool:
    """Whether a SELECT has a condition that was found to be false."""
    where = select.args.get("where")
    return where is not None and isinstance(where.this, exp.Boolean) and not where.this.this


def _may_change_plan(select: exp.Select, facts: Facts, schema: Schema) -> bool:
    """Whether one condition less may show in the order in which several tables are joined."""
    if len(facts.sources) == 1 or order_is_settled(select, facts):
        return False
    return not at_most_one_row(select, schema, facts=facts)


def _pieces(text: exp.Expr) -> list[exp.Expr]:
    bare = text.unnest()
    return _pieces(bare.this) + _pieces(bare.expression) if isinstance(bare, exp.DPipe) else [text]


def parts_of(select: exp.Select, clause: str) -> list[exp.Expr]:
    """Returns what WHERE or HAVING asks for, all of which must hold."""
    found = select.args.get(clause)
    return [] if found is None else conjuncts(found.this)


def _set_parts(select: exp.Select, clause: str, parts: list[exp.Expr]) -> None:
    if not parts:
        select.set(clause, None)
        return
    condition = parts[0].copy()
    for part in parts[1:]:
        condition = exp.And(this=condition, expression=part.copy())
    select.args[clause].set("this", condition)


SIMPLIFICATIONS = (
    Simplification("implied_condition", "one condition follows from another", implied_condition),
    Simplification(
        "implied_outside", "the outer query asks for the condition already", implied_outside
    ),
    Simplification("nonempty_group", "every group has a row", nonempty_group),
    Simplification("contradiction", "the conditions contradict each other", contradiction),
    Simplification(
        "swapped_letters", "either way round the text holds that letter", swapped_letters
    ),
    Simplification(
        "sorted_conditions", "the order of conditions does not matter", sorted_conditions
    ),
)
