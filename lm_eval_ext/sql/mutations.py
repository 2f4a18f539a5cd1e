"""How the rules of :mod:`.mutants` change a node of a query's tree.

Each function yields replacements of a node, none where the mistake cannot be made there, and
leaves the node itself unchanged.
"""

import datetime
import re
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any

from sqlglot import exp

from lm_eval_ext.sql.parsing import (
    columns_read,
    conjuncts,
    find_source,
    groups_are_rows,
    joins_tables,
    rows_differ,
    table_of,
    to_sql,
)
from lm_eval_ext.sql.query_parts import (
    all_of,
    in_brackets,
    is_compared_literal,
    is_in_join,
    plain_number,
    takes_one,
    with_parts,
)
from lm_eval_ext.sql.schema import Column, Schema, fold

_MAX_COLUMNS = 3
"""Other columns that are tried in the place of one."""


def dropped(clause: str, node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if not isinstance(node, exp.Select) or node.args.get(clause) is None:
        return
    if clause == "group":
        # SQLite refuses HAVING, or aggregates in ORDER BY alone, without GROUP BY.
        order = node.args.get("order")
        ranks = order is not None and order.find(exp.AggFunc) is not None
        if node.args.get("having") is not None or (
            ranks and not any(column.find(exp.AggFunc) for column in node.expressions)
        ):
            return
    yield with_parts(node, **{clause: None})


def conjunct_dropped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if not isinstance(node, exp.Where | exp.Having):
        return
    conditions = conjuncts(node.this)
    if len(conditions) == 1:
        return
    for i in range(len(conditions)):
        yield with_parts(node, this=all_of(conditions[:i] + conditions[i + 1 :]))


def order_flipped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Ordered) and not groups_are_rows(node.parent_select, schema):
        descending = not node.args.get("desc")
        # NULL is SQLite's smallest value; sqlglot writes NULLS FIRST or LAST for any other place.
        yield with_parts(node, desc=descending, nulls_first=not descending)


def distinct_dropped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Select) and node.args.get("distinct") and not rows_differ(node, schema):
        yield with_parts(node, distinct=None)


def distinct_added(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    # In a subquery it changes nothing (IN, EXISTS, set operations), or matters only if the first
    # rows of a derived table are equal. Of the first row alone it is no mistake, though SQLite
    # may give another one, as it drops equal results before it sorts.
    if not isinstance(node, exp.Select) or node.parent is not None or node.args.get("distinct"):
        return
    if not takes_one(node) and not rows_differ(node, schema):
        yield with_parts(node, distinct=exp.Distinct())


def bound_moved(
    node_type: type[exp.Expr], by: int, lowest: int, node: exp.Expr, schema: Schema
) -> Iterator[exp.Expr]:
    if isinstance(node, node_type) and isinstance(node.expression, exp.Literal):
        number = str(node.expression.this)
        if number.isdigit() and int(number) + by >= lowest:
            yield with_parts(node, expression=exp.Literal.number(int(number) + by))


def limit_dropped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Query) and node.args.get("limit") is not None:
        yield with_parts(node, limit=None, offset=None)


def set_operation_swapped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.SetOperation):
        for operation in (exp.Except, exp.Intersect, exp.Union):
            if not isinstance(node, operation):
                yield operation(**{**node.copy().args, "distinct": True})


def comparison(
    table: Mapping[Any, type[exp.Expr]], node: exp.Expr, schema: Schema
) -> Iterator[exp.Expr]:
    replacement = table.get(type(node))
    if replacement is not None and not joins_tables(node) and not is_in_join(node):
        yield replacement(**node.copy().args)


def join_loosened(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if joins_tables(node):
        yield exp.GTE(**node.copy().args)


def not_toggled(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    toggled = exp.In | exp.Exists | exp.Between | exp.Is
    if isinstance(node, exp.Not):
        if isinstance(node.this, toggled | exp.Paren):
            yield node.this.copy()
    elif isinstance(node, exp.Like | exp.Glob):
        yield with_parts(node, negate=not node.args.get("negate"))
    elif isinstance(node, toggled) and not isinstance(node.parent, exp.Not):
        yield exp.Not(this=node.copy())


def connector_swapped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Swap AND and OR, with the brackets that keep the operands together."""
    if not isinstance(node, exp.And | exp.Or) or is_in_join(node):
        return
    connector = exp.Or if isinstance(node, exp.And) else exp.And
    inner = exp.Connector | exp.Not
    swapped: exp.Expr = connector(
        this=in_brackets(node.this, inner), expression=in_brackets(node.expression, inner)
    )
    if isinstance(node.parent, inner):
        swapped = exp.Paren(this=swapped)
    yield swapped


def bound_excluded(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Between):
        for lower, upper in ((exp.GT, exp.LTE), (exp.GTE, exp.LT)):
            low = lower(this=node.this.copy(), expression=node.args["low"].copy())
            high = upper(this=node.this.copy(), expression=node.args["high"].copy())
            yield exp.Paren(this=exp.And(this=low, expression=high))


def year_dropped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Turn ``>= '1987-07-01'`` with ``< '1987-09-01'``, BETWEEN or LIKE to months of any year."""
    if isinstance(node, exp.Like) and isinstance(node.expression, exp.Literal):
        if re.match(r"\d{4}-\d\d", node.expression.this):
            yield with_parts(node, expression=exp.Literal.string("____" + node.expression.this[4:]))
    elif isinstance(node, exp.Between):
        months = _months(node.args["low"], node.args["high"], include_end=True)
        if months:
            yield _month_between(node.this, months)
    elif isinstance(node, exp.Where):
        yield from _year_dropped_of_bounds(node)


def _year_dropped_of_bounds(where: exp.Where) -> Iterator[exp.Expr]:
    """Yield a WHERE for each two of its conditions that are the bounds of months of one year."""
    conditions = conjuncts(where.this)
    for low, high in permutations(conditions, 2):
        if not isinstance(low, exp.GTE) or not isinstance(high, exp.LT | exp.LTE):
            continue
        include_end = isinstance(high, exp.LTE)
        months = _months(low.expression, high.expression, include_end=include_end)
        if months and to_sql(low.this) == to_sql(high.this):
            kept = [
                condition
                for condition in conditions
                if condition is not low and condition is not high
            ]
            yield with_parts(where, this=all_of([*kept, _month_between(low.this, months)]))


def _months(low: exp.Expr, high: exp.Expr, *, include_end: bool) -> tuple[str, str] | None:
    """Return the first and last month of a span of whole months in one year."""
    day = datetime.timedelta(days=1)
    try:
        first_day = datetime.date.fromisoformat(low.name)
        end = datetime.date.fromisoformat(high.name)
        if include_end:
            end += day
        last_day = end - day
    except (ValueError, OverflowError):
        return None
    in_one_year = first_day.year == last_day.year and first_day <= last_day
    has_whole_months = first_day.day == end.day == 1
    is_whole_year = (first_day.month, last_day.month) == (1, 12)
    if not in_one_year or not has_whole_months or is_whole_year:
        return None
    return f"{first_day:%m}", f"{last_day:%m}"


def _month_between(date: exp.Expr, months: tuple[str, str]) -> exp.Expr:
    month = exp.Anonymous(this="strftime", expressions=[exp.Literal.string("%m"), date.copy()])
    low, high = map(exp.Literal.string, months)
    return exp.Between(this=month, low=low, high=high)


def column_swapped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Read one of the columns declared next instead, in a result or a condition of WHERE."""
    if not isinstance(node, exp.Column) or not _is_read(node):
        return
    resolved = find_source(node, schema)
    table = None if resolved is None else table_of(resolved[1], schema)
    column = None if table is None else table.column(node.name)
    if resolved is None or table is None or column is None:
        return
    position = table.columns.index(column)
    names = [fold(readable.name) for readable, _ in columns_read(resolved[0], schema)]
    similar = []
    for candidate in [*table.columns[position + 1 :], *table.columns[:position]]:
        is_ambiguous = not node.table and names.count(fold(candidate.name)) != 1
        if _sort_of(candidate) == _sort_of(column) and not is_ambiguous:
            similar.append(candidate)
    # A subquery in FROM keeps the names of its results, by which they are read.
    named = isinstance(node.parent, exp.Select) and node.find_ancestor(exp.From, exp.Join)
    for candidate in similar[:_MAX_COLUMNS]:
        swapped = with_parts(node, this=exp.to_identifier(candidate.name, quoted=True))
        yield exp.alias_(swapped, node.name) if named else swapped


def _sort_of(column: Column) -> tuple[bool, bool]:
    return column.numeric, re.search("DATE|TIME", column.type.upper()) is not None


def _is_read(column: exp.Column) -> bool:
    """Return whether a result or WHERE reads the column's value, not only that there is one."""
    node: exp.Expr = column
    if joins_tables(column.parent) or isinstance(column.parent, exp.Count):
        return False
    while node.parent is not None and not isinstance(node.parent, exp.Select):
        node = node.parent
    if node.parent is None or isinstance(node.parent.parent, exp.Exists):
        return False
    return isinstance(node, exp.Where) or node.arg_key == "expressions"


def sign_swapped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Sub | exp.Add):
        operator = exp.Add if isinstance(node, exp.Sub) else exp.Sub
        yield exp.Paren(this=operator(**node.copy().args))


def operands_reversed(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Sub | exp.DPipe):
        reversed_operands = {
            "this": in_brackets(node.expression, exp.Binary),
            "expression": in_brackets(node.this, exp.Binary),
        }
        yield exp.Paren(this=type(node)(**{**node.args, **reversed_operands}))


def number_moved(by: int, node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    number = plain_number(node.this) if is_compared_literal(node) else None
    if number is None:
        return
    value = number + by
    if node.is_string or value >= 0:
        yield exp.Literal(this=f"{value}", is_string=node.is_string)
    else:
        yield exp.Paren(this=exp.Neg(this=exp.Literal.number(f"{-value}")))


def string_changed(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if is_compared_literal(node) and node.is_string and plain_number(node.this) is None:
        yield exp.Literal.string(other_string(node.this))


_CLOCK = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d")


def other_string(text: str) -> str:
    """Return a similar string: the next day, the next second, or one letter more."""
    if _CLOCK.fullmatch(text):
        moment = datetime.datetime.strptime(text, "%H:%M:%S") + datetime.timedelta(seconds=1)
        return f"{moment:%H:%M:%S}"
    try:
        day = datetime.date.fromisoformat(text[:10])
        return (day + datetime.timedelta(days=1)).isoformat() + text[10:]
    except (ValueError, OverflowError):
        end = len(text.rstrip("%"))
        return text[:end] + "x" + text[end:]
