"""How the rules of :mod:`.mutants` change a node of a query's tree.

Each function yields replacements of a node, none where the mistake cannot be made there, and
leaves the node itself unchanged.
"""

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from sqlglot import exp

from lm_eval_ext.sql.parsing import (
    columns_read,
    conjuncts,
    find_source,
    groups_are_rows,
    has_own_values,
    is_number,
    joins_tables,
    resolve,
    rows_differ,
    sources,
    table_of,
    to_sql,
)
from lm_eval_ext.sql.schema import Column, Schema, Table, fold

_MAX_COLUMNS = 3
"""Other columns that are tried in the place of one."""

_SUMMED = 2
"""Numbers by whose sum groups are ranked."""

_EXTENDED = 2
"""Columns by which groups are split."""


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
    yield _with(node, **{clause: None})


def conjunct_dropped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if not isinstance(node, exp.Where | exp.Having):
        return
    parts = conjuncts(node.this)
    for i in range(len(parts) if len(parts) > 1 else 0):
        yield _with(node, this=_all_of([part for j, part in enumerate(parts) if j != i]))


def order_flipped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Ordered) and not groups_are_rows(node.parent_select, schema):
        descending = not node.args.get("desc")
        # NULL is SQLite's smallest value; sqlglot writes NULLS FIRST or LAST for any other place.
        yield _with(node, desc=descending, nulls_first=not descending)


def distinct_dropped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Select) and node.args.get("distinct") and not rows_differ(node, schema):
        yield _with(node, distinct=None)


def distinct_added(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    # In a subquery it changes nothing (IN, EXISTS, set operations), or matters only if the first
    # rows of a derived table are equal. Of the first row alone it is no mistake, though SQLite
    # may give another one, as it drops equal results before it sorts.
    if not isinstance(node, exp.Select) or node.parent is not None or node.args.get("distinct"):
        return
    if not _takes_one(node) and not rows_differ(node, schema):
        yield _with(node, distinct=exp.Distinct())


def bound_moved(
    kind: type[exp.Expr], by: int, lowest: int, node: exp.Expr, schema: Schema
) -> Iterator[exp.Expr]:
    if isinstance(node, kind) and isinstance(node.expression, exp.Literal):
        number = str(node.expression.this)
        if number.isdigit() and int(number) + by >= lowest:
            yield _with(node, expression=exp.Literal.number(int(number) + by))


def limit_dropped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Query) and node.args.get("limit") is not None:
        yield _with(node, limit=None, offset=None)


def set_operation_swapped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.SetOperation):
        for kind in (exp.Except, exp.Intersect, exp.Union):
            if not isinstance(node, kind):
                yield kind(**{**node.copy().args, "distinct": True})


def comparison(
    table: Mapping[Any, type[exp.Expr]], node: exp.Expr, schema: Schema
) -> Iterator[exp.Expr]:
    replacement = table.get(type(node))
    if replacement is not None and not joins_tables(node) and not _in_join(node):
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
        yield _with(node, negate=not node.args.get("negate"))
    elif isinstance(node, toggled) and not isinstance(node.parent, exp.Not):
        yield exp.Not(this=node.copy())


def connector_swapped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """With the brackets that keep the operands together."""
    if not isinstance(node, exp.And | exp.Or) or _in_join(node):
        return
    connector = exp.Or if isinstance(node, exp.And) else exp.And
    inner = exp.Connector | exp.Not
    swapped: exp.Expr = connector(
        this=_in_brackets(node.this, inner), expression=_in_brackets(node.expression, inner)
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
    """``>= '1987-07-01'`` with ``< '1987-09-01'``, BETWEEN and LIKE become months of any year."""
    if isinstance(node, exp.Like) and isinstance(node.expression, exp.Literal):
        if re.match(r"\d{4}-\d\d", node.expression.this):
            yield _with(node, expression=exp.Literal.string("____" + node.expression.this[4:]))
    elif isinstance(node, exp.Between):
        months = _months(node.args["low"], node.args["high"], include_end=True)
        if months:
            yield _month_between(node.this, months)
    elif isinstance(node, exp.Where):
        parts = conjuncts(node.this)
        for i, low in enumerate(parts):
            for j, high in enumerate(parts):
                if not isinstance(low, exp.GTE) or not isinstance(high, exp.LT | exp.LTE):
                    continue
                end = isinstance(high, exp.LTE)
                months = _months(low.expression, high.expression, include_end=end)
                if months and to_sql(low.this) == to_sql(high.this):
                    rest = [part for k, part in enumerate(parts) if k not in (i, j)]
                    yield _with(node, this=_all_of([*rest, _month_between(low.this, months)]))


def _months(low: exp.Expr, high: exp.Expr, *, include_end: bool) -> tuple[str, str] | None:
    """Returns the first and last month of a span of whole months in one year."""
    day = datetime.timedelta(days=1)
    try:
        first, last = (datetime.date.fromisoformat(end.name) for end in (low, high))
        end = last + day if include_end else last
        last = end - day
    except (ValueError, OverflowError):
        return None
    year = (first.month, last.month) == (1, 12)
    whole = first.day == end.day == 1 and first.year == last.year and first <= last
    return (f"{first:%m}", f"{last:%m}") if whole and not year else None


def _month_between(date: exp.Expr, months: tuple[str, str]) -> exp.Expr:
    month = exp.Anonymous(this="strftime", expressions=[exp.Literal.string("%m"), date.copy()])
    low, high = map(exp.Literal.string, months)
    return exp.Between(this=month, low=low, high=high)


def aggregate_in_select(
    table: Mapping[Any, tuple[type[exp.Expr], ...]], node: exp.Expr, schema: Schema
) -> Iterator[exp.Expr]:
    """Exchanges an aggregate wherever a SELECT has it: a number computed twice is one mistake."""
    if not isinstance(node, exp.Select):
        return
    by_text = {to_sql(call): call for call in _aggregates(node) if type(call) in table}
    for text, aggregate in by_text.items():
        for replacement in table[type(aggregate)]:
            needs_number = type(aggregate) in (exp.Max, exp.Count) and replacement is not exp.Min
            if needs_number and not is_number(aggregate.this, schema):
                continue
            copy = node.copy()
            for call in _aggregates(copy):
                if to_sql(call) == text:
                    call.replace(replacement(this=call.this.copy()))
            yield copy


def aggregate_swapped_once(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Sum | exp.Avg):
        yield (exp.Avg if isinstance(node, exp.Sum) else exp.Sum)(this=node.this.copy())


def distinct_in_aggregate_dropped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    distinct = node.this if isinstance(node, exp.AggFunc) else None
    if isinstance(distinct, exp.Distinct) and len(distinct.expressions) == 1:
        if has_own_values(distinct.expressions[0], schema):
            return
        yield _with(node, this=distinct.expressions[0].copy())


def count_distinct_added(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    plain = exp.Star | exp.Literal | exp.Distinct
    if not isinstance(node, exp.Count) or isinstance(node.this, plain):
        return
    if not has_own_values(node.this, schema):
        yield _with(node, this=exp.Distinct(expressions=[node.this.copy()]))


def count_of(
    argument: Callable[[exp.Select, Schema], Iterator[exp.Expr]], node: exp.Expr, schema: Schema
) -> Iterator[exp.Expr]:
    """Replace all ``COUNT(*)`` of a SELECT."""
    if not isinstance(node, exp.Select) or not _counts(node):
        return
    for counted in islice(argument(node, schema), _MAX_COLUMNS):
        copy = node.copy()
        for count in _counts(copy):
            count.set("this", counted.copy())
        yield copy


def _counts(select: exp.Select) -> list[exp.Expr]:
    return [
        count
        for count in select.find_all(exp.Count)
        if isinstance(count.this, exp.Star) and count.parent_select is select
    ]


def ranking_count_replaced(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Rank groups by the sum of a number, or by different values, instead of by their rows."""
    if not isinstance(node, exp.Count) or not isinstance(node.this, exp.Star):
        return
    select = node.parent_select
    if select is None or not isinstance(node.find_ancestor(exp.Select, exp.Ordered), exp.Ordered):
        return
    grouped = _grouped_names(select)
    numbers = [
        column
        for column, declared in columns_read(select, schema)
        if declared.numeric and declared.repeats and fold(declared.name) not in grouped
    ]
    for column in numbers[:_SUMMED]:
        yield exp.Sum(this=column)
    for distinct in islice(countable(select, schema), 2 * _MAX_COLUMNS):
        yield exp.Count(this=distinct)


def group_extended(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Group by one column more, unless the groups' own table fixes its value."""
    select = node.parent_select if isinstance(node, exp.Group) else None
    if select is None:
        return
    grouped = _grouped_names(select)
    where = select.args.get("where")
    # A condition may leave one value.
    restricted = {fold(column.name) for column in where.find_all(exp.Column)} if where else set()
    candidates = []
    for source in sources(select):
        table = table_of(source, schema)
        if table is None or _has_key_among(table, grouped):
            continue
        alias = source.alias_or_name if select.args.get("joins") else None
        for column in table.columns:
            if fold(column.name) not in grouped | restricted and column.repeats:
                candidates.append(exp.column(column.name, table=alias, quoted=True))
    for candidate in candidates[:_EXTENDED]:
        yield _with(node, expressions=[*(term.copy() for term in node.expressions), candidate])


def _grouped_names(select: exp.Select) -> set[str]:
    group = select.args.get("group")
    if group is None:
        return set()
    return {fold(term.name) for term in group.expressions}


def _has_key_among(table: Table, names: set[str]) -> bool:
    """Whether one of a table's keys consists of some of the names."""
    return any({fold(column) for column in key} <= names for key in table.unique_keys)


def first_as_extreme(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Compare with the extreme of a whole table instead of taking the first of the rows read."""
    if not isinstance(node, exp.Select) or not _takes_one(node) or node.args.get("group"):
        return
    order = node.args.get("order")
    restricted = node.args.get("joins") or node.args.get("where")
    if order is None or not restricted or len(order.expressions) != 1:
        return
    ordered = order.expressions[0]
    if not isinstance(ordered.this, exp.Column):
        return
    resolved = find_source(ordered.this, schema)
    table = None if resolved is None else table_of(resolved[1], schema)
    if table is None or table.column(ordered.this.name) is None:
        return
    kind = exp.Max if ordered.args.get("desc") else exp.Min
    name = exp.column(ordered.this.name, quoted=True)
    extreme = exp.select(kind(this=name)).from_(exp.to_identifier(table.name, quoted=True))
    same = exp.EQ(this=ordered.this.copy(), expression=exp.Subquery(this=extreme))
    copy = node.copy()
    copy.set("order", None)
    copy.set("limit", None)
    yield copy.where(same, copy=False)


def nullable(select: exp.Select, schema: Schema) -> Iterator[exp.Expr]:
    """Columns that hold NULL: of others a database of real values never has one."""
    return (column for column, declared in columns_read(select, schema) if declared.holds_null)


def countable(select: exp.Select, schema: Schema) -> Iterator[exp.Expr]:
    """DISTINCT columns, but for those that have a value of their own in each row."""
    joined = [
        fold(to_sql(column))
        for equality in select.find_all(exp.EQ)
        if joins_tables(equality)
        for column in (equality.this, equality.expression)
    ]
    group = select.args.get("group")
    grouped = set() if group is None else {fold(term.name) for term in group.expressions}
    if not select.args.get("joins") and any(
        fold(declared.name) in grouped and not declared.repeats
        for _, declared in columns_read(select, schema)
    ):
        return  # each row is a group
    for column, declared in columns_read(select, schema):
        if fold(column.name) in grouped:
            continue  # one value in each group
        if declared.repeats or fold(f"{column.table}.{column.name}") in joined:
            yield exp.Distinct(expressions=[column])


def average(
    change: Callable[[exp.Expr, Schema], Iterator[exp.Expr]], node: exp.Expr, schema: Schema
) -> Iterator[exp.Expr]:
    """Of a column, and not of a part of a sum such as ``avg(x) - stdev(x)``."""
    computed = isinstance(node.parent, exp.Binary) and not isinstance(node.parent, exp.Predicate)
    if isinstance(node, exp.Avg) and isinstance(node.this, exp.Column) and not computed:
        yield from change(node, schema)


def truncated(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if _is_sorted(node):
        return
    # A whole number is above an average if and only if it is above the whole part of it.
    operand = node
    while isinstance(operand.parent, exp.Select | exp.Subquery) and operand is not operand.parent:
        operand = operand.parent
    is_right_side = operand.arg_key == "expression"
    unchanged_by = (exp.GT, exp.LTE) if is_right_side else (exp.LT, exp.GTE)
    if isinstance(operand.parent, unchanged_by):
        return
    column = resolve(node.this, schema)
    if column is not None and column.affinity == "INTEGER":
        total, count = exp.Sum(this=node.this.copy()), exp.Count(this=node.this.copy())
        yield exp.Paren(this=exp.Div(this=total, expression=count, typed=True, safe=True))
    else:
        yield exp.Cast(this=node.copy(), to=exp.DataType.build("INT"))


def rounded(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if not _is_sorted(node):
        yield exp.Anonymous(this="ROUND", expressions=[node.copy()])


def of_distinct(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if not has_own_values(node.this, schema):
        yield exp.Avg(this=exp.Distinct(expressions=[node.this.copy()]))


def _is_sorted(node: exp.Expr) -> bool:
    """Whether rows are sorted by a number: other numbers only make ties."""
    return isinstance(node.find_ancestor(exp.Select, exp.Ordered), exp.Ordered)


def extreme_as_first(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if not isinstance(node, exp.Subquery) or not isinstance(node.parent, exp.Predicate):
        return
    select = node.this
    if isinstance(select, exp.Select) and select.args.get("group") is None:
        extreme = select.selects[0].unalias()
        if isinstance(extreme, exp.Max | exp.Min) and not extreme.expressions:
            first = exp.Limit(expression=exp.Literal.number(1))
            yield _with(node, this=_with(select, expressions=[extreme.this.copy()], limit=first))


def mode_as_extreme(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Select) and _ranks_groups(node) and _takes_one(node):
        output = node.selects[0]
        if len(node.selects) == 1 and isinstance(output.unalias(), exp.Column):
            descending = node.args["order"].expressions[0].args.get("desc")
            extreme = (exp.Max if descending else exp.Min)(this=output.unalias().copy())
            named = exp.alias_(extreme, output.alias) if output.alias else extreme
            yield _with(node, expressions=[named], group=None, having=None, order=None, limit=None)


def mode_as_repeated(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if not (isinstance(node, exp.Select) and _ranks_groups(node) and _takes_one(node)):
        return
    if node.args.get("having") is None and node.args["order"].expressions[0].args.get("desc"):
        more = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
        yield _with(node, having=exp.Having(this=more), order=None, limit=None)


def ranking_dropped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Select) and _ranks_groups(node) and not groups_are_rows(node, schema):
        yield _with(node, order=None)


def _ranks_groups(select: exp.Select) -> bool:
    """Whether it takes the first groups by an aggregate."""
    if any(select.args.get(clause) is None for clause in ("group", "order", "limit")):
        return False
    term = select.args["order"].expressions[0].this
    named = {column.alias: column for column in select.selects if column.alias}
    return named.get(term.name, term).find(exp.AggFunc) is not None


def column_swapped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """In a result or a condition of WHERE, the next columns by declaration."""
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
    # What a subquery in FROM gives keeps its name, by which it is read.
    named = isinstance(node.parent, exp.Select) and node.find_ancestor(exp.From, exp.Join)
    for candidate in similar[:_MAX_COLUMNS]:
        swapped = _with(node, this=exp.to_identifier(candidate.name, quoted=True))
        yield exp.alias_(swapped, node.name) if named else swapped


def _sort_of(column: Column) -> tuple[bool, bool]:
    return column.numeric, re.search("DATE|TIME", column.type.upper()) is not None


def _is_read(column: exp.Column) -> bool:
    """Whether a result or WHERE shows the column's value, not only that there is one."""
    node: exp.Expr = column
    if joins_tables(column.parent) or isinstance(column.parent, exp.Count):
        return False
    while node.parent is not None and not isinstance(node.parent, exp.Select):
        node = node.parent
    inside = isinstance(node, exp.Where) or node.arg_key == "expressions"
    return inside and node.parent is not None and not isinstance(node.parent.parent, exp.Exists)


def sign_swapped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Sub | exp.Add):
        operator = exp.Add if isinstance(node, exp.Sub) else exp.Sub
        yield exp.Paren(this=operator(**node.copy().args))


def operands_reversed(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Sub | exp.DPipe):
        first = _in_brackets(node.expression, exp.Binary)
        second = _in_brackets(node.this, exp.Binary)
        yield exp.Paren(this=type(node)(**{**node.args, "this": first, "expression": second}))


def number_moved(by: int, node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    number = _number(node.this) if _is_compared(node) else None
    if number is None:
        return
    value = number + by
    if node.is_string or value >= 0:
        yield exp.Literal(this=f"{value}", is_string=node.is_string)
    else:
        yield exp.Paren(this=exp.Neg(this=exp.Literal.number(f"{-value}")))


def string_changed(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if _is_compared(node) and node.is_string and _number(node.this) is None:
        yield exp.Literal.string(other_string(node.this))


_CLOCK = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d")


def other_string(text: str) -> str:
    """Returns a similar string: the next day, the next second, or one letter more."""
    if _CLOCK.fullmatch(text):
        moment = datetime.datetime.strptime(text, "%H:%M:%S") + datetime.timedelta(seconds=1)
        return f"{moment:%H:%M:%S}"
    try:
        day = datetime.date.fromisoformat(text[:10])
        return (day + datetime.timedelta(days=1)).isoformat() + text[10:]
    except (ValueError, OverflowError):
        end = len(text.rstrip("%"))
        return text[:end] + "x" + text[end:]


def _with(node: exp.Expr, **args: object) -> exp.Expr:
    """Returns a copy with other parts."""
    copy = node.copy()
    for name, value in args.items():
        copy.set(name, value)
    return copy


def _all_of(parts: list[exp.Expr]) -> exp.Expr:
    return exp.and_(*(_in_brackets(part, exp.Or) for part in parts), copy=False)


def _in_brackets(part: exp.Expr, kinds: object) -> exp.Expr:
    copy = part.copy()
    return exp.Paren(this=copy) if isinstance(copy, kinds) else copy  # type: ignore[arg-type]


def _takes_one(select: exp.Expr) -> bool:
    limit, offset = select.args.get("limit"), select.args.get("offset")
    return limit is not None and limit.expression.name == "1" and offset is None


def _in_join(node: exp.Expr) -> bool:
    """Whether a node belongs to an ON clause."""
    return isinstance(node.find_ancestor(exp.Query, exp.Join), exp.Join)


def _aggregates(select: exp.Select) -> list[exp.Expr]:
    """Returns a SELECT's own aggregates that can be exchanged, without those of its subqueries."""
    return [
        node
        for node in select.find_all(exp.Min, exp.Max, exp.Avg, exp.Sum, exp.Count)
        if node.parent_select is select
        and not node.expressions  # with several arguments, min and max are no aggregates
        and not isinstance(node.this, exp.Star | exp.Literal)
    ]


def _is_compared(node: exp.Expr) -> bool:
    """Whether a literal stands in a condition; SELECT 1 of an EXISTS does not."""
    uncompared = exp.Limit | exp.Offset | exp.AggFunc | exp.Ordered | exp.Group | exp.Select
    inside = isinstance(node, exp.Literal) and node.find_ancestor(exp.Where, exp.Having) is not None
    return inside and not isinstance(node.parent, uncompared)


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        # Numbers that Python writes differently (1e5, nan, 1_0) are left unchanged.
        return number if f"{number}" == text else None
    return None
