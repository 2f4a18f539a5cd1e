"""Right rewrites: what people write for the same question, as a table of rules.

No row of ours may make one of them wrong, so they are the gate that a database passes for a gold.
"""

import datetime
from collections.abc import Callable, Iterator
from functools import lru_cache

from sqlglot import exp

from lm_eval_ext.sql.parsing import conjuncts, resolve, sources, table_of
from lm_eval_ext.sql.schema import Column, Schema

Rule = Callable[[exp.Expr, Schema], Iterator[exp.Expr]]
"""Yields replacements of one node of a gold, which must not itself be changed."""


_OPPOSITE: dict[type[exp.Expr], tuple[type[exp.Expr], int]] = {
    exp.LT: (exp.LTE, -1), exp.LTE: (exp.LT, 1), exp.GT: (exp.GTE, 1), exp.GTE: (exp.GT, -1),
}  # fmt: skip


def whole_steps(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``x < 8`` as ``x <= 7`` for integers and counts, ``d < day`` as ``d <= the day before``."""
    if type(node) not in _OPPOSITE or not isinstance(node.expression, exp.Literal):
        return
    kind, step = _OPPOSITE[type(node)]
    text = str(node.expression.this)
    if node.expression.is_string and (day := _day(text, step)):
        yield kind(this=node.this.copy(), expression=exp.Literal.string(day))
    elif text.isdecimal() and not node.expression.is_string:
        column = _column(node.this, schema)
        if isinstance(node.this, exp.Count) or (column and column.affinity == "INTEGER"):
            number = exp.Literal.number(int(text) + step)
            yield kind(this=node.this.copy(), expression=number)


def date_functions(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """A column that is compared with days as ``date(column)`` and by ``strftime``.

    The years of two dates that are subtracted likewise.
    """
    if isinstance(node, exp.Column) and isinstance(node.parent, (*_OPPOSITE, exp.EQ, exp.Between)):
        others = [n for n in (node.parent or node).find_all(exp.Literal) if n.is_string]
        if others and all(_day(str(n.this), 0) for n in others):
            yield _call("date", node)
            yield _call("strftime", exp.Literal.string("%Y-%m-%d"), node)
    if isinstance(node, exp.Sub) and all(
        isinstance(side, exp.Column) and _is_text(side, schema)
        for side in (node.this, node.expression)
    ):
        sides = (
            exp.cast(_call("strftime", exp.Literal.string("%Y"), side), "INTEGER")
            for side in (node.this, node.expression)
        )
        new = exp.Sub(this=next(sides), expression=next(sides))
        yield exp.Paren(this=new) if isinstance(node.parent, exp.Binary) else new


def span_of_days(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``d >= a AND d < b`` as BETWEEN, and by months where the two are first days of months."""
    if not isinstance(node, exp.Where):
        return
    parts = conjuncts(node.this)
    for low in parts:
        for high in parts:
            if not (isinstance(low, (exp.GTE, exp.GT)) and isinstance(high, (exp.LT, exp.LTE))):
                continue
            if low.this != high.this or not all(
                isinstance(p.expression, exp.Literal) and p.expression.is_string
                for p in (low, high)
            ):
                continue
            first = _day(str(low.expression.this), int(isinstance(low, exp.GT)))
            last = _day(str(high.expression.this), -int(isinstance(high, exp.LT)))
            if first is None or last is None:
                continue
            span = exp.Between(
                this=low.this.copy(),
                low=exp.Literal.string(first),
                high=exp.Literal.string(last),
            )
            months = _months(first, last)
            by_month = exp.In(
                this=_call("strftime", exp.Literal.string("%Y-%m"), low.this),
                expressions=[exp.Literal.string(month) for month in months],
            )
            for new in (span, *([by_month] if months else [])):
                rest = [new, *(p.copy() for p in parts if p is not low and p is not high)]
                yield exp.Where(this=exp.and_(*rest, copy=False))


def text_equality(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``x = 'text'`` as LIKE, and without regard to case or spaces around it."""
    if not (isinstance(node, exp.EQ) and isinstance(node.expression, exp.Literal)):
        return
    text = str(node.expression.this)
    if node.expression.is_string and not set(text) & set("%_"):
        yield exp.Like(this=node.this.copy(), expression=node.expression.copy())
        for name in ("lower", "trim"):
            other = _call(name, node.expression)
            yield exp.EQ(this=_call(name, node.this), expression=other)


def first_row_as_extreme(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``ORDER BY x DESC LIMIT 1`` as ``x = (SELECT MAX(x) ...)``, where nothing is grouped."""
    if not isinstance(node, exp.Select) or not _first_by_one(node):
        return
    term = node.args["order"].expressions[0]
    if not isinstance(term.this, exp.Column) or node.args.get("group"):
        return
    extreme = exp.Max if term.args.get("desc") else exp.Min
    inner, outer = node.copy(), node.copy()
    for part in (inner, outer):
        part.set("order", None)
        part.set("limit", None)
    inner.set("distinct", None)
    inner.set("expressions", [extreme(this=term.this.copy())])
    condition = exp.EQ(this=term.this.copy(), expression=exp.Subquery(this=inner))
    yield outer.where(condition, copy=False)


def extreme_as_first_row(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``(SELECT MAX(x) FROM ...)`` as its first row, ``SELECT name, MAX(x)`` likewise."""
    if not isinstance(node, exp.Select) or node.args.get("group") or node.args.get("order"):
        return
    found = [s for s in node.selects if isinstance(s.unalias(), (exp.Max, exp.Min))]
    others = [s for s in node.selects if s not in found]
    if len(found) != 1 or any(s.find(exp.AggFunc) for s in others) or node.parent is None:
        return
    extreme = found[0].unalias()
    new = node.copy()
    new.set("expressions", [s.copy() for s in others] + [extreme.this.copy()])
    largest = isinstance(extreme, exp.Max)
    order = exp.Ordered(this=extreme.this.copy(), desc=largest, nulls_first=not largest)
    new.set("order", exp.Order(expressions=[order]))
    new.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    yield new.where(exp.Not(this=exp.Is(this=extreme.this.copy(), expression=exp.Null())))


def order_among_equals(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``ORDER BY x LIMIT n`` with a further sort term, which decides among equal rows."""
    if not isinstance(node, exp.Select) or not node.args.get("order") or not node.args.get("limit"):
        return
    group = node.args.get("group")
    if group is not None:
        ties = [group.expressions[0]]
    else:
        ties = [s.unalias() for s in node.selects if isinstance(s.unalias(), exp.Column)][:1]
        first = next(sources(node), None)
        if isinstance(first, exp.Table) and node.args.get("distinct") is None:
            ties.append(exp.column("rowid", table=first.alias_or_name))
    for tie in ties:
        for descending in (False, True):
            new = node.copy()
            term = exp.Ordered(this=tie.copy(), desc=descending, nulls_first=not descending)
            new.args["order"].append("expressions", term)
            yield new


def first_group_as_extreme(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``ORDER BY COUNT(*) DESC LIMIT 1`` of groups as ``HAVING COUNT(*) = (the greatest)``."""
    if not isinstance(node, exp.Select) or not _first_by_one(node) or not node.args.get("group"):
        return
    term = node.args["order"].expressions[0]
    if not isinstance(term.this, exp.AggFunc) or node.args.get("having"):
        return
    inner, outer = node.copy(), node.copy()
    for part in (inner, outer):
        part.set("order", None)
        part.set("limit", None)
    inner.set("expressions", [exp.alias_(term.this.copy(), "n")])
    extreme = (exp.Max if term.args.get("desc") else exp.Min)(this=exp.column("n"))
    greatest = exp.Select(expressions=[extreme]).from_(inner.subquery("counted"))
    yield outer.having(exp.EQ(this=term.this.copy(), expression=exp.Subquery(this=greatest)))


def second_as_offset(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """The last of the first two rows, by a derived table, as ``LIMIT 1 OFFSET 1``."""
    if not isinstance(node, exp.Select) or not _first_by_one(node):
        return
    new = node.copy()
    derived = next(sources(new), None)
    inner = derived.this if isinstance(derived, exp.Subquery) else None
    if isinstance(inner, exp.Select) and inner.args.get("limit"):
        inner.set("offset", exp.Offset(expression=exp.Literal.number(1)))
        inner.set("limit", exp.Limit(expression=exp.Literal.number(1)))
        new.set("order", None)
        new.set("limit", None)
        yield new


def without_nulls(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``ORDER BY x`` of rows whose x is not NULL."""
    if isinstance(node, exp.Select) and (order := node.args.get("order")) is not None:
        for term in order.expressions:
            if _column(term.this, schema) is not None:
                known = exp.Not(this=exp.Is(this=term.this.copy(), expression=exp.Null()))
                yield node.copy().where(known, copy=False)


def mean_as_quotient(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``AVG(x)`` as ``SUM(x) * 1.0 / COUNT(*)``."""
    if isinstance(node, exp.Avg) and not isinstance(node.this, exp.Distinct):
        total = exp.Mul(this=exp.Sum(this=node.this.copy()), expression=exp.Literal.number("1.0"))
        yield exp.Paren(this=exp.Div(this=total, expression=exp.Count(this=exp.Star())))


def group_by_key(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``GROUP BY id`` by the name that is selected, ``GROUP BY name`` of a joined table by its key.

    What people ask for is called by its name, so both are written.
    """
    if not isinstance(node, exp.Select) or (group := node.args.get("group")) is None:
        return
    term = group.expressions[0]
    if len(group.expressions) > 1 or not isinstance(term, exp.Column):
        return
    selected = [s.unalias() for s in node.selects]
    new = [s for s in selected if isinstance(s, exp.Column) and s != term][:2]
    for source in sources(node) if node.args.get("joins") else ():
        table = table_of(source, schema)
        key = next((k[0] for k in table.unique_keys if len(k) == 1), None) if table else None
        if table and key and table.column(term.name) not in (None, table.column(key)):
            new.append(exp.column(key, table=source.alias_or_name))
    for other in new:
        copy = node.copy()
        copy.args["group"].set("expressions", [other.copy()])
        yield copy


def having_as_where(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """A HAVING on columns as WHERE."""
    if not isinstance(node, exp.Select) or (having := node.args.get("having")) is None:
        return
    if having.find(exp.AggFunc, exp.Select) is None:
        new = node.copy()
        new.set("having", None)
        yield new.where(having.this.copy(), copy=False)


def membership(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``IN (SELECT ...)`` as EXISTS, with NOT and without."""
    if not isinstance(node, exp.In) or node.args.get("query") is None:
        return
    query = node.args["query"]
    inner = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(inner, exp.Select) or len(inner.selects) != 1 or not node.this.table:
        # Without a qualifier, the inner tables might have a column of this name.
        return
    plain = not any(inner.args.get(part) for part in ("group", "limit", "having", "order"))
    output = inner.selects[0].unalias()
    if plain and isinstance(output, exp.Column):
        new = inner.copy().where(exp.EQ(this=output.copy(), expression=node.this.copy()))
        new.set("expressions", [exp.Literal.number(1)])
        yield exp.Exists(this=new)


def set_operations(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """EXCEPT as NOT IN, INTERSECT as IN, and back."""
    if isinstance(node, (exp.Except, exp.Intersect)):
        left, right = node.this, node.expression
        if not isinstance(left, exp.Select) or len(left.selects) != 1:
            return
        if left.args.get("group") or left.args.get("limit"):
            return
        inside: exp.Expr = exp.In(
            this=left.selects[0].unalias().copy(), query=exp.Subquery(this=right.copy())
        )
        condition = exp.Not(this=inside) if isinstance(node, exp.Except) else inside
        for distinct in (None, exp.Distinct()):
            new = left.copy().where(condition.copy())
            new.set("distinct", distinct)
            yield new
    elif isinstance(node, exp.Select) and (where := node.args.get("where")) is not None:
        for part in conjuncts(where.this):
            negated = isinstance(part, exp.Not)
            inside = part.this if negated else part
            if not isinstance(inside, exp.In) or inside.args.get("query") is None:
                continue
            if [s.unalias() for s in node.selects] != [inside.this] or node.args.get("order"):
                continue
            rest = [p.copy() for p in conjuncts(where.this) if p is not part]
            left = node.copy()
            left.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
            query = inside.args["query"]
            right = (query.this if isinstance(query, exp.Subquery) else query).copy()
            if right.args.get("order") or right.args.get("limit"):
                continue
            kind = exp.Except if negated else exp.Intersect
            yield kind(this=left, expression=right, distinct=True)


RULES: tuple[Rule, ...] = (
    whole_steps, date_functions, span_of_days, text_equality,
    first_row_as_extreme, first_group_as_extreme, second_as_offset, extreme_as_first_row,
    having_as_where, without_nulls, mean_as_quotient, group_by_key, membership,
    set_operations,
)  # fmt: skip
"""What people write for the same question, and what no row of ours may make wrong."""

OF_GROUPS = (first_group_as_extreme, second_as_offset, order_among_equals)
"""Those that are tried after :func:`group_by_key` as well."""


def _first_by_one(select: exp.Select) -> bool:
    order, limit = select.args.get("order"), select.args.get("limit")
    return (
        order is not None and limit is not None and len(order.expressions) == 1
        and limit.expression.name == "1" and select.args.get("offset") is None
    )  # fmt: skip


def _column(node: exp.Expr, schema: Schema) -> Column | None:
    return resolve(node, schema) if isinstance(node, exp.Column) else None


def _is_text(node: exp.Expr, schema: Schema) -> bool:
    column = _column(node, schema)
    return column is not None and (column.affinity == "TEXT" or "DATE" in column.type.upper())


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


@lru_cache(maxsize=1024)
def _day(text: str, step: int) -> str | None:
    """A day some days after another, in ISO's format; None if the text is none."""
    try:
        day = datetime.datetime.strptime(text, "%Y-%m-%d").date()
        return (day + datetime.timedelta(days=step)).isoformat()
    except (ValueError, OverflowError):
        return None


def _months(first: str, last: str) -> list[str]:
    """The months from one day to another, if whole and at most twelve."""
    day, end = map(datetime.date.fromisoformat, (first, last))
    if day.day != 1 or (end + datetime.timedelta(days=1)).day != 1:
        return []
    count = 12 * (end.year - day.year) + end.month - day.month + 1
    if not 0 < count <= 12:  # noqa: PLR2004
        return []
    year, month = day.year, day.month - 1
    return [f"{year + (month + i) // 12:04}-{(month + i) % 12 + 1:02}" for i in range(count)]
