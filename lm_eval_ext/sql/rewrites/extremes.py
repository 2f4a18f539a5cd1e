"""Rules for the largest, the smallest and the second: with a LIMIT, or compared with MAX or MIN.

All hold only where the original has no tie at the LIMIT: with one, which row is first is open, and
``= (SELECT MAX(x) ...)`` gives all of them.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeGuard

from sqlglot import exp

from lm_eval_ext.sql.parsing import COMPARISONS, parts_of, to_sql
from lm_eval_ext.sql.proofs.facts import is_closed
from lm_eval_ext.sql.proofs.places import is_aggregate, limit_of, place_of
from lm_eval_ext.sql.rewrites.base import (
    Change,
    Facts,
    Need,
    Needs,
    Rule,
    affinity,
    all_of,
    changed,
    declared,
    number,
    together,
)
from lm_eval_ext.sql.rewrites.queries import aliased, derived, has_star, tables_only

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "first_as_extreme": "x = (SELECT MAX(x) ...) for ORDER BY x DESC LIMIT 1",
        "first_group_as_extreme": "HAVING COUNT(*) = (SELECT MAX(v) FROM (SELECT COUNT(*) AS v ... "
        "GROUP BY x)) for GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1",
        "second_as_offset": "ORDER BY x DESC LIMIT 1 OFFSET 1 for the last of the first two",
        "second_as_nested_extreme": "x = (SELECT MAX(x) ... WHERE x < (SELECT MAX(x) ...)) for the "
        "last of the first two",
        "extreme_as_first": "SELECT x ... ORDER BY x DESC LIMIT 1 for SELECT MAX(x) ...",
    }
)
"""The rules, with a description each."""

_TIE = "no other row ties with the first one on the original"

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "first_as_extreme": "the sort term is a column or computed from columns without NULL; "
        f"{_TIE}",
        "first_group_as_extreme": "the sort term is a count, or an aggregate of a column of "
        f"integers without NULL; {_TIE}",
        "second_as_offset": "the first three rows do not tie on the original, which has at least "
        "two that no condition with a subquery selects",
        "second_as_nested_extreme": "as for second_as_offset; the sort term is a column without "
        "NULL",
        "extreme_as_first": "compared with a value of x's affinity, x is a column, of MIN without "
        "NULL. As the whole query: the original has such rows, which no condition with a subquery "
        "selects",
    }
)
"""When each rule is sound."""

_BOTH = 2


def _first_term(select: exp.Select) -> tuple[exp.Expr, bool] | None:
    """The only sort term, and whether it is descending."""
    order = select.args.get("order")
    if order is None or len(order.expressions) != 1:
        return None
    term = order.expressions[0]
    return term.this, bool(term.args.get("desc"))


def _never_null(node: exp.Expr, facts: Facts) -> Needs | None:
    """What it takes that a column, or what is computed from columns, is not NULL."""
    if isinstance(node, exp.Paren):
        return _never_null(node.this, facts)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return together(_never_null(node.this, facts), _never_null(node.expression, facts))
    if isinstance(node, exp.Literal | exp.Count):
        return ()
    return facts.no_null(node) if isinstance(node, exp.Column) else None


def _tie(query: exp.Expr, facts: Facts) -> Needs | None:
    """The promise that a query has no rows; None if it has some on the original."""
    need = Need("no tie", value=to_sql(query))
    return (need,) if facts.holds(need) else None


def _own_names_only(node: exp.Expr, select: exp.Select) -> bool:
    """Whether no column of a sort term means the alias of a result."""
    aliases = {r.alias.casefold() for r in select.expressions if isinstance(r, exp.Alias)}
    return not any(
        not column.table and column.name.casefold() in aliases
        for column in node.find_all(exp.Column)
    )


def _stripped(select: exp.Select, *clauses: str) -> exp.Select:
    copy: exp.Select = select.copy()
    for clause in clauses:
        copy.set(clause, None)
    return copy


def _next_one(query: exp.Select) -> exp.Select:
    """The second row of a query, as a 1."""
    query.set("expressions", [number(1)])
    query.set("limit", exp.Limit(expression=number(1)))
    query.set("offset", exp.Offset(expression=number(1)))
    return query


def first_as_extreme(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The row whose value is the extreme one."""
    if not isinstance(node, exp.Select) or limit_of(node) != 1 or node.args.get("group"):
        return
    term = _first_term(node)
    if term is None or is_aggregate(node) or node.args.get("distinct") or node.args.get("with_"):
        return
    value, descending = term
    if not tables_only(node, facts.schema) or not _own_names_only(value, node):
        return
    needs = _never_null(value, facts)
    if needs is None or isinstance(value, exp.Literal) or not is_closed(node, facts.schema):
        return
    base = _stripped(node, "order", "limit")
    new = base.copy()
    where_last(new, exp.EQ(this=value.copy(), expression=_extreme(base, value, descending)))
    no_tie = _tie(_next_one(new.copy()), facts)
    needs = together(needs, no_tie)
    if needs is not None:
        yield changed("first_as_extreme", node, new, needs, settled=True)


def _extreme(base: exp.Select, value: exp.Expr, descending: bool) -> exp.Expr:  # noqa: FBT001
    query = base.copy()
    query.set("expressions", [(exp.Max if descending else exp.Min)(this=value.copy())])
    return exp.Subquery(this=query)


def where_last(select: exp.Select, part: exp.Expr) -> None:
    """Adds a condition to a WHERE, in place, at its end."""
    where = select.args.get("where")
    if where is None:
        select.set("where", exp.Where(this=part))
        return
    old = where.this
    before = exp.Paren(this=old.copy()) if isinstance(old, exp.Or) else old.copy()
    select.set("where", exp.Where(this=exp.And(this=before, expression=part)))


def first_group_as_extreme(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The group whose aggregate is the extreme one."""
    if not isinstance(node, exp.Select) or limit_of(node) != 1 or node.args.get("group") is None:
        return
    term = _first_term(node)
    if term is None or any(node.args.get(c) for c in ("distinct", "with_")):
        return
    value, descending = term
    if (
        not isinstance(value, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max)
        or value.expressions
    ):
        return
    if not tables_only(node, facts.schema) or not is_closed(node, facts.schema):
        return
    needs: Needs | None = ()
    if not isinstance(value, exp.Count):
        inner = value.this
        needs = together(facts.integers(inner), _never_null(inner, facts))
    elif not isinstance(value.this, exp.Star | exp.Distinct | exp.Column):
        return
    base = _stripped(node, "order", "limit")
    counted = base.copy()
    counted.set("expressions", [aliased(value, "v")])
    extreme = exp.Select(
        expressions=[(exp.Max if descending else exp.Min)(this=exp.column("v"))],
        from_=exp.From(this=derived(counted, "counted")),
    )
    new = base.copy()
    equal = exp.EQ(this=value.copy(), expression=exp.Subquery(this=extreme))
    new.set("having", exp.Having(this=all_of([*parts_of(base, "having"), equal])))
    needs = together(needs, _tie(_next_one(new.copy()), facts))
    if needs is not None:
        yield changed("first_group_as_extreme", node, new, needs, settled=True)


def second(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The last of the first two."""
    found = _last_of_two(node, facts)
    if found is None:
        return
    inner, value, descending, results = found
    ranked = inner.copy()
    ranked.set("expressions", [aliased(value, "v")])
    ranked.set("limit", exp.Limit(expression=number(3)))
    tied = exp.Select(
        expressions=[number(1)],
        from_=exp.From(this=derived(ranked, "ranked")),
        group=exp.Group(expressions=[exp.column("v")]),
        having=exp.Having(this=exp.GT(this=exp.Count(this=exp.Star()), expression=number(1))),
    )
    needs = _tie(tied, facts)
    two = facts.ask(to_sql(inner))
    if needs is None or two is None or len(two) != _BOTH:
        return
    new = inner.copy()
    new.set("expressions", results)
    new.set("limit", exp.Limit(expression=number(1)))
    new.set("offset", exp.Offset(expression=number(1)))
    yield changed("second_as_offset", node, new, needs, settled=True)
    no_null = facts.no_null(value) if isinstance(value, exp.Column) else None
    if inner.args.get("group") or no_null is None or not tables_only(inner, facts.schema):
        return
    base = _stripped(inner, "order", "limit")
    rest = base.copy()
    beyond = exp.LT if descending else exp.GT
    where_last(rest, beyond(this=value.copy(), expression=_extreme(base, value, descending)))
    new = base.copy()
    new.set("expressions", [result.copy() for result in results])
    where_last(new, exp.EQ(this=value.copy(), expression=_extreme(rest, value, descending)))
    both = together(needs, no_null) or ()
    yield changed("second_as_nested_extreme", node, new, both, settled=True)


def _last_of_two(
    node: exp.Expr, facts: Facts
) -> tuple[exp.Select, exp.Expr, bool, list[exp.Expr]] | None:
    """The inner query, its sort term and direction, and the results in its terms."""
    if not isinstance(node, exp.Select) or limit_of(node) != 1 or has_star(node):
        return None
    others = ("where", "group", "having", "distinct", "joins", "with_")
    source = node.args["from_"].this if node.args.get("from_") else None
    inner = source.this if isinstance(source, exp.Subquery) else None
    outer = _first_term(node)
    if any(node.args.get(c) for c in others) or outer is None or not _gives_two(inner):
        return None
    term = _first_term(inner)
    outputs = {r.alias_or_name.casefold(): r.unalias() for r in inner.expressions}
    wanted = [r.unalias() for r in node.expressions]
    if term is None or term[1] == outer[1] or len(outputs) < len(inner.expressions):
        return None
    if any(not isinstance(c, exp.Column) or c.name.casefold() not in outputs for c in wanted):
        return None
    if not _own_names_only(term[0], inner) or outputs.get(outer[0].name.casefold()) != term[0]:
        return None
    return inner, term[0], term[1], [outputs[c.name.casefold()].copy() for c in wanted]


def _gives_two(inner: exp.Expr | None) -> TypeGuard[exp.Select]:
    """Whether a query has a LIMIT of two, and rows that added ones cannot take away."""
    if not isinstance(inner, exp.Select) or limit_of(inner) != _BOTH:
        return False
    unsafe = any(inner.args.get(c) for c in ("having", "distinct", "with_"))
    return not unsafe and list(inner.find_all(exp.Query)) == [inner]


def extreme_as_first(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The first of the sorted values."""
    if not isinstance(node, exp.Select) or len(node.expressions) != 1:
        return
    call = node.expressions[0].unalias()
    clauses = ("group", "having", "order", "limit", "distinct", "with_")
    if not isinstance(call, exp.Max | exp.Min) or call.expressions:
        return
    if any(node.args.get(c) for c in clauses) or not tables_only(node, facts.schema):
        return
    value = call.this
    if not isinstance(value, exp.Column) or declared(value, facts.schema) is None:
        return
    needs = facts.no_null(value) if isinstance(call, exp.Min) else ()
    if needs is None:
        return
    new = node.copy()
    new.set("expressions", [value.copy()])
    descending = isinstance(call, exp.Max)
    term = exp.Ordered(this=value.copy(), desc=descending, nulls_first=not descending)
    new.set("order", exp.Order(expressions=[term]))
    new.set("limit", exp.Limit(expression=number(1)))
    if node.parent is None:
        rows = facts.ask(to_sql(node))
        if rows and rows[0][0] is not None and len(list(node.find_all(exp.Query))) == 1:
            yield changed("extreme_as_first", node, new, needs, settled=True)
    elif place_of(node) == "scalar" and isinstance(node.parent, exp.Subquery):
        comparison = node.parent.parent
        if comparison is not None and type(comparison) in COMPARISONS:
            other = (
                comparison.this if comparison.expression is node.parent else comparison.expression
            )
            if affinity(other, facts.schema) == affinity(value, facts.schema):
                yield changed("extreme_as_first", node, new, needs, outer_only=True)


RULES: tuple[Rule, ...] = (
    first_as_extreme,
    first_group_as_extreme,
    second,
    extreme_as_first,
)
