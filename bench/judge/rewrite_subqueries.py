"""Right rewrites of subqueries."""

from sqlglot import exp

from bench.judge.query import (
    Query,
    clause,
    enclosing,
    joined,
    parts,
    sources,
)
from bench.judge.writing import (
    COMPARED,
    of,
    put,
    sql,
)
from lm_eval_ext.sql.parsing import to_sql

# Subqueries.


def _membership(query: Query, node: exp.Expr) -> tuple[exp.Select, str, str] | None:
    """The subquery of IN, its only column and the value sought; both never NULL."""
    if not isinstance(node, exp.In) or not isinstance(node.args.get("query"), exp.Subquery):
        return None
    inner = node.args["query"].this
    if not isinstance(inner, exp.Select) or len(inner.selects) != 1 or inner.ctes:
        return None
    sought, item = of(query, node.this), of(query, inner.selects[0])
    if sought is None or item is None:
        return None
    if any(query.facts.has_null(one) for one in (sought, item)):
        return None
    return inner, to_sql(inner.selects[0]), to_sql(node.this)


def in_as_join(query: Query) -> str | None:
    """IN of the only condition or one of several as a join with the distinct values."""
    tree = query.tree
    if not isinstance(tree, exp.Select) or clause(tree, "where") is None or tree.is_star:
        return None
    if len(sources(tree)) != 1:
        return None
    conditions = parts(clause(tree, "where"))
    for i, one in enumerate(conditions):
        found = _membership(query, one)
        if found is None:
            continue
        inner, _, sought = found
        if query.table(sources(tree)[0]) is None or not isinstance(one.this, exp.Column):
            return None
        new = tree.copy()
        rest = conditions[:i] + conditions[i + 1 :]
        new.set("where", exp.Where(this=joined(rest)) if rest else None)
        item = f"(SELECT DISTINCT * FROM ({to_sql(inner)}))"
        name = inner.selects[0].alias_or_name
        alias = sources(tree)[0].alias_or_name
        for column in new.find_all(exp.Column):
            if not column.table and enclosing(column) is new:
                column.set("table", exp.to_identifier(alias))
        own = sought.split(".")[-1]
        text = to_sql(new)
        source = to_sql(sources(tree)[0])
        joined_text = f"FROM {source} JOIN {item} AS member ON member.{name} = {alias}.{own}"
        return text.replace(f"FROM {source}", joined_text, 1)
    return None


def in_as_count(query: Query, node: exp.Expr) -> str | None:
    found = _membership(query, node)
    if found is None or found[0].args.get("limit") is not None:
        return None
    inner, _, sought = found
    if isinstance(node.parent, exp.Not):
        return None
    name, value = inner.selects[0].alias_or_name, _outer(query, node, sought)
    return f"((SELECT COUNT(*) FROM ({to_sql(inner)}) AS m WHERE m.{name} = {value}) > 0)"


def not_in_as_count(query: Query, node: exp.Expr) -> str | None:
    found = _membership(query, node.this) if isinstance(node, exp.Not) else None
    if found is None or found[0].args.get("limit") is not None:
        return None
    inner, _, sought = found
    name = inner.selects[0].alias_or_name
    value = _outer(query, node.this, sought)
    return f"((SELECT COUNT(*) FROM ({to_sql(inner)}) AS m WHERE m.{name} = {value}) = 0)"


def not_in_as_except(query: Query, node: exp.Expr) -> str | None:
    """``x NOT IN (q)`` as ``x IN (all values EXCEPT q)``."""
    found = _membership(query, node.this) if isinstance(node, exp.Not) else None
    one = of(query, node.this.this) if found else None
    if found is None or one is None:
        return None
    table = query.facts.schema[one.table].name
    inner = to_sql(found[0])
    if found[0].args.get("order") or found[0].args.get("limit"):
        inner = f"SELECT * FROM ({inner})"
    return f"{found[2]} IN (SELECT {one.column} FROM {table} EXCEPT {inner})"


def not_in_as_left_join(query: Query, node: exp.Expr) -> str | None:
    """``x NOT IN (q)`` by a join that finds nothing, inside of the condition."""
    found = _membership(query, node.this) if isinstance(node, exp.Not) else None
    one = of(query, node.this.this) if found else None
    if found is None or one is None:
        return None
    table, name = query.facts.schema[one.table].name, found[0].selects[0].alias_or_name
    return (
        f"{found[2]} IN (SELECT o.{one.column} FROM {table} AS o LEFT JOIN "
        f"({to_sql(found[0])}) AS m ON m.{name} = o.{one.column} WHERE m.{name} IS NULL)"
    )


def _outer(query: Query, node: exp.Expr, sought: str) -> str:
    """The value sought, qualified so that it is not taken for a column of the subquery."""
    if "." in sought:
        return sought
    select = enclosing(node)
    name = sought.strip('"').casefold()
    for alias, table in query.tables(select) if select is not None else []:
        if name in query.facts.schema[table].by_name:
            return f"{alias}.{sought}"
    return sought


def in_distinct(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.In) or not isinstance(node.args.get("query"), exp.Subquery):
        return None
    inner = node.args["query"].this
    if not isinstance(inner, exp.Select) or inner.args.get("limit") or inner.args.get("group"):
        return None
    new = inner.copy()
    new.set("distinct", exp.Distinct())
    return f"{to_sql(node.this)} IN ({to_sql(new)})"


def in_as_equal(query: Query, node: exp.Expr) -> str | None:
    """``x IN (... LIMIT 1)`` as ``x = (...)``."""
    if not isinstance(node, exp.In) or not isinstance(node.args.get("query"), exp.Subquery):
        return None
    limit = node.args["query"].this.args.get("limit")
    if limit is None or str(limit.expression.this) != "1" or isinstance(node.parent, exp.Not):
        return None
    return f"({to_sql(node.args['query'].this)}) = {sql(node.this)}"


def scalar_by_window(query: Query, node: exp.Expr) -> str | None:
    """``(SELECT MAX(x) FROM t)`` as the first of ``MAX(x) OVER ()``."""
    inner = _scalar(node)
    if inner is None:
        return None
    new = inner.copy()
    new.set("expressions", [exp.Var(this=f"{to_sql(inner.selects[0])} OVER ()")])
    return f"({to_sql(new)} LIMIT 1)"


def scalar_by_cte(query: Query) -> str | None:
    """A subquery for one value as a table with one row."""
    tree = query.tree
    if not isinstance(tree, exp.Select) or tree.ctes:
        return None
    for place, node in enumerate(query.nodes):
        inner = _scalar(node)
        if inner is not None and enclosing(node) is tree:
            new = query.edited(put(place, "(SELECT best FROM own)"))
            one = inner.copy()
            one.set("expressions", [exp.alias_(inner.selects[0].copy(), "best")])
            return f"WITH own AS ({to_sql(one)}) {new}"
    return None


def scalar_joined(query: Query) -> str | None:
    """A subquery for one value as a derived table beside the others."""
    tree = query.tree
    if not isinstance(tree, exp.Select) or tree.is_star or tree.args.get("group"):
        return None
    if tree.find(exp.AggFunc) in tree.selects or len(sources(tree)) != 1:
        return None
    for place, node in enumerate(query.nodes):
        inner = _scalar(node)
        if inner is not None and node.find_ancestor(exp.Where) and enclosing(node) is tree:
            new = query.edited(put(place, "one.best"))
            value = inner.copy()
            value.set("expressions", [exp.alias_(inner.selects[0].copy(), "best")])
            source = to_sql(sources(tree)[0])
            return new.replace(
                f"FROM {source}", f"FROM {source} CROSS JOIN ({to_sql(value)}) AS one", 1
            )
    return None


def _scalar(node: exp.Expr) -> exp.Select | None:
    """A subquery that is one aggregate, without GROUP BY."""
    if not isinstance(node, exp.Subquery) or not isinstance(node.parent, COMPARED):
        return None
    inner = node.this
    if not isinstance(inner, exp.Select) or inner.args.get("group") or len(inner.selects) != 1:
        return None
    return inner if isinstance(inner.selects[0], exp.Max | exp.Min | exp.Avg | exp.Sum) else None


def max_as_not_exists(query: Query, node: exp.Expr) -> str | None:
    """``x = (SELECT MAX(y) ...)`` as IN of it."""
    if not isinstance(node, exp.EQ) or _scalar(node.expression) is None:
        return None
    return f"{sql(node.this)} IN {to_sql(node.expression)}"
