"""Rules for mistakes in conditions, and in aggregates, arithmetic and literals."""

import datetime
import re
from collections.abc import Iterator

from sqlglot import exp

from lm_eval_ext.sql.mutants.base import Change, Rule, changed, joins_tables, wrapped
from lm_eval_ext.sql.parsing import resolve, to_sql
from lm_eval_ext.sql.schema import Schema

CONDITION_KINDS = {
    "comparison_loosened": ">= for >, <= for <",
    "comparison_tightened": "> for >=, < for <=",
    "comparison_reversed": "< for >, > for <, <= for >=, >= for <=",
    "equality_negated": "= for <> and <> for =, but in conditions that join two tables",
    "not_toggled": "NOT left out of, or put before, IN, LIKE, EXISTS, BETWEEN or IS NULL",
    "connector_swapped": "AND for OR and OR for AND",
    "bound_excluded": "BETWEEN without one of its two bounds' own values",
}


def comparison_changed(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """The wrong comparison."""
    table: dict[type[exp.Expr], tuple[tuple[str, type[exp.Expr]], ...]] = {
        exp.GT: (("comparison_loosened", exp.GTE), ("comparison_reversed", exp.LT)),
        exp.LT: (("comparison_loosened", exp.LTE), ("comparison_reversed", exp.GT)),
        exp.GTE: (("comparison_tightened", exp.GT), ("comparison_reversed", exp.LTE)),
        exp.LTE: (("comparison_tightened", exp.LT), ("comparison_reversed", exp.GTE)),
        exp.EQ: (("equality_negated", exp.NEQ),),
        exp.NEQ: (("equality_negated", exp.EQ),),
    }
    if type(node) not in table or joins_tables(node) or _in_join(node):
        return
    for kind, other in table[type(node)]:
        yield changed(kind, node, other(**node.copy().args))


def not_toggled(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """A NOT forgotten or added."""
    if isinstance(node, exp.Not):
        inner = node.this
        if isinstance(inner, exp.In | exp.Exists | exp.Between | exp.Is | exp.Paren):
            yield changed("not_toggled", node, inner.copy())
    elif isinstance(node, exp.Like | exp.Glob):
        new = node.copy()
        new.set("negate", not node.args.get("negate"))
        yield changed("not_toggled", node, new)
    elif isinstance(node, exp.In | exp.Exists | exp.Between | exp.Is) and not isinstance(
        node.parent, exp.Not
    ):
        yield changed("not_toggled", node, exp.Not(this=node.copy()))


def connector_swapped(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """AND for OR, OR for AND, with the brackets that keep the operands together."""
    if not isinstance(node, exp.And | exp.Or) or _in_join(node):
        return
    other = exp.Or if isinstance(node, exp.And) else exp.And
    new: exp.Expr = other(this=wrapped(node.this), expression=wrapped(node.expression))
    if isinstance(node.parent, exp.Connector | exp.Not):
        new = exp.Paren(this=new)
    yield changed("connector_swapped", node, new)


def bound_excluded(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """BETWEEN without a bound's own value."""
    if not isinstance(node, exp.Between):
        return
    low, high = node.args["low"], node.args["high"]
    for lower, upper in ((exp.GT, exp.LTE), (exp.GTE, exp.LT)):
        new = exp.And(
            this=lower(this=node.this.copy(), expression=low.copy()),
            expression=upper(this=node.this.copy(), expression=high.copy()),
        )
        yield changed("bound_excluded", node, exp.Paren(this=new))


def _in_join(node: exp.Expr) -> bool:
    """Whether a node belongs to an ON clause, which near misses leave unchanged."""
    found = node.parent
    while found is not None and not isinstance(found, exp.Query | exp.Join):
        found = found.parent
    return isinstance(found, exp.Join)


CONDITION_RULES: tuple[Rule, ...] = (
    comparison_changed,
    not_toggled,
    connector_swapped,
    bound_excluded,
)


VALUE_KINDS = {
    "min_max_swapped": "MAX for MIN and MIN for MAX",
    "aggregate_swapped": "SUM for AVG, AVG for SUM; and of numbers also MAX for AVG, AVG for MAX, "
    "COUNT for SUM, SUM for COUNT; everywhere in a SELECT",
    "count_distinct_dropped": "COUNT(x) for COUNT(DISTINCT x), likewise in other aggregates",
    "count_distinct_added": "COUNT(DISTINCT x) for COUNT(x)",
    "arithmetic_swapped": "+ for -, - for +",
    "operands_reversed": "b - a for a - b, b || a for a || b",
    "number_raised": "a number in a condition one higher",
    "number_lowered": "a number in a condition one lower",
    "string_changed": "another string in a condition (a date: another day, a time: another second)",
}

_LONGER = "x"
_CLOCK = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d")


def aggregate_swapped(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """The wrong aggregate, wherever a SELECT has it: in its results, HAVING and ORDER BY."""
    if not isinstance(node, exp.Select):
        return
    # By text: a number computed twice is one mistake.
    own = {to_sql(one): one for one in _aggregates(node)}
    for text, aggregate in own.items():
        for kind, other in _other_aggregates(aggregate, schema):
            new = node.copy()
            for same in [one for one in _aggregates(new) if to_sql(one) == text]:
                same.replace(other(this=same.this.copy()))
            swapped = other(this=aggregate.this.copy())
            yield Change(kind, new, f"{text} -> {to_sql(swapped)}")


def _aggregates(select: exp.Select) -> list[exp.Expr]:
    """Returns a SELECT's own aggregates that can be exchanged, without those of its subqueries."""
    return [
        node
        for node in select.find_all(exp.Min, exp.Max, exp.Avg, exp.Sum, exp.Count)
        if node.parent_select is select
        and not node.expressions  # with several arguments, min and max are no aggregates
        and not isinstance(node.this, exp.Star | exp.Literal)
    ]


def _other_aggregates(node: exp.Expr, schema: Schema) -> list[tuple[str, type[exp.Expr]]]:
    value = node.this
    if isinstance(value, exp.Distinct) and len(value.expressions) == 1:
        value = value.expressions[0]
    number = is_number(value, schema)
    if isinstance(node, exp.Min):
        return [("min_max_swapped", exp.Max)]
    if isinstance(node, exp.Max):
        return [("min_max_swapped", exp.Min), *([("aggregate_swapped", exp.Avg)] if number else [])]
    if isinstance(node, exp.Avg):
        return [("aggregate_swapped", exp.Sum), ("aggregate_swapped", exp.Max)]
    if isinstance(node, exp.Sum):
        return [("aggregate_swapped", exp.Avg), ("aggregate_swapped", exp.Count)]
    return [("aggregate_swapped", exp.Sum)] if number else []


def distinct_toggled(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """DISTINCT forgotten or added within an aggregate."""
    if not isinstance(node, exp.AggFunc):
        return
    if isinstance(node.this, exp.Distinct) and len(node.this.expressions) == 1:
        new = node.copy()
        new.set("this", node.this.expressions[0].copy())
        yield changed("count_distinct_dropped", node, new)
    elif isinstance(node, exp.Count) and not isinstance(
        node.this, exp.Star | exp.Literal | exp.Distinct
    ):
        new = node.copy()
        new.set("this", exp.Distinct(expressions=[node.this.copy()]))
        yield changed("count_distinct_added", node, new)


def arithmetic_changed(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """The wrong sign, or the operands exchanged."""
    if isinstance(node, exp.Sub | exp.Add):
        other = exp.Add if isinstance(node, exp.Sub) else exp.Sub
        yield changed("arithmetic_swapped", node, exp.Paren(this=other(**node.copy().args)))
    if isinstance(node, exp.Sub | exp.DPipe):
        new = type(node)(
            **{**node.copy().args, "this": _part(node.expression), "expression": _part(node.this)}
        )
        yield changed("operands_reversed", node, exp.Paren(this=new))


def literal_nudged(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """The wrong value in a condition."""
    if not isinstance(node, exp.Literal) or node.find_ancestor(exp.Where, exp.Having) is None:
        return
    if isinstance(node.parent, exp.Limit | exp.Offset | exp.AggFunc | exp.Ordered | exp.Group):
        return
    if isinstance(node.parent, exp.Select):
        return  # SELECT 1 of an EXISTS
    text = node.this
    number = _number(text)
    if number is not None:
        for kind, value in (("number_raised", number + 1), ("number_lowered", number - 1)):
            if node.is_string or value >= 0:
                yield changed(kind, node, exp.Literal(this=f"{value}", is_string=node.is_string))
            else:
                new = exp.Paren(this=exp.Neg(this=exp.Literal.number(f"{-value}")))
                yield changed(kind, node, new)
    elif node.is_string:
        yield changed("string_changed", node, exp.Literal.string(other_string(text)))


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
        return text[:end] + _LONGER + text[end:]


def is_number(value: exp.Expr, schema: Schema) -> bool:
    """Whether a value is a number by its declaration or computation."""
    if isinstance(value, exp.Column):
        column = resolve(value, schema)
        return column is not None and column.numeric
    if isinstance(value, exp.Paren):
        return is_number(value.this, schema)
    return isinstance(
        value, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Length | exp.Count | exp.Sum | exp.Avg
    )


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        # Numbers that Python writes differently (1e5, nan, 1_0) are left unchanged.
        return number if f"{number}" == text else None
    return None


def _part(operand: exp.Expr) -> exp.Expr:
    copy = operand.copy()
    return exp.Paren(this=copy) if isinstance(copy, exp.Binary) else copy


VALUE_RULES: tuple[Rule, ...] = (
    aggregate_swapped,
    distinct_toggled,
    arithmetic_changed,
    literal_nudged,
)
