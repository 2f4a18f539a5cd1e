"""Rules for aggregates, DISTINCT, GROUP BY and the terms of ORDER BY."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql.parsing import select_of, sources, table_of, to_sql
from lm_eval_ext.sql.proofs.facts import facts_of
from lm_eval_ext.sql.proofs.places import (
    is_aggregate,
    is_aggregate_call,
    only_values_count,
)
from lm_eval_ext.sql.rewrites.base import (
    Change,
    Facts,
    Needs,
    Rule,
    changed,
    number,
)
from lm_eval_ext.sql.rewrites.queries import (
    aliased,
    derived,
    has_star,
    is_column,
    name_of,
    tables_only,
)

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "distinct_as_group": "SELECT x ... GROUP BY x for SELECT DISTINCT x ...",
        "group_as_distinct": "SELECT DISTINCT x ... for SELECT x ... GROUP BY x",
        "distinct_over_key": "SELECT DISTINCT for SELECT, where a key is among the results",
        "count_distinct_nested": "SELECT COUNT(v) FROM (SELECT DISTINCT x AS v ...) for SELECT "
        "COUNT(DISTINCT x) ...",
        "count_as_key": "COUNT(id) for COUNT(*)",
        "count_as_one": "COUNT(1) for COUNT(*)",
        "count_as_case_sum": "SUM(CASE WHEN p THEN 1 ELSE 0 END) for COUNT(*) ... WHERE p",
        "count_as_case": "COUNT(CASE WHEN p THEN 1 END) for COUNT(*) ... WHERE p",
        "aggregate_as_case": "AVG(CASE WHEN p THEN x END) for AVG(x) ... WHERE p",
        "average_as_ratio": "SUM(x) * 1.0 / COUNT(x) for AVG(x)",
        "order_by_position": "ORDER BY 1 for ORDER BY x, if x is the first result",
        "group_by_position": "GROUP BY 1 for GROUP BY x, if x is the first result",
    }
)
"""The rules, with a description each."""

_ORDER = "the order of rows is settled or does not count"

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "distinct_as_group": "the results are columns, and the rows are sorted by these only; "
        f"{_ORDER}",
        "group_as_distinct": f"the results are the columns that are grouped by; {_ORDER}",
        "distinct_over_key": "no two rows agree in all results, by the keys of all tables",
        "count_distinct_nested": "nothing else is selected",
        "count_as_key": "inner joins of tables; the column holds no NULL",
        "count_as_one": "always",
        "count_as_case_sum": "nothing else is selected; without the WHERE there are rows",
        "count_as_case": "nothing else is selected",
        "aggregate_as_case": "aggregates of one value each, and nothing else",
        "average_as_ratio": "x is an integer",
        "order_by_position": "a sort term is one of the results",
        "group_by_position": "a term of GROUP BY is one of the results",
    }
)
"""When each rule is sound."""


def _order_is_free(node: exp.Expr) -> bool:
    return node.parent is None or only_values_count(node)


def _columns(select: exp.Select) -> list[exp.Expr] | None:
    found = [result.unnest() for result in select.expressions]
    return found if all(is_column(node) for node in found) else None


def _sorted_by_results(select: exp.Select, columns: list[exp.Expr]) -> bool:
    order = select.args.get("order")
    return order is None or all(term.this in columns for term in order.expressions)


def distinct_as_group(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """DISTINCT and GROUP BY for each other."""
    if not isinstance(node, exp.Select) or node.args.get("having") or is_aggregate(node):
        return
    columns, group = _columns(node), node.args.get("group")
    if not columns or not _order_is_free(node) or not _sorted_by_results(node, columns):
        return
    distinct = node.args.get("distinct")
    if distinct is not None and group is None and not distinct.args.get("on"):
        new = node.copy()
        new.set("distinct", None)
        new.set("expressions", [column.copy() for column in columns])
        new.set("group", exp.Group(expressions=[column.copy() for column in columns]))
        yield changed("distinct_as_group", node, new, outer_only=True)
    elif distinct is None and group is not None and {*group.expressions} == {*columns}:
        new = node.copy()
        new.set("group", None)
        new.set("distinct", exp.Distinct())
        yield changed("group_as_distinct", node, new, outer_only=True)


def distinct_over_key(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """DISTINCT where all rows differ already."""
    if not isinstance(node, exp.Select) or node.args.get("distinct") or node.args.get("group"):
        return
    if node.parent is not None or is_aggregate(node) or not node.args.get("from_"):
        return
    known = facts_of(node, facts.schema)
    if known.sources and known.one_row(known.selected_names()):
        new = node.copy()
        new.set("distinct", exp.Distinct())
        yield changed("distinct_over_key", node, new)


def _only_aggregates(node: exp.Expr) -> bool:
    """Whether a SELECT has one row of aggregates, without other clauses."""
    if not isinstance(node, exp.Select) or node.args.get("from_") is None:
        return False
    others = ("group", "having", "order", "limit", "distinct", "with_")
    if any(node.args.get(clause) for clause in others):
        return False
    return all(is_aggregate_call(result.unalias()) for result in node.expressions)


def count_distinct_nested(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The different values first, then their number."""
    if not _only_aggregates(node) or len(node.expressions) != 1:
        return
    count = node.expressions[0].unalias()
    if not isinstance(count, exp.Count) or not isinstance(count.this, exp.Distinct):
        return
    values = count.this.expressions
    if len(values) == 1:
        inner = node.copy()
        inner.set("expressions", [aliased(values[0].unnest(), "v")])
        inner.set("distinct", exp.Distinct())
        outer = exp.Select(
            expressions=[exp.Count(this=exp.column("v"))],
            from_=exp.From(this=derived(inner, "different")),
        )
        yield changed("count_distinct_nested", node, outer, outer_only=True)


def count_rewritten(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """Something that is never NULL counted instead of rows."""
    if not isinstance(node, exp.Count) or not isinstance(node.this, exp.Star):
        return
    select = select_of(node)
    if select is None:
        return
    yield changed("count_as_one", node, exp.Count(this=number(1)))
    if not tables_only(select, facts.schema):
        return
    found = list(sources(select))
    table = table_of(found[0], facts.schema)
    assert table is not None
    for column in sorted(table.columns, key=lambda c: (not c.primary_key, not c.not_null)):
        name = exp.to_identifier(column.name, quoted=not column.name.isidentifier())
        at = exp.Column(this=name, table=name_of(found[0]))
        # Names are looked up where a node stands.
        probe = exp.Select(expressions=[at], from_=exp.From(this=found[0].copy()))
        needs: Needs | None = facts.no_null(probe.expressions[0])
        if needs is not None:
            if len(found) == 1:
                at.set("table", None)
            yield changed("count_as_key", node, exp.Count(this=at.copy()), needs)
            return


def aggregate_as_case(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The condition within the aggregate."""
    if not _only_aggregates(node) or not isinstance(node, exp.Select):
        return
    joins = node.args.get("joins") or []
    if node.args.get("where") is None or any(join.args.get("on") is None for join in joins):
        return
    condition = node.args["where"].this
    calls = [result.unalias() for result in node.expressions]
    everything = node.copy()
    everything.set("where", None)
    if len(calls) == 1 and isinstance(calls[0], exp.Count) and isinstance(calls[0].this, exp.Star):
        some = everything.copy()
        some.set("expressions", [number(1)])
        some.set("limit", exp.Limit(expression=number(1)))
        one = exp.Case(ifs=[exp.If(this=condition.copy(), true=number(1))])
        both = one.copy()
        both.set("default", number(0))
        if facts.has_rows(to_sql(some)):
            yield _with_result("count_as_case_sum", node, everything, exp.Sum(this=both))
        yield _with_result("count_as_case", node, everything, exp.Count(this=one))
    elif all(isinstance(call, exp.Avg | exp.Sum | exp.Min | exp.Max) for call in calls):
        if any(isinstance(call.this, exp.Distinct) for call in calls):
            return
        new = everything.copy()
        for call, old in zip((r.unalias() for r in new.expressions), calls, strict=True):
            case = exp.Case(ifs=[exp.If(this=condition.copy(), true=old.this.copy())])
            call.set("this", case)
        yield changed("aggregate_as_case", node, new)


def _with_result(kind: str, node: exp.Select, everything: exp.Select, result: exp.Expr) -> Change:
    new = everything.copy()
    new.set("expressions", [result])
    return changed(kind, node, new)


def average_as_ratio(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A sum divided by a count."""
    if not isinstance(node, exp.Avg) or isinstance(node.this, exp.Distinct):
        return
    needs = facts.integers(node.this)
    if needs is not None:
        total = exp.Mul(this=exp.Sum(this=node.this.copy()), expression=exp.Literal.number("1.0"))
        new: exp.Expr = exp.Div(
            this=total, expression=exp.Count(this=node.this.copy()), typed=True, safe=True
        )
        if isinstance(node.parent, exp.Binary | exp.Unary):
            new = exp.Paren(this=new)
        yield changed("average_as_ratio", node, new, needs)


def term_by_position(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The number of a result for the result."""
    if not isinstance(node, exp.Select) or has_star(node):
        return
    results = [result.unalias() for result in node.expressions]
    names = [r.alias.casefold() if isinstance(r, exp.Alias) else "" for r in node.expressions]
    for clause, kind in (("order", "order_by_position"), ("group", "group_by_position")):
        if node.args.get(clause) is None:
            continue
        new, found = node.copy(), False
        for term in list(new.args[clause].expressions):
            value = term.this if isinstance(term, exp.Ordered) else term
            name = (
                value.name.casefold() if isinstance(value, exp.Column) and not value.table else ""
            )
            if value in results and name not in names:
                value.replace(number(results.index(value) + 1))
                found = True
            elif name and names.count(name) == 1 and clause == "order":
                value.replace(number(names.index(name) + 1))
                found = True
        if found:
            yield changed(kind, node, new)


RULES: tuple[Rule, ...] = (
    distinct_as_group,
    distinct_over_key,
    count_distinct_nested,
    count_rewritten,
    aggregate_as_case,
    average_as_ratio,
    term_by_position,
)
