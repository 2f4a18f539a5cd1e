"""Right rewrites of a whole query and of its text."""

import re
from collections.abc import Callable

import sqlglot
from sqlglot import exp

from bench.judge.query import (
    Query,
    at,
    clause,
    enclosing,
    joined,
    joins,
    normal,
    parts,
    sources,
)
from bench.judge.writing import (
    counts_rows,
    held,
)
from lm_eval_ext.sql.parsing import to_sql

# The whole query.


def from_itself(query: Query) -> str | None:
    return f"SELECT * FROM ({to_sql(query.tree)}) AS own" if _wrappable(query) else None


def as_cte(query: Query) -> str | None:
    return f"WITH own AS ({to_sql(query.tree)}) SELECT * FROM own" if _wrappable(query) else None


def _wrappable(query: Query) -> bool:
    """Whether a result can be a table: its order is free, its names differ."""
    if query.ordered() and query.tree.args.get("limit") is None:
        return False
    names = [one.alias_or_name.casefold() for one in query.tree.selects]
    return len(set(names)) == len(names) and not query.tree.args.get("with_")


def tables_wrapped(query: Query) -> str | None:
    """Each table as ``(SELECT * FROM table)``."""

    def change(table: exp.Table) -> str:
        return f"(SELECT * FROM {table.name}) AS {table.alias_or_name}"

    return _tables(query, change)


def tables_as_ctes(query: Query) -> str | None:
    if query.tree.args.get("with_"):
        return None
    names = sorted({t.name for t in query.tree.find_all(exp.Table)})
    if any(name not in query.facts.schema for name in names):
        return None
    ctes = ", ".join(f"own_{name} AS (SELECT * FROM {name})" for name in names)
    written = _tables(query, lambda table: f"own_{table.name} AS {table.alias_or_name}")
    return None if written is None else f"WITH {ctes} {written}"


def _tables(query: Query, change: Callable[[exp.Table], str]) -> str | None:
    new = query.tree.copy()
    for table in list(new.find_all(exp.Table)):
        if table.name not in query.facts.schema:
            return None
        table.replace(exp.Var(this=change(table)))
    return to_sql(new)


def renamed(query: Query) -> str | None:
    """Other aliases, and every column with its table's."""
    copy = Query(to_sql(query.tree), query.facts)
    names: dict[int, str] = {}
    for select in copy.tree.find_all(exp.Select):
        for source in sources(select):
            if copy.table(source) is None:
                return None
            names[id(source)] = f"r{len(names)}"
    found = []
    for node in copy.tree.find_all(exp.Column):
        meant = _source(copy, node)
        if isinstance(node.this, exp.Star):
            return None
        if meant is not None:
            found.append((node, names[id(meant)]))
    for node, name in found:
        node.set("table", exp.to_identifier(name))
    for source in [s for one in copy.tree.find_all(exp.Select) for s in sources(one)]:
        alias = exp.TableAlias(this=exp.to_identifier(names[id(source)]))
        source.set("alias", alias)
    return to_sql(copy.tree)


def _source(query: Query, column: exp.Column) -> exp.Expr | None:
    name, alias = column.name.casefold(), column.table.casefold()
    select = enclosing(column)
    while select is not None:
        if not alias and any(
            s.alias.casefold() == name for s in select.selects if isinstance(s, exp.Alias)
        ):
            return None
        for source in sources(select):
            table = query.table(source)
            if alias == source.alias_or_name.casefold() or (
                not alias and table and name in query.facts.schema[table].by_name
            ):
                return source
        select = enclosing(select)
    return None


def joined_by_comma(query: Query) -> str | None:
    return _conditions_moved(query, "CROSS")


def on_in_where(query: Query) -> str | None:
    return _conditions_moved(query, "")


def _conditions_moved(query: Query, kind: str) -> str | None:
    new = query.tree.copy()
    changed = False
    for select in list(new.find_all(exp.Select)):
        if any(j.side or j.args.get("using") for j in joins(select)):
            return None
        conditions = [j.args["on"] for j in joins(select) if j.args.get("on") is not None]
        if not conditions:
            continue
        changed = True
        all_of = joined([*conditions, *parts(clause(select, "where"))])
        for join in joins(select):
            join.set("on", None)
            join.set("kind", kind or None)
        select.set("where", exp.Where(this=all_of))
    return to_sql(new) if changed else None


def using(query: Query) -> str | None:
    new = query.tree.copy()
    changed = False
    for select in list(new.find_all(exp.Select)):
        if len(joins(select)) != 1 or select.is_star or joins(select)[0].side:
            continue
        (join,) = joins(select)
        on = join.args.get("on")
        if not isinstance(on, exp.EQ) or not isinstance(on.this, exp.Column):
            continue
        if isinstance(on.expression, exp.Column) and on.this.name == on.expression.name:
            join.set("using", [exp.to_identifier(on.this.name)])
            join.set("on", None)
            changed = True
    return to_sql(new) if changed else None


def having_outside(query: Query) -> str | None:
    """HAVING as WHERE around the groups."""
    tree = query.tree
    having = clause(tree, "having") if isinstance(tree, exp.Select) else None
    if having is None or tree.args.get("limit") or tree.args.get("order") or tree.is_star:
        return None
    inner = tree.copy()
    inner.set("having", None)
    distinct = "DISTINCT " if inner.args.get("distinct") else ""
    inner.set("distinct", None)
    items = [s.this if isinstance(s, exp.Alias) else s for s in inner.selects]
    listed = [f"{to_sql(s)} AS c{i}" for i, s in enumerate(items)]
    inner.set("expressions", [exp.Var(this=t) for t in [*listed, f"({to_sql(having)}) AS keep"]])
    names = ", ".join(f"c{i}" for i in range(len(items)))
    return f"SELECT {distinct}{names} FROM ({to_sql(inner)}) AS own WHERE keep"


def distinct_grouped(query: Query) -> str | None:
    tree = query.tree
    if not isinstance(tree, exp.Select) or not tree.args.get("distinct") or tree.is_star:
        return None
    if any(tree.args.get(n) for n in ("group", "having", "order")) or tree.find(exp.AggFunc):
        return None
    new = tree.copy()
    new.set("distinct", None)
    listed = [s.this if isinstance(s, exp.Alias) else s for s in tree.selects]
    listed = [s.this if isinstance(s, exp.Paren) else s for s in listed]
    new.set("group", exp.Group(expressions=[s.copy() for s in listed]))
    return to_sql(new)


def group_ordinal(query: Query) -> str | None:
    tree = query.tree
    group = tree.args.get("group")
    if not isinstance(tree, exp.Select) or group is None or len(group.expressions) != 1:
        return None
    for i, one in enumerate(tree.selects, 1):
        if normal(to_sql(one)) == normal(to_sql(group.expressions[0])):
            new = tree.copy()
            new.set("group", exp.Group(expressions=[exp.Literal.number(i)]))
            return to_sql(new)
    return None


def order_ordinal(query: Query) -> str | None:
    tree = query.tree
    order = tree.args.get("order")
    if not isinstance(tree, exp.Select) or order is None:
        return None
    new = tree.copy()
    for ordered in new.args["order"].expressions:
        for i, one in enumerate(tree.selects, 1):
            if normal(to_sql(one)) == normal(to_sql(ordered.this)):
                ordered.this.replace(exp.Literal.number(i))
                return to_sql(new)
    return None


def order_negated(query: Query) -> str | None:
    tree = query.tree
    order = tree.args.get("order")
    if order is None or not isinstance(tree, exp.Select) or len(order.expressions) != 1:
        return None
    term = order.expressions[0]
    if not held(query, term.this, "integer", "number"):
        return None
    new = tree.copy()
    way = "ASC" if term.args.get("desc") else "DESC"
    new.set("order", exp.Order(expressions=[exp.Var(this=f"-({to_sql(term.this)}) {way}")]))
    return to_sql(new)


def order_more(query: Query) -> str | None:
    """One more sort term, which matters among equals only."""
    tree = query.tree
    order = tree.args.get("order")
    if order is None or not isinstance(tree, exp.Select) or tree.args.get("limit") is None:
        return None
    if (
        tree.args.get("group")
        or tree.args.get("distinct")
        or not isinstance(tree.selects[0], exp.Column)
    ):
        return None
    new = tree.copy()
    new.args["order"].append("expressions", tree.selects[0].copy())
    return to_sql(new)


def limit_offset(query: Query) -> str | None:
    limit = query.tree.args.get("limit")
    if limit is None or query.tree.args.get("offset") is not None:
        return None
    text = to_sql(query.tree)
    found = re.fullmatch(r"(?s)(.*) LIMIT (\d+)", text)
    return f"{found[1]} LIMIT 0, {found[2]}" if found else None


def top_by_window(query: Query) -> str | None:
    """``ORDER BY x LIMIT 1`` as the rows of rank 1."""
    return ranked(query.tree, "rank()")


def top_by_row_number(query: Query) -> str | None:
    return ranked(query.tree, "row_number()")


def ranked(select: exp.Expr, function: str) -> str | None:
    """A SELECT with ORDER BY and LIMIT as one that numbers its rows by a window function."""
    if not isinstance(select, exp.Select) or select.is_star or select.args.get("distinct"):
        return None
    order, limit = select.args.get("order"), select.args.get("limit")
    if order is None or limit is None or select.args.get("offset") or select.ctes:
        return None
    inner = select.copy()
    for name in ("order", "limit"):
        inner.set(name, None)
    items = [s.this if isinstance(s, exp.Alias) else s for s in select.selects]
    names = [s.alias_or_name or f"c{i}" for i, s in enumerate(select.selects)]
    if len({name.casefold() for name in names}) < len(names):
        names = [f"c{i}" for i in range(len(items))]
    aliases = {one.alias.casefold(): to_sql(one.this) for one in select.selects if one.alias}
    terms = ", ".join(
        re.sub(r"^\w+", lambda m: aliases.get(m[0].casefold(), m[0]), to_sql(o))
        for o in order.expressions
    )
    listed = [f"{to_sql(s)} AS {name}" for s, name in zip(items, names, strict=True)]
    listed.append(f"{function} OVER (ORDER BY {terms}) AS place")
    inner.set("expressions", [exp.Var(this=t) for t in listed])
    count = to_sql(limit.expression)
    return (
        f"SELECT {', '.join(names)} FROM ({to_sql(inner)}) AS own "
        f"WHERE place <= {count} ORDER BY place"
    )


def settling(query: Query) -> list[str]:
    """A gold in which no LIMIT cuts rows of the same sort key, one text for each LIMIT."""
    return [
        query.edited(at(place, lambda node, t=text: node.replace(exp.Var(this=t))))
        for place, node in enumerate(query.nodes)
        if (text := ranked(node, "rank()")) is not None
    ]


def second_by_offset(query: Query) -> str | None:
    """The lowest of the highest two as the second, of which every database must have one."""
    tree = query.tree
    source = sources(tree)[0] if isinstance(tree, exp.Select) and sources(tree) else None
    inner = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(tree, exp.Select) or not isinstance(inner, exp.Select):
        return None
    cuts = [str(s.args["limit"].expression.this) for s in (inner, tree) if s.args.get("limit")]
    known = {one.alias_or_name.casefold(): one for one in inner.selects}
    wanted = [known.get(one.name.casefold()) for one in tree.selects]
    if cuts != ["2", "1"] or None in wanted or len(sources(tree)) > 1:
        return None
    new = inner.copy()
    new.set("expressions", [one.copy() for one in wanted if one is not None])
    return f"{to_sql(new).removesuffix(' LIMIT 2')} LIMIT 1 OFFSET 1"


def top_group_by_having(query: Query) -> str | None:
    """The group with most rows by comparison with the largest count."""
    tree = query.tree
    order, limit = tree.args.get("order"), tree.args.get("limit")
    if not isinstance(tree, exp.Select) or tree.args.get("group") is None or order is None:
        return None
    if limit is None or str(limit.expression.this) != "1" or tree.args.get("having"):
        return None
    term = order.expressions[0]
    if len(order.expressions) != 1 or not counts_rows(term.this):
        return None
    new, counts = tree.copy(), tree.copy()
    for name in ("order", "limit"):
        new.set(name, None)
        counts.set(name, None)
    counts.set("expressions", [exp.Var(this="COUNT(*) AS n")])
    best = "MAX" if term.args.get("desc") else "MIN"
    new.set(
        "having",
        exp.Having(this=exp.Var(this=f"COUNT(*) = (SELECT {best}(n) FROM ({to_sql(counts)}))")),
    )
    return to_sql(new)


def set_as_in(query: Query) -> str | None:
    """INTERSECT as IN, EXCEPT as NOT IN, of one column."""
    tree = query.tree
    if not isinstance(tree, exp.Intersect | exp.Except) or tree.args.get("order"):
        return None
    left, right = tree.this, tree.expression
    if not isinstance(left, exp.Select) or len(left.selects) != 1 or left.args.get("group"):
        return None
    item = left.selects[0]
    if not held(query, item, "integer", "number", "text", "date"):
        return None
    if isinstance(tree, exp.Except) and not (
        isinstance(right, exp.Select) and held(query, right.selects[0], "integer", "text", "date")
    ):
        return None
    word = "IN" if isinstance(tree, exp.Intersect) else "NOT IN"
    new = left.copy()
    extra = exp.Var(this=f"{to_sql(item)} {word} ({to_sql(right)})")
    new.set("where", exp.Where(this=joined([*parts(clause(left, "where")), extra])))
    new.set("distinct", exp.Distinct())
    return to_sql(new)


def union_as_or(query: Query) -> str | None:
    tree = query.tree
    if not isinstance(tree, exp.Union) or not tree.args.get("distinct") or tree.args.get("order"):
        return None
    sides = [tree.this, tree.expression]
    if not all(isinstance(s, exp.Select) and clause(s, "where") is not None for s in sides):
        return None
    bare = [s.copy() for s in sides]
    for one in bare:
        one.set("where", None)
    if normal(to_sql(bare[0])) != normal(to_sql(bare[1])) or bare[0].args.get("group"):
        return None
    both = " OR ".join(f"({to_sql(clause(s, 'where'))})" for s in sides)  # type: ignore[arg-type]
    bare[0].set("where", exp.Where(this=exp.Var(this=both)))
    bare[0].set("distinct", exp.Distinct())
    return to_sql(bare[0])


# The text.


def other_case(query: Query) -> str | None:
    pieces = re.split(r"('(?:[^']|'')*'|\"[^\"]*\")", to_sql(query.tree))
    return "".join(p.swapcase() if i % 2 == 0 else p for i, p in enumerate(pieces)) + " ;"


def formatted(query: Query) -> str | None:
    pretty = sqlglot.parse_one(to_sql(query.tree), read="sqlite")
    text = str(pretty.sql(dialect="sqlite", pretty=True))
    return "-- the answer\n" + text if "STDDEV" not in text.upper() else None


def quoted_names(query: Query) -> str | None:
    new = query.tree.copy()
    for node in new.find_all(exp.Identifier):
        node.args["quoted"] = True
    return to_sql(new)


def item_named(query: Query) -> str | None:
    tree = query.tree
    if not isinstance(tree, exp.Select) or tree.is_star:
        return None
    new = tree.copy()
    for i, one in enumerate(new.selects):
        if isinstance(one, exp.AggFunc):
            one.replace(exp.alias_(one.copy(), f"value_{i}"))
            return to_sql(new)
    return None


def items_turned(query: Query) -> str | None:
    """Columns in another order, which the authors' rule allows."""
    tree = query.tree
    if not isinstance(tree, exp.Select) or len(tree.selects) < 2 or tree.is_star:  # noqa: PLR2004
        return None
    if any(t.this.is_number for t in (tree.args.get("order") or exp.Order()).expressions):
        return None
    new = tree.copy()
    new.set("expressions", list(reversed(new.selects)))
    return to_sql(new)
