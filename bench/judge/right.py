"""Right rewrites of a gold: other ways to say the same, which the package's own checks lack.

Each is right wherever a database keeps what the original promises: declared keys, no NULL where a
column has none, values of the column's kind, no tie where a LIMIT cuts. Only kinds whose truth
depends on rows are here. A case counts if it is right on the original.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sqlglot import exp

from bench.judge.query import Query, at, clause, is_day, joined, normal, parts
from bench.judge.query import replace as put
from lm_eval_ext.sql.parsing import select_of, sources, to_sql

EACH = 3
"""Most rewrites of one kind per gold."""


class Rewrite(NamedTuple):
    """A right query."""

    kind: str
    sql: str


Node = Callable[[Query, exp.Expr], str | None]
"""Writes a node in another way; None: it does not apply."""


def rewrites(query: Query) -> list[Rewrite]:
    """A gold's rewrites, the same ones each time; some may not run."""
    found: dict[str, Rewrite] = {}
    known = {normal(query.gold), normal(to_sql(query.tree))}
    for kind, rule in NODES.items():
        count = 0
        for place, node in enumerate(query.nodes):
            text = rule(query, node)
            if text is None or count == EACH:
                continue
            new = query.edited(at(place, put, exp.Var(this=text)))
            if normal(new) not in known:
                count += 1
                found.setdefault(normal(new), Rewrite(kind, new))
    for kind, whole in WHOLE.items():
        written = whole(query)
        if written is not None and normal(written) not in known:
            found.setdefault(normal(written), Rewrite(kind, written))
    return list(found.values())


def _held(query: Query, node: exp.Expr | None, *kinds: str) -> bool:
    """Whether a node is a column without NULL that holds values of these kinds."""
    of = query.of(node)
    return of is not None and query.facts.never_null(of) and query.facts.kind(of) in kinds


def _day_compared(query: Query, node: exp.Expr) -> bool:
    compared = isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.EQ)
    return compared and _held(query, node.this, "date") and _day(node.expression)


def _day(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string) and is_day(str(node.this))


def _compared(node: exp.Expr, write: Callable[[str], str]) -> str:
    new = node.copy()
    for side in (new.this, new.expression):
        side.replace(exp.Var(this=write(to_sql(side))))
    return to_sql(new)


def day_by_date(query: Query, node: exp.Expr) -> str | None:
    return _compared(node, lambda side: f"date({side})") if _day_compared(query, node) else None


def day_before(query: Query, node: exp.Expr) -> str | None:
    if not _day_compared(query, node) or not isinstance(node, exp.LT):
        return None
    of = query.of(node.this)
    if of is None or any(len(str(day)) > len("2000-01-01") for day in query.facts.values(of)):
        return None
    return f"{to_sql(node.this)} <= date({to_sql(node.expression)}, '-1 day')"


def years_apart(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Sub) or not (
        _held(query, node.this, "date") and _held(query, node.expression, "date")
    ):
        return None
    return f"(strftime('%Y', {to_sql(node.this)}) - strftime('%Y', {to_sql(node.expression)}))"


def month_like(query: Query, node: exp.Expr) -> str | None:
    """``d >= '1987-07-01' AND d < '1987-09-01'`` as LIKE of each month."""
    own = parts(node) if isinstance(node, exp.And) else []
    if len(own) != 2 or not all(_day_compared(query, one) for one in own):  # noqa: PLR2004
        return None
    low, high = own
    first, last = (str(one.expression.this) for one in own)
    plain = isinstance(low, exp.GTE) and isinstance(high, exp.LT) and low.this == high.this
    if not plain or not first.endswith("-01") or not last.endswith("-01"):
        return None
    counts = [int(text[:4]) * 12 + int(text[5:7]) - 1 for text in (first, last)]
    months = [f"{n // 12:04d}-{n % 12 + 1:02d}" for n in range(*counts)]
    return "(" + " OR ".join(f"{to_sql(low.this)} LIKE '{month}-%'" for month in months) + ")"


def equal_as_like(query: Query, node: exp.Expr) -> str | None:
    text = node.expression if isinstance(node, exp.EQ) else None
    if not isinstance(text, exp.Literal) or not text.is_string or set(str(text.this)) & set("%_"):
        return None
    return f"{to_sql(node.this)} LIKE {to_sql(text)}"


def equal_trimmed(query: Query, node: exp.Expr) -> str | None:
    text = isinstance(node, exp.EQ) and isinstance(node.expression, exp.Literal)
    if not text or not _held(query, node.this, "text"):
        return None
    return _compared(node, lambda side: f"trim(lower({side}))")


def next_number(query: Query, node: exp.Expr) -> str | None:
    """``x > 7`` as ``x >= 8``, of whole numbers."""
    number = str(node.expression.this) if isinstance(node, exp.GT | exp.LTE) else ""
    if not number.isdigit() or not _held(query, node.this, "integer"):
        return None
    return f"{to_sql(node.this)} {'>=' if isinstance(node, exp.GT) else '<'} {int(number) + 1}"


def count_of_column(query: Query, node: exp.Expr) -> str | None:
    """COUNT(*) as COUNT of a column that has no NULL."""
    select = select_of(node)
    counts = isinstance(node, exp.Count) and isinstance(node.this, exp.Star)
    if not counts or select is None or any(j.side for j in select.args.get("joins") or ()):
        return None
    for alias, table in query.tables(select):
        for one in query.facts.columns(table):
            if query.facts.schema[table][one.column].not_null and query.facts.never_null(one):
                return f"COUNT({alias}.{one.column})"
    return None


def average_parts(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Avg) or not _held(query, node.this, "integer"):
        return None
    return f"(1.0 * SUM({to_sql(node.this)}) / COUNT(*))"


def in_as_exists(query: Query, node: exp.Expr) -> str | None:
    """``x IN (SELECT y FROM t)`` as EXISTS, also after NOT."""
    inner = node.args["query"].this if isinstance(node, exp.In) and node.args.get("query") else None
    if not isinstance(inner, exp.Select) or not isinstance(node.this, exp.Column):
        return None
    if any(inner.args.get(name) for name in ("limit", "group", "order")) or len(inner.selects) > 1:
        return None
    select = select_of(node)
    held = query.tables(select) if select is not None else []
    owners = [a for a, t in held if node.this.name.casefold() in query.facts.schema[t].by_name]
    alias = node.this.table or (owners[0] if owners else "")
    if not alias or alias.casefold() in {a.casefold() for a, _ in query.tables(inner)}:
        return None
    new = inner.copy()
    value = exp.Var(this=f"{to_sql(inner.selects[0])} = {alias}.{node.this.name}")
    new.set("where", exp.Where(this=joined([*parts(clause(inner, "where")), value])))
    return f"EXISTS ({to_sql(new)})"


def extreme_as_first(query: Query, node: exp.Expr) -> str | None:
    """``(SELECT MAX(x) FROM t)`` as the first row by x."""
    inner = node.this if isinstance(node, exp.Subquery) else None
    if not isinstance(inner, exp.Select) or inner.args.get("group") or len(inner.selects) != 1:
        return None
    best = inner.selects[0]
    if not isinstance(best, exp.Max | exp.Min) or not isinstance(node.parent, exp.Predicate):
        return None
    new = inner.copy()
    new.set("expressions", [best.this.copy()])
    way = "DESC" if isinstance(best, exp.Max) else "ASC"
    known = f"{to_sql(best.this)} IS NOT NULL"
    conditions = [*parts(clause(inner, "where")), exp.Var(this=known)]
    new.set("where", exp.Where(this=joined(conditions)))
    return f"({to_sql(new)} ORDER BY {to_sql(best.this)} {way} LIMIT 1)"


NODES: dict[str, Node] = {
    rule.__name__: rule
    for rule in (
        day_by_date, day_before, years_apart, month_like, equal_as_like, equal_trimmed,
        next_number, count_of_column, average_parts, in_as_exists, extreme_as_first,
    )
}  # fmt: skip


def tables_as_ctes(query: Query) -> str | None:
    """Each table read through another one, so that rows come in another order."""
    names = sorted({table.name for table in query.tree.find_all(exp.Table)})
    if query.tree.args.get("with_") or any(name not in query.facts.schema for name in names):
        return None
    new = query.tree.copy()
    for table in list(new.find_all(exp.Table)):
        table.replace(exp.Var(this=f"own_{table.name} AS {table.alias_or_name}"))
    ctes = ", ".join(f"own_{n} AS (SELECT * FROM {n} ORDER BY rowid DESC)" for n in names)
    return f"WITH {ctes} {to_sql(new)}"


def distinct_grouped(query: Query) -> str | None:
    tree = query.tree
    if not isinstance(tree, exp.Select) or not tree.args.get("distinct") or tree.is_star:
        return None
    if any(tree.args.get(n) for n in ("group", "order")) or tree.find(exp.AggFunc):
        return None
    new = tree.copy()
    new.set("distinct", None)
    new.set("group", exp.Group(expressions=[s.unalias().unnest().copy() for s in tree.selects]))
    return to_sql(new)


def ranked(select: exp.Expr) -> str | None:
    """A SELECT with ORDER BY and LIMIT as one that ranks its rows by a window function."""
    if not isinstance(select, exp.Select) or select.is_star or select.args.get("distinct"):
        return None
    order, limit = select.args.get("order"), select.args.get("limit")
    if order is None or limit is None or select.args.get("offset") or select.ctes:
        return None
    inner = select.copy()
    for name in ("order", "limit"):
        inner.set(name, None)
    names = [s.alias_or_name or f"c{i}" for i, s in enumerate(select.selects)]
    if len({name.casefold() for name in names}) < len(names):
        names = [f"c{i}" for i in range(len(names))]
    aliases = {one.alias.casefold(): to_sql(one.this) for one in select.selects if one.alias}
    terms = ", ".join(
        re.sub(r"^\w+", lambda m: aliases.get(m[0].casefold(), m[0]), to_sql(term))
        for term in order.expressions
    )
    items = zip(select.selects, names, strict=True)
    listed = [f"{to_sql(one.unalias())} AS {name}" for one, name in items]
    listed.append(f"rank() OVER (ORDER BY {terms}) AS place")
    inner.set("expressions", [exp.Var(this=text) for text in listed])
    return (
        f"SELECT {', '.join(names)} FROM ({to_sql(inner)}) AS own "
        f"WHERE place <= {to_sql(limit.expression)} ORDER BY place"
    )


def settling(query: Query) -> Iterator[str]:
    """A gold in which no LIMIT cuts rows of the same sort key, one text for each LIMIT."""
    for place, node in enumerate(query.nodes):
        if (text := ranked(node)) is not None:
            yield query.edited(at(place, put, exp.Var(this=text)))


def second_by_offset(query: Query) -> str | None:
    """The lowest of the highest two as the second, of which every database must have one."""
    tree = query.tree
    read = list(sources(tree)) if isinstance(tree, exp.Select) else []
    inner = read[0].this if len(read) == 1 and isinstance(read[0], exp.Subquery) else None
    if not isinstance(inner, exp.Select):
        return None
    cuts = [str(s.args["limit"].expression.this) for s in (inner, tree) if s.args.get("limit")]
    known = {one.alias_or_name.casefold(): one for one in inner.selects}
    wanted = [known.get(one.name.casefold()) for one in tree.selects]
    if cuts != ["2", "1"] or None in wanted:
        return None
    new = inner.copy()
    new.set("expressions", [one.copy() for one in wanted if one is not None])
    return f"{to_sql(new).removesuffix(' LIMIT 2')} LIMIT 1 OFFSET 1"


def top_group_by_having(query: Query) -> str | None:
    """The group with most rows by comparison with the largest count."""
    tree = query.tree
    order, limit = tree.args.get("order"), tree.args.get("limit")
    if order is None or limit is None or tree.args.get("group") is None or tree.args.get("having"):
        return None
    term = order.expressions[0]
    counts = isinstance(term.this, exp.Count) and isinstance(term.this.this, exp.Star)
    if not counts or str(limit.expression.this) != "1" or len(order.expressions) > 1:
        return None
    new, inner = tree.copy(), tree.copy()
    for name in ("order", "limit"):
        new.set(name, None)
        inner.set(name, None)
    inner.set("expressions", [exp.Var(this="COUNT(*) AS n")])
    best = "MAX" if term.args.get("desc") else "MIN"
    same = f"COUNT(*) = (SELECT {best}(n) FROM ({to_sql(inner)}))"
    new.set("having", exp.Having(this=exp.Var(this=same)))
    return to_sql(new)


def set_as_in(query: Query) -> str | None:
    """INTERSECT as IN, EXCEPT as NOT IN, of one column without NULL."""
    tree = query.tree
    if not isinstance(tree, exp.Intersect | exp.Except) or tree.args.get("order"):
        return None
    left, right, kinds = tree.this, tree.expression, ("integer", "number", "text", "date")
    if not isinstance(left, exp.Select) or len(left.selects) > 1 or left.args.get("group"):
        return None
    item, other = left.selects[0], right.selects[0]
    if not any(_held(query, item, kind) and _held(query, other, kind) for kind in kinds):
        return None
    word = "IN" if isinstance(tree, exp.Intersect) else "NOT IN"
    new = left.copy()
    extra = exp.Var(this=f"{to_sql(item)} {word} ({to_sql(right)})")
    new.set("where", exp.Where(this=joined([*parts(clause(left, "where")), extra])))
    new.set("distinct", exp.Distinct())
    return to_sql(new)


WHOLE: dict[str, Callable[[Query], str | None]] = {
    "top_by_window": lambda query: ranked(query.tree),
    "tables_as_ctes": tables_as_ctes,
    "distinct_grouped": distinct_grouped,
    "second_by_offset": second_by_offset,
    "top_group_by_having": top_group_by_having,
    "set_as_in": set_as_in,
}
