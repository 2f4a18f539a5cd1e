"""Rules for HAVING."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql.parsing import conjuncts, parts_of
from lm_eval_ext.sql.proofs.facts import facts_of, is_closed
from lm_eval_ext.sql.proofs.places import aggregates, is_aggregate, is_aggregate_call
from lm_eval_ext.sql.rewrites.base import Change, Facts, Rule, all_of, changed, holds_aggregate
from lm_eval_ext.sql.rewrites.order import has_bare_columns
from lm_eval_ext.sql.rewrites.queries import aliased, derived, has_star, is_column

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "having_as_outer_where": "SELECT ... FROM (SELECT ... GROUP BY x) WHERE p for HAVING p",
        "having_key_as_where": "WHERE p for HAVING p, if p is about what is grouped by",
        "where_key_as_having": "HAVING p for WHERE p, if p is about what is grouped by",
    }
)
"""The rules, with a description each."""

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "having_as_outer_where": "no column outside of aggregates differs within a group; "
        "subqueries of the HAVING do not depend on outer rows; ORDER BY does not turn the order of "
        "groups",
        "having_key_as_where": "the condition has columns that are grouped by, and no subquery",
        "where_key_as_having": "all conditions have columns that are grouped by, and no subquery",
    }
)
"""When each rule is sound."""


def having_as_outer_where(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """Groups as a subquery that is filtered."""
    if not isinstance(node, exp.Select) or node.parent is not None or has_star(node):
        return
    having, group = node.args.get("having"), node.args.get("group")
    if (
        having is None
        or group is None
        or has_bare_columns(node, facts)
        or node.args.get("distinct")
        or node.args.get("with_")
    ):
        return
    if _turns_groups(node):
        return
    if any(not is_closed(q, facts.schema) for q in having.find_all(exp.Select)):
        return
    inner = exp.Select(
        **{k: v.copy() for k, v in node.args.items() if k in ("from_", "where", "group") and v}
    )
    if node.args.get("joins"):
        inner.set("joins", [join.copy() for join in node.args["joins"]])
    names: dict[exp.Expr, str] = {}
    for place, result in enumerate(node.expressions, 1):
        names.setdefault(result.unalias(), f"c{place}")
    results = [aliased(r, f"c{place}") for place, r in enumerate(node.expressions, 1)]
    aliases = {
        r.alias.casefold(): f"c{place}" for place, r in enumerate(node.expressions, 1) if r.alias
    }
    condition = _exported(having.this, names, aliases)
    order = node.args.get("order")
    new_order = None if order is None else _exported(order, names, aliases)
    own = {result.alias for result in results}
    results += [aliased(value, name) for value, name in names.items() if name not in own]
    inner.set("expressions", results)
    outer = exp.Select(
        expressions=[exp.column(f"c{place}") for place in range(1, len(node.expressions) + 1)],
        from_=exp.From(this=derived(inner, "grouped")),
        where=exp.Where(this=condition),
    )
    if new_order is not None:
        outer.set("order", new_order)
    for clause in ("limit", "offset"):
        if node.args.get(clause) is not None:
            outer.set(clause, node.args[clause].copy())
    yield changed("having_as_outer_where", node, outer)


def _turns_groups(select: exp.Select) -> bool:
    """Whether SQLite sorts groups as ORDER BY says, which has as many terms, one descending."""
    order = select.args.get("order")
    if order is None or len(order.expressions) != len(select.args["group"].expressions):
        return False
    return any(term.args.get("desc") for term in order.expressions)


def _exported(part: exp.Expr, names: dict[exp.Expr, str], aliases: dict[str, str]) -> exp.Expr:
    """A copy with columns and aggregates replaced by the names under which they are selected."""
    copy = exp.Paren(this=part.copy())
    for node in list(copy.walk(prune=lambda n: isinstance(n, exp.Query) or is_aggregate_call(n))):
        if not (is_aggregate_call(node) or is_column(node)):
            continue
        if isinstance(node, exp.Column) and not node.table and node.name.casefold() in aliases:
            name = aliases[node.name.casefold()]
        else:
            name = names.setdefault(node.copy(), f"c{len(names) + 90}")
        node.replace(exp.column(name))
    inner: exp.Expr = copy.this
    return inner


def key_condition_moved(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A condition on what is grouped by, before or after the grouping."""
    if not isinstance(node, exp.Select) or node.args.get("group") is None:
        return
    known = facts_of(node, facts.schema)
    keys = known.group_names()
    if not keys:
        return

    def about_keys(part: exp.Expr) -> bool:
        columns = list(part.find_all(exp.Column))
        return (
            part.find(exp.Query) is None
            and not holds_aggregate(part)
            and bool(columns)
            and all(known.name(column) in keys for column in columns)
        )

    having = parts_of(node, "having")
    moved = [part for part in having if about_keys(part)]
    if moved:
        new = node.copy()
        rest = [part for part in having if not any(part is m for m in moved)]
        new.set("having", exp.Having(this=all_of(rest)) if rest else None)
        where = node.args.get("where")
        before = [] if where is None else conjuncts(where.this)
        new.set("where", exp.Where(this=all_of([*before, *moved])))
        yield changed("having_key_as_where", node, new)
    where_parts = parts_of(node, "where")
    if where_parts and all(map(about_keys, where_parts)) and aggregates_something(node):
        new = node.copy()
        new.set("where", None)
        new.set("having", exp.Having(this=all_of([*where_parts, *having])))
        yield changed("where_key_as_having", node, new)


def aggregates_something(select: exp.Select) -> bool:
    """Whether a result or sort term is an aggregate."""
    return any(aggregates(part) for part in select.expressions) or is_aggregate(select)


RULES: tuple[Rule, ...] = (having_as_outer_where, key_condition_moved)
