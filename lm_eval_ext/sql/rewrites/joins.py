"""Rules for FROM: joins, names of tables, and subqueries there."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql.parsing import sources, table_of
from lm_eval_ext.sql.proofs.facts import at_most_one_row, is_closed
from lm_eval_ext.sql.proofs.places import place_of
from lm_eval_ext.sql.rewrites.base import Change, Facts, Rule, changed
from lm_eval_ext.sql.rewrites.queries import (
    derived,
    free_name,
    has_star,
    inner_joins,
    name_of,
    own_columns,
    taken_names,
    where_with,
)

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "join_as_where": "FROM a, b WHERE a.x = b.x for FROM a JOIN b ON a.x = b.x",
        "join_swapped": "FROM b JOIN a for FROM a JOIN b",
        "tables_aliased": "FROM book AS a with a.title for FROM book with title",
        "columns_qualified": "book.title for title",
        "aliases_dropped": "book.title for t1.title, where no table is read twice",
        "derived_as_cte": "WITH t AS (SELECT ...) SELECT ... FROM t for FROM (SELECT ...) AS t",
        "scalar_as_cte": "WITH t AS (SELECT AVG(x) AS v ...) and (SELECT v FROM t) for (SELECT "
        "AVG(x) ...)",
        "scalar_as_join": "FROM a, (SELECT AVG(x) AS v ...) AS t WHERE x > t.v for x > (SELECT "
        "AVG(x) ...)",
    }
)
"""The rules, with a description each."""

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "join_as_where": "all joins are inner joins",
        "join_swapped": "an inner join of two sources; no * among the results; the order of rows "
        "is settled, or SQLite reads the tables in the same order",
        "tables_aliased": "always",
        "columns_qualified": "always",
        "aliases_dropped": "all sources are tables, each read once in the whole query",
        "derived_as_cte": "the subquery does not depend on outer rows",
        "scalar_as_cte": "the subquery does not depend on outer rows, and has one row",
        "scalar_as_join": "the subquery is an aggregate of one row that does not depend on outer "
        "rows; no * among the results",
    }
)
"""When each rule is sound."""

_TWO = 2


def join_as_where(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """Join conditions as filters."""
    if not isinstance(node, exp.Select):
        return
    joins = inner_joins(node)
    if not joins or not any(join.args.get("on") for join in joins):
        return
    new = node.copy()
    conditions = []
    for join in new.args["joins"]:
        if join.args.get("on") is not None:
            conditions.append(join.args["on"])
        join.set("on", None)
        join.set("kind", None)
    where_with(new, *conditions)
    yield changed("join_as_where", node, new)


def join_swapped(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The second table first."""
    if not isinstance(node, exp.Select) or has_star(node):
        return
    joins = inner_joins(node)
    if not joins or node.args["from_"].this.args.get("joins"):
        return
    new = node.copy()
    first, second = new.args["from_"].this, new.args["joins"][0].this
    one, two = first.copy(), second.copy()
    first.replace(two)
    second.replace(one)
    yield changed("join_swapped", node, new, outer_only=True)


def tables_aliased(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """Short names, and each column with its own."""
    if not isinstance(node, exp.Select) or node.args.get("from_") is None:
        return
    found = list(sources(node))
    if any(not isinstance(source, exp.Table) or source.alias for source in found):
        return
    if any(isinstance(c.this, exp.Star) for c in node.find_all(exp.Column)):
        return
    taken, names = taken_names(node), {}
    new = node.copy()
    _qualify_all(node, new, facts)
    for number, source in enumerate(list(sources(new))):
        name = free_name("abcdefghij"[number % 10], taken)
        taken.add(name)
        old = source.alias_or_name.casefold()
        names[name] = old
        for column in _named(new, old):
            column.set("table", exp.to_identifier(name))
        source.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    yield changed("tables_aliased", node, new, names=names)


def _named(select: exp.Select, name: str) -> list[exp.Column]:
    """The columns qualified by a name, unless a subquery has a source of that name itself."""
    found = []
    for column in select.find_all(exp.Column):
        inner = column.find_ancestor(exp.Select)
        while inner is not select and inner is not None:
            if any(s.alias_or_name.casefold() == name for s in sources(inner)):
                break
            inner = inner.find_ancestor(exp.Select)
        if inner is select and column.table.casefold() == name:
            found.append(column)
    return found


def _qualify_all(node: exp.Select, new: exp.Select, facts: Facts) -> None:
    """Qualifies in a copy what belongs to the node's sources."""
    mine = {id(column): source for column, source in own_columns(node, facts.schema)}
    for old, column in zip(node.find_all(exp.Column), list(new.find_all(exp.Column)), strict=True):
        if id(old) in mine and not column.table:
            column.set("table", name_of(mine[id(old)]))


def columns_qualified(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """Each column with its table's name."""
    if isinstance(node, exp.Select) and node.args.get("from_") is not None:
        new = node.copy()
        _qualify_all(node, new, facts)
        if new != node:
            yield changed("columns_qualified", node, new)


def aliases_dropped(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The tables' own names."""
    if not isinstance(node, exp.Select) or node.parent is not None:
        return
    every = [source for select in node.find_all(exp.Select) for source in sources(select)]
    own = list(sources(node))
    if any(table_of(source, facts.schema) is None for source in every):
        return
    if len({source.name.casefold() for source in every}) < len(every):
        return
    if not any(source.alias for source in own):
        return
    new = node.copy()
    names = {}
    for source in list(sources(new)):
        if not source.alias:
            continue
        names[source.name.casefold()] = source.alias.casefold()
        for column in _named(new, source.alias.casefold()):
            column.set("table", source.this.copy())
        source.set("alias", None)
    yield changed("aliases_dropped", node, new, names=names)


def derived_as_cte(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A subquery in FROM, named before the query."""
    if not isinstance(node, exp.Select) or node.parent is not None or node.args.get("with_"):
        return
    source = node.args["from_"].this if node.args.get("from_") else None
    if not isinstance(source, exp.Subquery) or not source.alias or not _simple(source):
        return
    name = source.alias
    inside = {s.alias_or_name.casefold() for q in source.find_all(exp.Select) for s in sources(q)}
    if name.casefold() in facts.schema or name.casefold() in inside:
        return
    new = node.copy()
    new.args["from_"].this.replace(exp.Table(this=exp.to_identifier(name)))
    _with(new, source.this, name)
    yield changed("derived_as_cte", node, new)


def _simple(source: exp.Subquery) -> bool:
    return not any(source.args.get(key) for key in ("joins", "order", "limit", "with_"))


def _with(select: exp.Select, query: exp.Expr, name: str) -> None:
    alias = exp.TableAlias(this=exp.to_identifier(name))
    select.set("with_", exp.With(expressions=[exp.CTE(this=query.copy(), alias=alias)]))


def scalar_as_cte(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """An aggregate that rows are compared with, named before the query."""
    if not isinstance(node, exp.Select) or node.parent is not None or node.args.get("with_"):
        return
    for place, scalar in enumerate(_scalars(node, facts)):
        name = free_name("wanted", taken_names(node) | {t.casefold() for t in facts.schema})
        new = node.copy()
        at = list(_scalars(new, facts))[place]
        inner = at.this
        inner.set("expressions", [exp.alias_(inner.expressions[0].unalias().copy(), "v")])
        query = inner.copy()
        at.replace(exp.Subquery(this=exp.select("v").from_(name)))
        _with(new, query, name)
        yield changed("scalar_as_cte", scalar, new, outer_only=True)


def _scalars(select: exp.Select, facts: Facts) -> Iterator[exp.Subquery]:
    for inner in list(select.find_all(exp.Subquery)):
        query = inner.this
        if not isinstance(query, exp.Select) or query.args.get("with_") or has_star(query):
            continue
        if place_of(query) == "scalar" and len(query.expressions) == 1:
            one = query.args.get("group") is None and at_most_one_row(query, facts.schema)
            if one and is_closed(query, facts.schema):
                yield inner


def scalar_as_join(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """An aggregate that rows are compared with, as a source of one row."""
    if not isinstance(node, exp.Select) or has_star(node) or node.args.get("from_") is None:
        return
    if inner_joins(node) is None or node.args.get("where") is None:
        return
    for place, scalar in enumerate(_own_scalars(node, facts)):
        name = free_name("wanted", taken_names(node))
        new = node.copy()
        _qualify_all(node, new, facts)
        at = list(_own_scalars(new, facts))[place]
        inner = at.this.copy()
        inner.set("expressions", [exp.alias_(inner.expressions[0].unalias().copy(), "v")])
        at.replace(exp.column("v", table=name))
        new.set("joins", [*(new.args.get("joins") or []), exp.Join(this=derived(inner, name))])
        yield changed("scalar_as_join", scalar, new, outer_only=True)


def _own_scalars(select: exp.Select, facts: Facts) -> Iterator[exp.Subquery]:
    for scalar in _scalars(select, facts):
        where = scalar.find_ancestor(exp.Where)
        grouped = scalar.this.find(exp.AggFunc) is not None
        if where is not None and where.parent is select and grouped:
            yield scalar


RULES: tuple[Rule, ...] = (
    join_as_where,
    join_swapped,
    tables_aliased,
    columns_qualified,
    aliases_dropped,
    derived_as_cte,
    scalar_as_cte,
    scalar_as_join,
)
