"""Rules for IN, NOT IN and comparisons with subqueries."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql.parsing import conjuncts, find_source, parts_of, select_of, sources
from lm_eval_ext.sql.proofs.facts import at_most_one_row, is_closed
from lm_eval_ext.sql.proofs.places import limit_of
from lm_eval_ext.sql.rewrites.base import (
    Change,
    Facts,
    Rule,
    changed,
    filters,
    together,
)
from lm_eval_ext.sql.rewrites.queries import (
    LIKE_KINDS,
    MOST_PAIRS,
    NO_NULL,
    PLAIN,
    Membership,
    aliased,
    alike,
    derived,
    free_name,
    has_star,
    inner_joins,
    is_key,
    is_plain,
    keep_apart,
    membership,
    pairs,
    qualified,
    qualify,
    stands_alone,
    tables_only,
    taken_names,
    where_after,
    where_with,
    without_conjunct,
)

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "in_as_exists": "EXISTS (SELECT 1 FROM b WHERE a.x = b.y) for x IN (SELECT y FROM b)",
        "not_in_as_not_exists": "NOT EXISTS (...) for x NOT IN (SELECT y FROM b)",
        "in_as_join": "FROM a JOIN b ON a.x = b.y for x IN (SELECT y FROM b)",
        "in_as_derived_join": "FROM a JOIN (SELECT DISTINCT y ...) AS t ON a.x = t.y for x IN "
        "(SELECT y ...)",
        "join_as_in": "x IN (SELECT y FROM b) for FROM a JOIN b ON a.x = b.y",
        "not_in_as_left_join": "FROM a LEFT JOIN b ON a.x = b.y WHERE b.y IS NULL for x NOT IN "
        "(SELECT y FROM b)",
        "in_as_equality": "x = (SELECT ...) for x IN (SELECT ...) of one row",
        "equality_as_in": "x IN (SELECT ...) for x = (SELECT ...)",
    }
)
"""The rules, with a description each."""

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "in_as_exists": f"{PLAIN}; {LIKE_KINDS}; only rows for which the condition is true "
        "count; not too many pairs of rows",
        "not_in_as_not_exists": f"{PLAIN}; {LIKE_KINDS}; {NO_NULL}; not too many pairs of rows",
        "in_as_join": f"the subquery reads one table, of which y is a key; {LIKE_KINDS}; no * "
        "among the results",
        "in_as_derived_join": f"the subquery does not depend on outer rows; {LIKE_KINDS}; no * "
        "among the results",
        "join_as_in": f"y is a key of b, and no other column of b is used elsewhere; {LIKE_KINDS}",
        "not_in_as_left_join": f"{PLAIN}; {LIKE_KINDS}; {NO_NULL}; no * among the results",
        "in_as_equality": "the subquery has one row at most; only rows for which the condition is "
        "true count",
        "equality_as_in": "the subquery has one row at most; only rows for which the condition is "
        "true count",
    }
)
"""When each rule is sound."""


def in_as_exists(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A subquery for each row."""
    found = membership(node)
    if found is None:
        return
    x, inner, negated = found
    outer = node.find_ancestor(exp.Select)
    y = inner.expressions[0].unalias()
    if outer is None or not is_plain(inner) or not stands_alone(inner, facts.schema):
        return
    if not alike(x, y, facts) or pairs(outer, inner, facts) > MOST_PAIRS:
        return
    needs = together(facts.no_null(x), facts.no_null(y)) if negated else ()
    left = qualified(x, facts.schema)
    if needs is None or left is None:
        return
    new = _apart(inner, outer, facts)
    right = new.expressions[0].unalias().copy()
    for clause in ("distinct", "order"):
        new.set(clause, None)
    new.set("expressions", [exp.Literal.number(1)])
    where_with(new, exp.EQ(this=right, expression=left))
    exists: exp.Expr = exp.Exists(this=new)
    kind = "not_in_as_not_exists" if negated else "in_as_exists"
    yield changed(kind, node, exp.Not(this=exists) if negated else exists, needs, outer_only=True)


def _apart(inner: exp.Select, outer: exp.Select, facts: Facts) -> exp.Select:
    """A copy of a subquery, with qualified columns and with names of its own."""
    new: exp.Select = inner.copy()
    keep_apart(new, {s.alias_or_name.casefold() for s in sources(outer)}, facts.schema)
    qualify(new, facts.schema)
    return new


def in_as_join(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """IN and NOT IN as joins."""
    if not isinstance(node, exp.Select) or has_star(node) or node.args.get("with_"):
        return
    if inner_joins(node) is None or node.args.get("where") is None:
        return
    for part in conjuncts(node.args["where"].this):
        found = membership(part)
        if found is None:
            continue
        x, inner, negated = found
        if not alike(x, inner.expressions[0], facts) or not is_closed(inner, facts.schema):
            continue
        left = qualified(x, facts.schema)
        if left is None:
            continue
        if negated:
            yield from _left_joined(node, part, left, found, facts)
        else:
            yield from _joined(node, part, left, inner, facts)


def _joined(
    node: exp.Select, part: exp.Expr, left: exp.Expr, inner: exp.Select, facts: Facts
) -> Iterator[Change]:
    y = inner.expressions[0]
    one_table = len(list(sources(inner))) == 1 and tables_only(inner, facts.schema)
    if one_table and is_plain(inner) and is_key(y, facts):
        copy = _apart(inner, node, facts)
        new = without_conjunct(node, part)
        qualify_copy(node, new, part, facts)
        on = exp.EQ(this=left.copy(), expression=copy.expressions[0].unalias().copy())
        join = exp.Join(this=copy.args["from_"].this.copy(), on=on)
        new.set("joins", [*(new.args.get("joins") or []), join])
        where_after(new, parts_of(copy, "where"))
        yield changed("in_as_join", node, new, outer_only=True)
    name = free_name("chosen", taken_names(node))
    query = inner.copy()
    query.set("expressions", [aliased(inner.expressions[0], "v")])
    if not _distinct_already(inner, facts):
        if limit_of(inner) is not None or inner.args.get("group") or inner.args.get("order"):
            return
        query.set("distinct", exp.Distinct())
    new = without_conjunct(node, part)
    qualify_copy(node, new, part, facts)
    on = exp.EQ(this=left.copy(), expression=exp.column("v", table=name))
    join = exp.Join(this=derived(query, name), on=on)
    new.set("joins", [*(new.args.get("joins") or []), join])
    yield changed("in_as_derived_join", node, new, outer_only=True)


def _distinct_already(inner: exp.Select, facts: Facts) -> bool:
    group, y = inner.args.get("group"), inner.expressions[0].unalias()
    if inner.args.get("distinct") or limit_of(inner) == 1:
        return True
    if group is not None:
        return len(group.expressions) == 1 and group.expressions[0] == y
    return at_most_one_row(inner, facts.schema) or (
        len(list(sources(inner))) == 1 and is_key(y, facts)
    )


def qualify_copy(node: exp.Select, new: exp.Select, part: exp.Expr, facts: Facts) -> None:
    """Qualifies the columns of a copy that has lost one condition, before it gets a source."""
    place = node.parent
    if place is None:
        qualify(new, facts.schema)
        return
    # Names are looked up in the SELECTs around, so that the copy must stand in the node's place.
    node.replace(new)
    qualify(new, facts.schema)
    new.replace(node)


def _left_joined(
    node: exp.Select, part: exp.Expr, left: exp.Expr, found: Membership, facts: Facts
) -> Iterator[Change]:
    x, inner, _ = found
    y = inner.expressions[0].unalias()
    needs = together(facts.no_null(x), facts.no_null(y))
    if needs is None or not is_plain(inner) or not tables_only(inner, facts.schema):
        return
    new = without_conjunct(node, part)
    qualify_copy(node, new, part, facts)
    if len(list(sources(inner))) == 1:
        copy = _apart(inner, node, facts)
        source, right = copy.args["from_"].this.copy(), copy.expressions[0].unalias().copy()
        on = [exp.EQ(this=left.copy(), expression=right.copy()), *parts_of(copy, "where")]
    else:
        name = free_name("others", taken_names(node))
        query = inner.copy()
        query.set("expressions", [aliased(y, "v")])
        source, right = derived(query, name), exp.column("v", table=name)
        on = [exp.EQ(this=left.copy(), expression=right.copy())]
    condition = on[0]
    for more in on[1:]:
        condition = exp.And(this=condition, expression=_operand(more))
    join = exp.Join(this=source, on=condition, side="LEFT")
    new.set("joins", [*(new.args.get("joins") or []), join])
    where_after(new, [exp.Is(this=right, expression=exp.Null())])
    if pairs(node, inner, facts) <= MOST_PAIRS:
        names = {source.alias_or_name.casefold(): ""}
        yield changed("not_in_as_left_join", node, new, needs, outer_only=True, names=names)


def _operand(part: exp.Expr) -> exp.Expr:
    return exp.Paren(this=part.copy()) if isinstance(part, exp.Connector) else part.copy()


def join_as_in(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A joined table that only filters, as a subquery."""
    if not isinstance(node, exp.Select) or has_star(node) or not tables_only(node, facts.schema):
        return
    found = list(sources(node))
    if len(found) != 2 or not isinstance(on := node.args["joins"][0].args.get("on"), exp.EQ):  # noqa: PLR2004
        return
    for kept, moved in (found, found[::-1]):
        name = moved.alias_or_name.casefold()
        mine = [c for c in node.find_all(exp.Column) if _belongs(c, moved, node, facts)]
        sides = [on.this, on.expression]
        y = next((side for side in sides if side in mine), None)
        x = next((side for side in sides if side not in mine), None)
        if x is None or y is None or not is_key(y, facts) or not alike(x, y, facts):
            continue
        inside = [
            p
            for p in parts_of(node, "where")
            if p.find(exp.Query) is None and (c := list(p.find_all(exp.Column)))
            and all(_belongs(column, moved, node, facts) for column in c)
        ]  # fmt: skip
        allowed = {id(c) for p in [*inside, on] for c in p.find_all(exp.Column)}
        if any(id(column) not in allowed for column in mine):
            continue
        query = exp.Select(expressions=[y.copy()], from_=exp.From(this=moved.copy()))
        if inside:
            where_with(query, *inside)
        rest = [p for p in parts_of(node, "where") if not any(p is i for i in inside)]
        new = node.copy()
        new.set("from_", exp.From(this=kept.copy()))
        new.set("joins", None)
        new.set("where", None)
        member = exp.In(this=x.copy(), query=exp.Subquery(this=query))
        where_with(new, *rest, member)
        if name != kept.alias_or_name.casefold():
            yield changed("join_as_in", node, new, outer_only=True)


def _belongs(column: exp.Column, source: exp.Expr, select: exp.Select, facts: Facts) -> bool:
    at = find_source(
        column.table.casefold(), column.name.casefold(), select_of(column), facts.schema
    )
    return at is not None and at[0] is select and at[1] is source


def one_row_compared(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """IN for = and = for IN, where the subquery has one row."""
    found = membership(node)
    if found is not None and not found[2]:
        x, inner, _ = found
        if limit_of(inner) == 1 or at_most_one_row(inner, facts.schema):
            new = exp.EQ(this=x.copy(), expression=exp.Subquery(this=inner.copy()))
            yield changed("in_as_equality", node, new)
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Subquery) and filters(node):
        inner = node.expression.this
        if not isinstance(inner, exp.Select) or isinstance(node.this, exp.Subquery):
            return
        if limit_of(inner) == 1 or at_most_one_row(inner, facts.schema):
            query = exp.Subquery(this=inner.copy())
            yield changed("equality_as_in", node, exp.In(this=node.this.copy(), query=query))


RULES: tuple[Rule, ...] = (
    in_as_exists,
    in_as_join,
    join_as_in,
    one_row_compared,
)
