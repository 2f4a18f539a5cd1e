"""Parts of a query's tree, as the rules of :mod:`.mutants` look for them and put them together."""

from sqlglot import exp


def with_parts(node: exp.Expr, **args: object) -> exp.Expr:
    """Return a copy of a node in which some parts are replaced."""
    copy = node.copy()
    for name, value in args.items():
        copy.set(name, value)
    return copy


def all_of(conditions: list[exp.Expr]) -> exp.Expr:
    """Return the conjunction of conditions."""
    return exp.and_(*(in_brackets(condition, exp.Or) for condition in conditions), copy=False)


def in_brackets(node: exp.Expr, node_types: object) -> exp.Expr:
    """Return a copy of a node, in parentheses if it is of one of these types."""
    copy = node.copy()
    return exp.Paren(this=copy) if isinstance(copy, node_types) else copy  # type: ignore[arg-type]


def takes_one(select: exp.Expr) -> bool:
    """Return whether a query has LIMIT 1 and no OFFSET."""
    limit = select.args.get("limit")
    offset = select.args.get("offset")
    return limit is not None and limit.expression.name == "1" and offset is None


def is_in_join(node: exp.Expr) -> bool:
    """Return whether a node belongs to an ON clause."""
    return isinstance(node.find_ancestor(exp.Query, exp.Join), exp.Join)


def own_aggregates(select: exp.Select) -> list[exp.Expr]:
    """Return a SELECT's aggregates that can be exchanged, without those of its subqueries."""
    aggregates: list[exp.Expr] = []
    for node in select.find_all(exp.Min, exp.Max, exp.Avg, exp.Sum, exp.Count):
        # With several arguments, min and max are no aggregates.
        is_aggregate = node.parent_select is select and not node.expressions
        if is_aggregate and not isinstance(node.this, exp.Star | exp.Literal):
            aggregates.append(node)
    return aggregates


def is_compared_literal(node: exp.Expr) -> bool:
    """Return whether a literal stands in a condition; SELECT 1 of an EXISTS does not."""
    uncompared = exp.Limit | exp.Offset | exp.AggFunc | exp.Ordered | exp.Group | exp.Select
    if not isinstance(node, exp.Literal) or isinstance(node.parent, uncompared):
        return False
    return node.find_ancestor(exp.Where, exp.Having) is not None


def plain_number(text: str) -> int | float | None:
    """Return the number that a literal writes; None if Python would write it differently."""
    for number_type in (int, float):
        try:
            number = number_type(text)
        except ValueError:
            continue
        # Numbers that Python writes differently (1e5, nan, 1_0) are left unchanged.
        return number if f"{number}" == text else None
    return None
