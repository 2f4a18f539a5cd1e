"""Rules for EXCEPT, INTERSECT and UNION, and what they say as conditions."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql.parsing import parts_of
from lm_eval_ext.sql.proofs.facts import is_closed
from lm_eval_ext.sql.proofs.places import only_values_count
from lm_eval_ext.sql.rewrites.base import (
    Change,
    Facts,
    Needs,
    Rule,
    any_of,
    changed,
    declared,
    together,
)
from lm_eval_ext.sql.rewrites.queries import (
    LIKE_KINDS,
    NO_NULL,
    PLAIN,
    alike,
    derived,
    has_star,
    is_key,
    is_plain,
    membership,
    tables_only,
    where_after,
    without_conjunct,
)

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "not_in_as_except": "x IN (SELECT x FROM a EXCEPT SELECT y FROM b) for x NOT IN (SELECT y "
        "FROM b); also the whole query, or what it counts, as an EXCEPT",
        "except_as_not_in": "x NOT IN (SELECT y ...) for SELECT x ... EXCEPT SELECT y ...",
        "intersect_as_in": "x IN (SELECT y ...) for SELECT x ... INTERSECT SELECT y ...",
        "union_as_or": "p OR q for SELECT ... WHERE p UNION SELECT ... WHERE q",
    }
)
"""The rules, with a description each."""

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "not_in_as_except": f"{PLAIN}; {LIKE_KINDS}; {NO_NULL}. As a whole query or in a count: "
        "x is unique, too",
        "except_as_not_in": f"one column each; {LIKE_KINDS}; {NO_NULL}; the order of rows is "
        "settled or does not count",
        "intersect_as_in": f"one column each; {LIKE_KINDS}; x is not NULL; the order of rows is "
        "settled or does not count",
        "union_as_or": "both read the same tables and give the same columns; the order of rows is "
        "settled or does not count",
    }
)
"""When each rule is sound."""


def not_in_as_except(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """What is left after the others are taken away."""
    found = membership(node)
    if found is None or not found[2]:
        return
    x, inner, _ = found
    y = inner.expressions[0].unalias()
    outer = node.find_ancestor(exp.Select)
    place = declared(x, facts.schema)
    if outer is None or place is None or not is_plain(inner) or not alike(x, y, facts):
        return
    if not is_closed(inner, facts.schema) or not tables_only(inner, facts.schema):
        return
    needs = together(facts.no_null(x), facts.no_null(y))
    if needs is None:
        return
    column = exp.Column(this=x.unnest().this.copy())
    everything = exp.Select(
        expressions=[column], from_=exp.From(this=exp.Table(this=_table_name(place[0].name)))
    )
    left = _minus(everything, inner)
    member = exp.In(this=x.copy(), query=exp.Subquery(this=left))
    yield changed("not_in_as_except", node, member, needs, outer_only=True)


def _table_name(name: str) -> exp.Expr:
    return exp.to_identifier(name, quoted=not name.isidentifier() or name.upper() in _RESERVED)


_RESERVED = frozenset({"ORDER", "GROUP", "TABLE", "TRANSACTION", "INDEX", "VALUES", "TO", "CASE"})


def _minus(left: exp.Select, right: exp.Select) -> exp.Except:
    copy = right.copy()
    copy.set("order", None)
    return exp.Except(this=left.copy(), expression=copy, distinct=True)


def except_around(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A whole query, or what it counts, as an EXCEPT."""
    if not isinstance(node, exp.Select) or len(node.expressions) != 1:
        return
    if any(node.args.get(c) for c in ("group", "having", "order", "limit", "joins", "with_")):
        return
    output = node.expressions[0].unalias()
    for part in parts_of(node, "where"):
        found = membership(part)
        if found is None or not found[2]:
            continue
        x, inner, _ = found
        y = inner.expressions[0].unalias()
        if not is_key(x, facts) or not is_plain(inner) or not alike(x, y, facts):
            continue
        needs = together(facts.no_null(x), facts.no_null(y))
        if needs is None or not is_closed(inner, facts.schema):
            continue
        left = without_conjunct(node, part)
        left.set("expressions", [x.copy()])
        left.set("distinct", None)
        whole = _minus(left, inner)
        if output == x:
            yield changed("not_in_as_except", node, whole, needs, outer_only=True)
        elif isinstance(output, exp.Count) and isinstance(output.this, exp.Star):
            count = exp.Select(
                expressions=[output.copy()], from_=exp.From(this=derived(whole, "remaining"))
            )
            yield changed("not_in_as_except", node, count, needs, outer_only=True)


def set_operation_as_condition(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """EXCEPT, INTERSECT and UNION of two SELECTs as a condition of one."""
    if not isinstance(node, exp.SetOperation) or not node.args.get("distinct"):
        return
    if any(node.args.get(clause) for clause in ("order", "limit", "offset", "with_")):
        return
    left, right = node.this, node.expression
    plain = is_plain(left) and isinstance(right, exp.Select) and not has_star(left)
    if not plain or has_star(right) or not (only_values_count(node) or node.parent is None):
        return
    is_union = isinstance(node, exp.Union)
    found = _one_of(left, right) if is_union else _tested(node, left, right, facts)
    if found is None:
        return
    kind, new, needs = found
    one = len(left.expressions) == 1 and not left.args.get("joins")
    if not (one and is_key(left.expressions[0], facts)):
        new.set("distinct", exp.Distinct())
    yield changed(kind, node, new, needs, outer_only=True)


_Found = tuple[str, exp.Select, Needs]


def _one_of(left: exp.Select, right: exp.Select) -> _Found | None:
    """One of two conditions on the same rows."""
    if not is_plain(right) or left.expressions != right.expressions:
        return None
    read = [(q.args.get("from_"), q.args.get("joins") or []) for q in (left, right)]
    wheres = [q.args.get("where") for q in (left, right)]
    if read[0] != read[1] or wheres[0] is None or wheres[1] is None:
        return None
    new: exp.Select = left.copy()
    new.set("where", exp.Where(this=any_of([wheres[0].this, wheres[1].this]).unnest()))
    return "union_as_or", new, ()


def _tested(
    node: exp.SetOperation, left: exp.Select, right: exp.Select, facts: Facts
) -> _Found | None:
    """A condition on the only column."""
    negated = isinstance(node, exp.Except)
    if len(left.expressions) != 1 or len(right.expressions) != 1:
        return None
    x, y = left.expressions[0].unalias(), right.expressions[0].unalias()
    if not alike(x, y, facts) or not is_closed(right, facts.schema):
        return None
    needs = together(facts.no_null(x), facts.no_null(y)) if negated else facts.no_null(x)
    if needs is None:
        return None
    new: exp.Select = left.copy()
    member: exp.Expr = exp.In(this=x.copy(), query=exp.Subquery(this=right.copy()))
    where_after(new, [exp.Not(this=member) if negated else member])
    return ("except_as_not_in" if negated else "intersect_as_in"), new, needs


RULES: tuple[Rule, ...] = (not_in_as_except, except_around, set_operation_as_condition)
