"""What rules that move parts of queries share: whose columns these are, and names that are free."""

from collections.abc import Collection, Iterator

from sqlglot import exp

from lm_eval_ext.sql.parsing import conjuncts, find_source, select_of, sources, table_of
from lm_eval_ext.sql.proofs.facts import is_closed
from lm_eval_ext.sql.proofs.places import is_aggregate
from lm_eval_ext.sql.rewrites.base import Facts, all_of, declared, filters
from lm_eval_ext.sql.schema import Schema

PLAIN = "the subquery is of plain rows and does not depend on outer rows"
LIKE_KINDS = "x and y are columns of the same affinity, without a collation of their own"
NO_NULL = "neither x nor y is NULL"
"""Parts of conditions that several rules state."""

MOST_PAIRS = 2_000_000
"""Rows of an outer query times rows of a subquery that is run for each of them."""


def inner_joins(select: exp.Select) -> list[exp.Expr] | None:
    """Returns a SELECT's joins; None if one is no plain inner join."""
    joins: list[exp.Expr] = select.args.get("joins") or []
    for join in joins:
        if any(join.args.get(key) for key in ("side", "using", "method")):
            return None
        if join.args.get("kind") not in (None, "", "INNER"):
            return None
    return joins


def tables_only(select: exp.Select, schema: Schema) -> bool:
    """Whether a SELECT reads tables by inner joins, and nothing else."""
    found = list(sources(select))
    return (
        bool(found)
        and inner_joins(select) is not None
        and all(
            table_of(source, schema) is not None and not source.args.get("joins")
            for source in found
        )
    )


def is_plain(select: exp.Expr, *, grouped: bool = False) -> bool:
    """Whether a query is a SELECT of rows: no aggregate, LIMIT, window, CTE; no GROUP BY."""
    if not isinstance(select, exp.Select):
        return False
    clauses = ["limit", "offset", "with_", "windows", "having"] + ["group"] * (not grouped)
    if any(select.args.get(clause) for clause in clauses) or is_aggregate(select):
        return False
    return all(node.find_ancestor(exp.Select) is not select for node in select.find_all(exp.Window))


def has_star(select: exp.Select) -> bool:
    """Whether a result is all columns of a source."""
    return select.is_star


def is_column(node: exp.Expr) -> bool:
    """Whether a node is one column."""
    return isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)


def own_columns(select: exp.Select, schema: Schema) -> Iterator[tuple[exp.Column, exp.Expr]]:
    """Yields the columns that a SELECT's sources provide, also in its subqueries, with the source.

    Not those that mean the alias of a result.
    """
    aliases = {s.alias.casefold() for s in select.expressions if isinstance(s, exp.Alias)}
    for column in list(select.find_all(exp.Column)):
        if isinstance(column.this, exp.Star):
            continue
        name = column.name.casefold()
        if not column.table and name in aliases and select_of(column) is select:
            clause = column.find_ancestor(exp.Order, exp.Group, exp.Having)
            if clause is not None and clause.parent is select:
                continue
        found = find_source(column.table.casefold(), name, select_of(column), schema)
        if found is not None and found[0] is select:
            yield column, found[1]


def name_of(source: exp.Expr) -> exp.Expr:
    """Returns a copy of the identifier by which a source is called, in its quotes."""
    alias = source.args.get("alias")
    identifier = alias.this if alias is not None and alias.this is not None else source.this
    copy: exp.Expr = identifier.copy()
    return copy


def qualify(select: exp.Select, schema: Schema) -> None:
    """Puts the source's name before each of its columns, in place."""
    for column, source in own_columns(select, schema):
        if not column.table:
            column.set("table", name_of(source))


def qualified(node: exp.Expr, schema: Schema) -> exp.Expr | None:
    """Returns a copy of an expression whose columns are all qualified; None if one is unknown."""
    found = []
    for column in node.find_all(exp.Column):
        at = find_source(column.table.casefold(), column.name.casefold(), select_of(column), schema)
        if at is None or at[0] is not select_of(node):
            return None
        found.append(name_of(at[1]))
    copy = node.copy()
    for column, name in zip(list(copy.find_all(exp.Column)), found, strict=True):
        column.set("table", name)
    return copy


def taken_names(tree: exp.Expr) -> set[str]:
    """Returns the names of all sources around and in a node, in lower case."""
    root = tree.root()
    read = [source for select in root.find_all(exp.Select) for source in sources(select)]
    found = {source.alias_or_name.casefold() for source in read}
    return found | {cte.alias.casefold() for cte in root.find_all(exp.CTE)}


def free_name(stem: str, taken: Collection[str]) -> str:
    """Returns a name that no source has."""
    names = (stem, *(f"{stem}{i}" for i in range(2, 100)))
    return next(name for name in names if name not in taken)


def keep_apart(select: exp.Select, taken: Collection[str], schema: Schema) -> None:
    """Renames a SELECT's sources that are called as in ``taken``, in place."""
    used = {*taken, *taken_names(select)}
    for source in list(sources(select)):
        if source.alias_or_name.casefold() not in taken:
            continue
        name = free_name(f"{source.alias_or_name}_2".casefold(), used)
        used.add(name)
        mine = [column for column, at in own_columns(select, schema) if at is source]
        for column in mine:
            column.set("table", exp.to_identifier(name))
        source.set("alias", exp.TableAlias(this=exp.to_identifier(name)))


def where_with(select: exp.Select, *more: exp.Expr) -> None:
    """Adds conditions to a WHERE, in place, before those that are there."""
    where = select.args.get("where")
    parts = [*more, *([] if where is None else conjuncts(where.this))]
    select.set("where", exp.Where(this=all_of(parts)) if parts else None)


def without_conjunct(select: exp.Select, part: exp.Expr) -> exp.Select:
    """Returns a copy of a SELECT without one of the conditions of its WHERE."""
    parts = conjuncts(select.args["where"].this)
    place = next(i for i, found in enumerate(parts) if found is part)
    copy: exp.Select = select.copy()
    rest = [p for i, p in enumerate(conjuncts(copy.args["where"].this)) if i != place]
    copy.set("where", exp.Where(this=all_of(rest)) if rest else None)
    return copy


def pairs(outer: exp.Select, inner: exp.Select, facts: Facts) -> int:
    """Returns how many pairs of rows two SELECTs have, at most."""
    count = 1
    for select in (outer, inner):
        for source in sources(select):
            table = table_of(source, facts.schema)
            count *= 1_000 if table is None else max(1, facts.size(table))
    return count


def stands_alone(select: exp.Select, schema: Schema) -> bool:
    """Whether a subquery does not depend on outer rows; inner joins of tables only."""
    return tables_only(select, schema) and is_closed(select, schema)


def aliased(value: exp.Expr, name: str) -> exp.Expr:
    """Returns a copy of a result under a name."""
    return exp.alias_(value.unalias().copy(), name)


def derived(query: exp.Expr, name: str) -> exp.Subquery:
    """Returns a copy of a query as a source of another."""
    return exp.Subquery(this=query.copy(), alias=exp.TableAlias(this=exp.to_identifier(name)))


Membership = tuple[exp.Expr, exp.Select, bool]


def membership(node: exp.Expr) -> Membership | None:
    """Returns x, the subquery, and whether it is NOT IN, for a condition that filters rows."""
    negated = isinstance(node, exp.Not)
    found = node.this if negated else node
    if not isinstance(found, exp.In) or (not negated and isinstance(node.parent, exp.Not)):
        return None
    query = found.args.get("query")
    select = query.this if isinstance(query, exp.Subquery) else None
    if not isinstance(select, exp.Select) or len(select.expressions) != 1 or not filters(node):
        return None
    return found.this, select, negated


def alike(x: exp.Expr, y: exp.Expr, facts: Facts) -> bool:
    """Whether two columns compare without conversion and folding."""
    one, two = declared(x, facts.schema), declared(y.unalias(), facts.schema)
    if one is None or two is None:
        return False
    return one[1].affinity == two[1].affinity and one[1].collation == two[1].collation == "BINARY"


def is_key(y: exp.Expr, facts: Facts) -> bool:
    """Whether the schema says that a column's values differ from each other."""
    place = declared(y.unalias(), facts.schema)
    return place is not None and (place[1].name,) in place[0].unique_keys


def where_after(select: exp.Select, more: list[exp.Expr]) -> None:
    """Adds conditions to a WHERE, in place, behind those that are there."""
    for part in more:
        select.where(part.copy(), copy=False)
