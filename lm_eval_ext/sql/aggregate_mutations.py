"""How the rules of :mod:`.mutants` change aggregates, groups, and rankings.

The functions have the contract of :mod:`.mutations`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from sqlglot import exp

from lm_eval_ext.sql.parsing import (
    columns_read,
    find_source,
    groups_are_rows,
    has_own_values,
    is_number,
    joins_tables,
    resolve,
    sources,
    table_of,
    to_sql,
)
from lm_eval_ext.sql.query_parts import (
    own_aggregates,
    takes_one,
    with_parts,
)
from lm_eval_ext.sql.schema import Schema, fold

_MAX_COLUMNS = 3
"""Columns that are tried in the place of an argument."""

_SUMMED = 2
"""Numbers of each table by whose sum groups are ranked."""

_EXTENDED = 2
"""Columns by which groups are split."""


def aggregate_in_select(
    table: Mapping[Any, tuple[type[exp.Expr], ...]], node: exp.Expr, schema: Schema
) -> Iterator[exp.Expr]:
    """Exchange an aggregate wherever a SELECT has it: a number computed twice is one mistake."""
    if not isinstance(node, exp.Select):
        return
    by_text = {to_sql(call): call for call in own_aggregates(node) if type(call) in table}
    for text, aggregate in by_text.items():
        for replacement in table[type(aggregate)]:
            needs_number = type(aggregate) in (exp.Max, exp.Count) and replacement is not exp.Min
            if needs_number and not is_number(aggregate.this, schema):
                continue
            copy = node.copy()
            for call in own_aggregates(copy):
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
        yield with_parts(node, this=distinct.expressions[0].copy())


def count_distinct_added(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    plain = exp.Star | exp.Literal | exp.Distinct
    if not isinstance(node, exp.Count) or isinstance(node.this, plain):
        return
    if not has_own_values(node.this, schema):
        yield with_parts(node, this=exp.Distinct(expressions=[node.this.copy()]))


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
    counts: list[exp.Expr] = []
    for count in select.find_all(exp.Count):
        if isinstance(count.this, exp.Star) and count.parent_select is select:
            counts.append(count)
    return counts


def ranking_count_replaced(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Rank groups by the sum of a number, or by different values, instead of by their rows."""
    if not isinstance(node, exp.Count) or not isinstance(node.this, exp.Star):
        return
    select = node.parent_select
    if select is None or not isinstance(node.find_ancestor(exp.Select, exp.Ordered), exp.Ordered):
        return
    grouped = _grouped_names(select)
    summed = Counter[str]()
    for column, declared in columns_read(select, schema):
        is_measure = declared.numeric and declared.repeats and fold(declared.name) not in grouped
        if is_measure and summed[column.table] < _SUMMED:
            summed[column.table] += 1
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
        if table is None or table.has_key_among(grouped):
            continue
        alias = source.alias_or_name if select.args.get("joins") else None
        for column in table.columns:
            if fold(column.name) not in grouped | restricted and column.repeats:
                candidates.append(exp.column(column.name, table=alias, quoted=True))
    for candidate in candidates[:_EXTENDED]:
        yield with_parts(node, expressions=[*(term.copy() for term in node.expressions), candidate])


def _grouped_names(select: exp.Select) -> set[str]:
    group = select.args.get("group")
    if group is None:
        return set()
    return {fold(term.name) for term in group.expressions}


def first_as_extreme(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Compare with the extreme of a whole table instead of taking the first of the rows read."""
    if not isinstance(node, exp.Select) or not takes_one(node) or node.args.get("group"):
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
    extreme_type = exp.Max if ordered.args.get("desc") else exp.Min
    name = exp.column(ordered.this.name, quoted=True)
    extreme = exp.select(extreme_type(this=name)).from_(exp.to_identifier(table.name, quoted=True))
    same = exp.EQ(this=ordered.this.copy(), expression=exp.Subquery(this=extreme))
    copy = node.copy()
    copy.set("order", None)
    copy.set("limit", None)
    yield copy.where(same, copy=False)


def nullable(select: exp.Select, schema: Schema) -> Iterator[exp.Expr]:
    """Yield the columns that hold NULL: in others, a database of real values never has one."""
    return (column for column, declared in columns_read(select, schema) if declared.holds_null)


def countable(select: exp.Select, schema: Schema) -> Iterator[exp.Expr]:
    """Yield columns with DISTINCT, except those that have a value of their own in each row."""
    joined = []
    for equality in select.find_all(exp.EQ):
        if joins_tables(equality):
            for column in (equality.this, equality.expression):
                joined.append(fold(to_sql(column)))
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
    """Change the average of a column, unless it is part of a sum such as ``avg(x) - stdev(x)``."""
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
    """Return whether rows are sorted by the number: rounding it would only make ties."""
    return isinstance(node.find_ancestor(exp.Select, exp.Ordered), exp.Ordered)


def extreme_as_first(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if not isinstance(node, exp.Subquery) or not isinstance(node.parent, exp.Predicate):
        return
    select = node.this
    if isinstance(select, exp.Select) and select.args.get("group") is None:
        extreme = select.selects[0].unalias()
        if isinstance(extreme, exp.Max | exp.Min) and not extreme.expressions:
            one_row = exp.Limit(expression=exp.Literal.number(1))
            yield with_parts(
                node, this=with_parts(select, expressions=[extreme.this.copy()], limit=one_row)
            )


def mode_as_extreme(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Select) and _ranks_groups(node) and takes_one(node):
        output = node.selects[0]
        if len(node.selects) == 1 and isinstance(output.unalias(), exp.Column):
            descending = node.args["order"].expressions[0].args.get("desc")
            extreme = (exp.Max if descending else exp.Min)(this=output.unalias().copy())
            named = exp.alias_(extreme, output.alias) if output.alias else extreme
            yield with_parts(
                node, expressions=[named], group=None, having=None, order=None, limit=None
            )


def mode_as_repeated(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if not (isinstance(node, exp.Select) and _ranks_groups(node) and takes_one(node)):
        return
    if node.args.get("having") is None and node.args["order"].expressions[0].args.get("desc"):
        repeated = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
        yield with_parts(node, having=exp.Having(this=repeated), order=None, limit=None)


def ranking_dropped(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Select) and _ranks_groups(node) and not groups_are_rows(node, schema):
        yield with_parts(node, order=None)


def _ranks_groups(select: exp.Select) -> bool:
    """Return whether a SELECT takes the first groups, ranked by an aggregate."""
    if any(select.args.get(clause) is None for clause in ("group", "order", "limit")):
        return False
    term = select.args["order"].expressions[0].this
    named = {column.alias: column for column in select.selects if column.alias}
    return named.get(term.name, term).find(exp.AggFunc) is not None
