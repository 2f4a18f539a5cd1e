"""Right rewrites of a gold: other ways to say the same, none of which the package's gate has.

Each rule gives a query that has the gold's rows (in the gold's order, where it has one) wherever
the database keeps what the original promises: declared keys, no NULL where a column has none,
values of the column's kind, no tie where a LIMIT cuts. A case counts only if it is right on the
original.
"""

import random
import re
from collections.abc import Callable
from typing import NamedTuple

import sqlglot
from sqlglot import exp

from bench.judge.query import (
    Edit,
    Of,
    Query,
    at,
    clause,
    enclosing,
    is_day,
    joined,
    joins,
    normal,
    parts,
    sources,
)
from lm_eval_ext.sql.parsing import to_sql

EACH = 2
"""Most rewrites by one rule of one gold."""

COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
NEGATED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}  # fmt: skip
TURNED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.EQ, exp.NEQ: exp.NEQ, exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}  # fmt: skip


class Rewrite(NamedTuple):
    """A right query."""

    kind: str
    sql: str


Node = Callable[[Query, exp.Expr], str | None]
"""Writes a node in another way; the text stands where the node stood. None: it does not apply."""

Whole = Callable[[Query], str | None]
"""Writes the whole query in another way."""


def rewrites(query: Query) -> list[Rewrite]:
    """Returns a gold's rewrites, the same ones each time; some may not run."""
    chance = random.Random(f"rewrite {query.gold}")
    found: dict[str, Rewrite] = {}
    known = {normal(query.gold), normal(to_sql(query.tree))}
    for kind, rule in NODES.items():
        edits = [
            (place, text)
            for place, node in enumerate(query.nodes)
            if (text := rule(query, node)) is not None
        ]
        for place, text in chance.sample(edits, min(EACH, len(edits))):
            sql = query.edited(_put(place, text))
            if normal(sql) not in known:
                found.setdefault(normal(sql), Rewrite(kind, sql))
    for kind, whole in WHOLE.items():
        written = whole(query)
        if written is not None and normal(written) not in known:
            found.setdefault(normal(written), Rewrite(kind, written))
    return list(found.values())


def _put(place: int, text: str) -> Edit:
    def edit(nodes: list[exp.Expr]) -> None:
        nodes[place].replace(exp.Var(this=text))

    return edit


def sql(node: exp.Expr) -> str:
    """A node's text, in brackets where it is not simple."""
    text = to_sql(node)
    simple = isinstance(node, exp.Column | exp.Literal | exp.Func | exp.Paren | exp.Subquery)
    return text if simple else f"({text})"


def condition(node: exp.Expr) -> bool:
    """Whether a node is a condition of WHERE or HAVING, or a part that AND or OR connects."""
    holders = exp.Where | exp.Having | exp.Connector
    if isinstance(node, exp.Select | exp.Table | exp.Subquery) or node.find_ancestor(exp.Join):
        return False
    return isinstance(node.parent, holders) or (
        isinstance(node.parent, exp.Paren) and isinstance(node.parent.parent, holders)
    )


def of(query: Query, node: exp.Expr | None) -> Of | None:
    """What a plain column means."""
    owner = query.owner(node) if isinstance(node, exp.Column) else None
    return owner[0] if owner else None


def held(query: Query, node: exp.Expr | None, *kinds: str) -> bool:
    """Whether a node is a column without NULL that holds values of these kinds."""
    found = of(query, node)
    if found is None or not query.facts.never_null(found):
        return False
    return query.facts.kind(found) in kinds


def days(query: Query, node: exp.Expr | None) -> bool:
    """Whether a node is a column of ISO days without a time, for most of its rows."""
    found = of(query, node)
    if found is None or query.facts.kind(found) != "date" or query.facts.has_null(found):
        return False
    return all(len(str(value)) == 10 for value in query.facts.values(found))  # noqa: PLR2004


def day(node: exp.Expr | None) -> bool:
    """Whether a node is a literal day."""
    return isinstance(node, exp.Literal) and bool(node.is_string) and is_day(str(node.this))


# One node after another: conditions.


def mirrored(query: Query, node: exp.Expr) -> str | None:
    if type(node) not in TURNED:
        return None
    turned = TURNED[type(node)](this=node.expression.copy(), expression=node.this.copy())
    return to_sql(turned)


def negated(query: Query, node: exp.Expr) -> str | None:
    if type(node) not in NEGATED or not condition(node):
        return None
    other = NEGATED[type(node)](this=node.this.copy(), expression=node.expression.copy())
    return f"NOT ({to_sql(other)})"


def de_morgan(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.And | exp.Or):
        return None
    word = "OR" if isinstance(node, exp.And) else "AND"
    return f"(NOT (NOT ({to_sql(node.this)}) {word} NOT ({to_sql(node.expression)})))"


def two_sides(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.NEQ):
        return None
    a, b = sql(node.this), sql(node.expression)
    return f"({a} < {b} OR {a} > {b})"


def between_split(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Between) or node.args.get("negate"):
        return None
    return (
        f"({sql(node.args['high'])} >= {sql(node.this)} AND "
        f"{sql(node.args['low'])} <= {sql(node.this)})"
    )


def in_as_or(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.In) or not node.expressions:
        return None
    ways = " OR ".join(f"{sql(e)} = {sql(node.this)}" for e in reversed(node.expressions))
    return f"({ways})"


def or_as_in(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Or):
        return None
    a, b = node.this, node.expression
    if not (isinstance(a, exp.EQ) and isinstance(b, exp.EQ) and to_sql(a.this) == to_sql(b.this)):
        return None
    if not isinstance(a.expression, exp.Literal) or not isinstance(b.expression, exp.Literal):
        return None
    return f"{sql(a.this)} IN ({sql(b.expression)}, {sql(a.expression)})"


def equal_as_in(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.EQ) or not isinstance(node.expression, exp.Literal):
        return None
    return f"{sql(node.this)} IN ({sql(node.expression)})"


def as_case(query: Query, node: exp.Expr) -> str | None:
    if not condition(node) or isinstance(node, exp.Connector | exp.Paren):
        return None
    return f"CASE WHEN {to_sql(node)} THEN 1 ELSE 0 END = 1"


def and_true(query: Query, node: exp.Expr) -> str | None:
    if not condition(node):
        return None
    return f"(1 = 1 AND ({to_sql(node)}))"


def is_true(query: Query, node: exp.Expr) -> str | None:
    if not condition(node) or isinstance(node, exp.Connector):
        return None
    return f"(({to_sql(node)}) IS TRUE)"


def like_function(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Like) or node.args.get("negate"):
        return None
    return f"like({to_sql(node.expression)}, {to_sql(node.this)})"


def like_upper(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Like) or node.args.get("negate"):
        return None
    text = str(node.expression.this) if isinstance(node.expression, exp.Literal) else "\xe9"
    return f"upper({to_sql(node.this)}) LIKE {quoted(text.upper())}" if text.isascii() else None


def like_as_instr(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Like) or node.args.get("negate"):
        return None
    text = str(node.expression.this) if isinstance(node.expression, exp.Literal) else ""
    bare = text[1:-1]
    if not re.fullmatch(r"%[^%_]+%", text) or not text.isascii():
        return None
    return f"(instr(lower({to_sql(node.this)}), {quoted(bare.lower())}) > 0)"


def length_as_like(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.LT) or not isinstance(node.this, exp.Length):
        return None
    bound = str(node.expression.this)
    if not bound.isdigit() or not held(query, node.this.this, "text"):
        return None
    return f"{sql(node.this.this)} NOT LIKE '{'_' * int(bound)}%'"


def length_of_trailing(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.LT) or not isinstance(node.this, exp.Length):
        return None
    bound = str(node.expression.this)
    if not bound.isdigit() or not held(query, node.this.this, "text"):
        return None
    return f"substr({to_sql(node.this.this)}, {bound}, 1) = ''"


def difference(query: Query, node: exp.Expr) -> str | None:
    """``x > n`` as ``x - n > 0``, of whole numbers."""
    if type(node) not in TURNED or not condition(node):
        return None
    if not held(query, node.this, "integer") or not _whole(node.expression):
        return None
    zero = type(node)(this=exp.column("x"), expression=exp.Literal.number(0))
    sign = to_sql(zero).split(" ", 1)[1]
    return f"({sql(node.this)} - {sql(node.expression)}) {sign}"


def number_written(query: Query, node: exp.Expr) -> str | None:
    if not _whole(node) or not isinstance(node.parent, COMPARED):
        return None
    other = node.parent.this if node is node.parent.expression else node.parent.expression
    return f"{node.this}.0" if held(query, other, "integer", "number") else None


def number_added(query: Query, node: exp.Expr) -> str | None:
    if not _whole(node) or not isinstance(node.parent, COMPARED):
        return None
    other = node.parent.this if node is node.parent.expression else node.parent.expression
    numeric = held(query, other, "integer", "number") or isinstance(other, exp.AggFunc)
    return f"({int(str(node.this)) - 1} + 1)" if numeric else None


def plus_zero(query: Query, node: exp.Expr) -> str | None:
    if not held(query, node, "integer") or not isinstance(node.parent, (*COMPARED, exp.Ordered)):
        return None
    return f"({to_sql(node)} + 0)" if _same_kind(query, node) else None


def never_null(query: Query, node: exp.Expr) -> str | None:
    if not held(query, node, "integer", "number", "text", "date"):
        return None
    if not isinstance(node.parent, (*COMPARED, exp.AggFunc, exp.Like, exp.Between)):
        return None
    return f"coalesce({to_sql(node)}, NULL, 0)" if _same_kind(query, node) else None


def _same_kind(query: Query, node: exp.Expr) -> bool:
    """Whether a column is compared without a conversion that an expression would lose."""
    if not isinstance(node.parent, COMPARED):
        return True
    other = node.parent.this if node is node.parent.expression else node.parent.expression
    numeric = held(query, node, "integer", "number")
    if isinstance(other, exp.Literal):
        return bool(other.is_string) != numeric
    return not isinstance(other, exp.Column) or held(query, other, "integer", "number") == numeric


def case_of_text(query: Query, node: exp.Expr) -> str | None:
    """``x = 'a'`` as ``instr(x, 'a') = 1 AND length(x) = ...``."""
    if not isinstance(node, exp.EQ) or not held(query, node.this, "text"):
        return None
    text, one = node.expression, of(query, node.this)
    if not isinstance(text, exp.Literal) or not text.is_string or not str(text.this):
        return None
    if one is None or query.facts.schema[one.table][one.column].collation != "BINARY":
        return None
    size = len(str(text.this))
    return f"(length({sql(node.this)}) = {size} AND instr({sql(node.this)}, {sql(text)}) = 1)"


# Dates.


def _days_compared(query: Query, node: exp.Expr) -> bool:
    compared = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ)
    return isinstance(node, compared) and days(query, node.this) and day(node.expression)


def day_by_julian(query: Query, node: exp.Expr) -> str | None:
    if not _days_compared(query, node):
        return None
    new = node.copy()
    new.this.replace(exp.Anonymous(this="julianday", expressions=[node.this.copy()]))
    new.expression.replace(exp.Anonymous(this="julianday", expressions=[node.expression.copy()]))
    return to_sql(new)


def day_by_epoch(query: Query, node: exp.Expr) -> str | None:
    if not _days_compared(query, node):
        return None
    new = node.copy()
    for side in (new.this, new.expression):
        arguments = [exp.Literal.string("%Y%m%d"), side.copy()]
        call = exp.Anonymous(this="strftime", expressions=arguments)
        side.replace(exp.Add(this=call, expression=exp.Literal.number(0)))
    return to_sql(new)


def day_in_pieces(query: Query, node: exp.Expr) -> str | None:
    if not _days_compared(query, node) or not isinstance(node, exp.LT | exp.GTE):
        return None
    c, text = to_sql(node.this), str(node.expression.this)[:10]
    sign = "<" if isinstance(node, exp.LT) else ">="
    return f"(substr({c}, 1, 4) || substr({c}, 6, 2) || substr({c}, 9)) {sign} " + quoted(
        text.replace("-", "")
    )


def day_before(query: Query, node: exp.Expr) -> str | None:
    if not _days_compared(query, node) or not isinstance(node, exp.LT):
        return None
    return f"{to_sql(node.this)} <= date({to_sql(node.expression)}, '-1 day')"


def years_apart(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Sub) or not _dates(query, node.this, node.expression):
        return None
    a, b = to_sql(node.this), to_sql(node.expression)
    return f"(strftime('%Y', {a}) - strftime('%Y', {b}))"


def years_by_substr(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Sub) or not _dates(query, node.this, node.expression):
        return None
    a, b = to_sql(node.this), to_sql(node.expression)
    return f"(CAST(substr({a}, 1, 4) AS INTEGER) - CAST(substr({b}, 1, 4) AS INTEGER))"


def _dates(query: Query, *nodes: exp.Expr) -> bool:
    found = [of(query, node) for node in nodes]
    return all(
        one is not None and query.facts.kind(one) == "date" and query.facts.never_null(one)
        for one in found
    )


def month_range(query: Query, node: exp.Expr) -> str | None:
    """A range from one first of a month to another as a list of months."""
    pair = _month_pair(query, node)
    if pair is None:
        return None
    column, months = pair
    listed = ", ".join(map(quoted, months))
    return f"substr({column}, 1, 7) IN ({listed})"


def month_like(query: Query, node: exp.Expr) -> str | None:
    pair = _month_pair(query, node)
    if pair is None:
        return None
    column, months = pair
    return "(" + " OR ".join(f"{column} LIKE '{month}-__'" for month in months) + ")"


def month_parts(query: Query, node: exp.Expr) -> str | None:
    pair = _month_pair(query, node)
    if pair is None or len({month[:4] for month in pair[1]}) > 1:
        return None
    column, months = pair
    numbers = ", ".join(f"{int(month[5:])}" for month in months)
    return (
        f"(CAST(strftime('%Y', {column}) AS INTEGER) = {months[0][:4]} AND "
        f"CAST(strftime('%m', {column}) AS INTEGER) IN ({numbers}))"
    )


def _month_pair(query: Query, node: exp.Expr) -> tuple[str, list[str]] | None:
    if not isinstance(node, exp.And):
        return None
    own = parts(node)
    low, high = (own[-2], own[-1]) if len(own) > 1 else (None, None)
    if not isinstance(low, exp.GTE) or not isinstance(high, exp.LT) or len(own) != 2:  # noqa: PLR2004
        return None
    if to_sql(low.this) != to_sql(high.this) or not days(query, low.this):
        return None
    if not day(low.expression) or not day(high.expression):
        return None
    first, last = str(low.expression.this), str(high.expression.this)
    if not first.endswith("-01") or not last.endswith("-01"):
        return None
    counts = [int(text[:4]) * 12 + int(text[5:7]) - 1 for text in (first, last)]
    months = [f"{n // 12:04d}-{n % 12 + 1:02d}" for n in range(*counts)]
    return (to_sql(low.this), months) if 0 < len(months) < 13 else None  # noqa: PLR2004


# Values and aggregates.


def concatenated(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.DPipe):
        return None
    if not held(query, node.this, "text") or not held(query, node.expression, "text"):
        return None
    return f"printf('%s%s', {to_sql(node.this)}, {to_sql(node.expression)})"


def concatenated_equal(query: Query, node: exp.Expr) -> str | None:
    """``a || b = 'xy'`` as ``replace(...)``: the text between an empty text."""
    if not isinstance(node, exp.DPipe):
        return None
    return f"({to_sql(node.this)} || '' || {to_sql(node.expression)})"


def plus_negative(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Sub):
        return None
    return (
        f"(-({to_sql(node.expression)} - {to_sql(node.this)}))" if _integers(query, node) else None
    )


def times_turned(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Mul | exp.Add) or not isinstance(node.this, exp.Column):
        return None
    sign = "*" if isinstance(node, exp.Mul) else "+"
    return f"({sql(node.expression)} {sign} {sql(node.this)})"


def _integers(query: Query, node: exp.Expr) -> bool:
    return held(query, node.this, "integer") and held(query, node.expression, "integer")


def count_one(query: Query, node: exp.Expr) -> str | None:
    return "COUNT(1)" if _counts_rows(node) else None


def count_null_free(query: Query, node: exp.Expr) -> str | None:
    select = enclosing(node)
    if not _counts_rows(node) or select is None or any(j.side for j in joins(select)):
        return None
    for alias, table in query.tables(select):
        for one in query.facts.columns(table):
            declared = query.facts.schema[one.table][one.column]
            if declared.not_null and query.facts.never_null(one):
                return f"COUNT({alias}.{one.column})"
    return None


def count_case(query: Query, node: exp.Expr) -> str | None:
    return "COUNT(CASE WHEN 1 THEN 'row' END)" if _counts_rows(node) else None


def count_sum(query: Query, node: exp.Expr) -> str | None:
    select = enclosing(node)
    grouped = select is not None and select.args.get("group") is not None
    return "SUM(1)" if _counts_rows(node) and grouped else None


def _counts_rows(node: exp.Expr) -> bool:
    return isinstance(node, exp.Count) and isinstance(node.this, exp.Star)


def average_parts(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Avg) or not held(query, node.this, "integer"):
        return None
    return f"(1.0 * SUM({to_sql(node.this)}) / COUNT({to_sql(node.this)}))"


def average_total(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Avg) or not held(query, node.this, "integer"):
        return None
    return f"(TOTAL({to_sql(node.this)}) / COUNT(*))"


def max_negated(query: Query, node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Max | exp.Min) or not held(query, node.this, "integer"):
        return None
    other = "MIN" if isinstance(node, exp.Max) else "MAX"
    return f"(-{other}(-{to_sql(node.this)}))" if isinstance(node.parent, exp.Select) else None


def filtered_count(query: Query) -> str | None:
    """``SELECT agg WHERE c`` as ``SELECT agg FILTER (WHERE c)``, without GROUP BY."""
    return _moved_where(query, lambda call, c: f"{call} FILTER (WHERE {c})")


def case_aggregates(query: Query) -> str | None:
    def write(call: str, c: str) -> str:
        if call.upper() == "COUNT(*)":
            return f"COUNT(CASE WHEN {c} THEN 1 END)"
        name, inner = call.split("(", 1)
        return f"{name}(CASE WHEN {c} THEN {inner[:-1]} END)"

    return _moved_where(query, write)


def _moved_where(query: Query, write: Callable[[str, str], str]) -> str | None:
    tree = query.tree
    where = clause(tree, "where") if isinstance(tree, exp.Select) else None
    if where is None or any(tree.args.get(n) for n in ("group", "having", "limit", "distinct")):
        return None
    if not all(isinstance(s, exp.AggFunc) and not s.find(exp.Distinct) for s in tree.selects):
        return None
    new = tree.copy()
    new.set("where", None)
    calls = [exp.Var(this=write(to_sql(s), to_sql(where))) for s in tree.selects]
    new.set("expressions", calls)
    return to_sql(new)


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
    if len(order.expressions) != 1 or not _counts_rows(term.this):
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
            new = query.edited(_put(place, "(SELECT best FROM own)"))
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
            new = query.edited(_put(place, "one.best"))
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


def _whole(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()


def quoted(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"


NODES: dict[str, Node] = {
    rule.__name__: rule
    for rule in (
        mirrored, negated, de_morgan, two_sides, between_split, in_as_or, or_as_in, equal_as_in,
        as_case, and_true, is_true, like_function, like_upper, like_as_instr, length_as_like,
        length_of_trailing, difference, number_written, number_added, plus_zero, never_null,
        case_of_text, day_by_julian, day_by_epoch, day_in_pieces, day_before, years_apart,
        years_by_substr, month_range, month_like, month_parts, concatenated, concatenated_equal,
        plus_negative, times_turned, count_one, count_null_free, count_case, count_sum,
        average_parts, average_total, max_negated, in_as_count, not_in_as_count, not_in_as_except,
        not_in_as_left_join, in_distinct, in_as_equal, scalar_by_window, max_as_not_exists,
    )
}  # fmt: skip

WHOLE: dict[str, Whole] = {
    rule.__name__: rule
    for rule in (
        filtered_count, case_aggregates, from_itself, as_cte, tables_wrapped, tables_as_ctes,
        renamed, joined_by_comma, on_in_where, using, having_outside, distinct_grouped,
        group_ordinal, order_ordinal, order_negated, order_more, limit_offset, top_by_window,
        top_by_row_number, second_by_offset, top_group_by_having, set_as_in, union_as_or,
        in_as_join, scalar_by_cte, scalar_joined, other_case, formatted, quoted_names, item_named,
        items_turned,
    )
}  # fmt: skip
