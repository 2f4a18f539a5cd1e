"""Right rewrites of a condition, a date, a value or an aggregate."""

import re
from collections.abc import Callable

from sqlglot import exp

from bench.judge.query import (
    Query,
    clause,
    enclosing,
    joins,
    parts,
)
from bench.judge.writing import (
    COMPARED,
    NEGATED,
    TURNED,
    condition,
    counts_rows,
    day,
    days,
    held,
    of,
    quoted,
    sql,
    whole,
)
from lm_eval_ext.sql.parsing import to_sql

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
    if not held(query, node.this, "integer") or not whole(node.expression):
        return None
    zero = type(node)(this=exp.column("x"), expression=exp.Literal.number(0))
    sign = to_sql(zero).split(" ", 1)[1]
    return f"({sql(node.this)} - {sql(node.expression)}) {sign}"


def number_written(query: Query, node: exp.Expr) -> str | None:
    if not whole(node) or not isinstance(node.parent, COMPARED):
        return None
    other = node.parent.this if node is node.parent.expression else node.parent.expression
    return f"{node.this}.0" if held(query, other, "integer", "number") else None


def number_added(query: Query, node: exp.Expr) -> str | None:
    if not whole(node) or not isinstance(node.parent, COMPARED):
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
    return "COUNT(1)" if counts_rows(node) else None


def count_null_free(query: Query, node: exp.Expr) -> str | None:
    select = enclosing(node)
    if not counts_rows(node) or select is None or any(j.side for j in joins(select)):
        return None
    for alias, table in query.tables(select):
        for one in query.facts.columns(table):
            declared = query.facts.schema[one.table][one.column]
            if declared.not_null and query.facts.never_null(one):
                return f"COUNT({alias}.{one.column})"
    return None


def count_case(query: Query, node: exp.Expr) -> str | None:
    return "COUNT(CASE WHEN 1 THEN 'row' END)" if counts_rows(node) else None


def count_sum(query: Query, node: exp.Expr) -> str | None:
    select = enclosing(node)
    grouped = select is not None and select.args.get("group") is not None
    return "SUM(1)" if counts_rows(node) and grouped else None


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
