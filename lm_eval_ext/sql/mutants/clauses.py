"""Rules for mistakes in clauses: WHERE, GROUP BY, HAVING, ORDER BY, LIMIT and others."""

from collections.abc import Iterator

from sqlglot import exp

from lm_eval_ext.sql.mutants.base import Change, Rule, changed
from lm_eval_ext.sql.parsing import conjuncts, to_sql
from lm_eval_ext.sql.schema import Schema

KINDS = {
    "where_dropped": "a SELECT, of a subquery too, without its WHERE",
    "having_dropped": "a SELECT without its HAVING",
    "conjunct_dropped": "WHERE or HAVING without one of the conditions that AND connects",
    "group_dropped": "a SELECT without its GROUP BY (where SQLite takes it so)",
    "order_flipped": "ASC for DESC and the other way round, in one sort term",
    "distinct_dropped": "SELECT for SELECT DISTINCT",
    "distinct_added": "SELECT DISTINCT for SELECT, in the outermost query, but for LIMIT 1",
    "limit_raised": "LIMIT n + 1 for LIMIT n",
    "limit_lowered": "LIMIT n - 1 for LIMIT n, if n is above 1",
    "limit_dropped": "a query without its LIMIT (and OFFSET)",
    "offset_raised": "OFFSET n + 1 for OFFSET n",
    "offset_lowered": "OFFSET n - 1 for OFFSET n, if n is above 0",
    "set_operation_swapped": "another one of EXCEPT, INTERSECT and UNION",
}


def clause_dropped(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """WHERE, HAVING or GROUP BY forgotten."""
    if not isinstance(node, exp.Select):
        return
    for clause in ("where", "having", "group"):
        old = node.args.get(clause)
        if old is None or (clause == "group" and not _can_go_ungrouped(node)):
            continue
        new = node.copy()
        new.set(clause, None)
        yield Change(f"{clause}_dropped", new, f"{to_sql(old).strip()} -> (nothing)")


def conjunct_dropped(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """One of several conditions forgotten."""
    if not isinstance(node, exp.Where | exp.Having):
        return
    parts = conjuncts(node.this)
    if len(parts) == 1:
        return
    for i, part in enumerate(parts):
        rest = [_operand(p) for j, p in enumerate(parts) if j != i]
        new = node.copy()
        condition = rest[0]
        for more in rest[1:]:
            condition = exp.And(this=condition, expression=more)
        new.set("this", condition)
        yield Change("conjunct_dropped", new, f"{to_sql(part)} -> (nothing)")


def order_flipped(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """Sorted the wrong way."""
    if isinstance(node, exp.Ordered):
        new = node.copy()
        descending = not node.args.get("desc")
        new.set("desc", descending)
        # NULL is SQLite's smallest value; sqlglot writes NULLS FIRST or LAST for any other place.
        new.set("nulls_first", not descending)
        yield changed("order_flipped", node, new)


def distinct_toggled(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """DISTINCT forgotten, or added."""
    if not isinstance(node, exp.Select):
        return
    new = node.copy()
    if node.args.get("distinct") is None:
        # In a subquery it changes nothing (IN, EXISTS, set operations), or matters only if the
        # first rows of a derived table are equal. Of the first row alone it is no mistake, though
        # SQLite may give another one, as it drops equal results before it sorts.
        if node.parent is None and not _first_only(node):
            new.set("distinct", exp.Distinct())
            yield Change("distinct_added", new, "SELECT -> SELECT DISTINCT")
    else:
        new.set("distinct", None)
        yield Change("distinct_dropped", new, "SELECT DISTINCT -> SELECT")


def _first_only(select: exp.Select) -> bool:
    limit, offset = select.args.get("limit"), select.args.get("offset")
    return limit is not None and limit.expression.name == "1" and offset is None


def limit_changed(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """One row more or less, or all of them."""
    if isinstance(node, exp.Limit | exp.Offset):
        name = "limit" if isinstance(node, exp.Limit) else "offset"
        number = node.expression
        if not (isinstance(number, exp.Literal) and number.this.isdigit()):
            return
        old = int(number.this)
        lowest = 1 if name == "limit" else 0
        for kind, value in ((f"{name}_raised", old + 1), (f"{name}_lowered", old - 1)):
            if value >= lowest:
                new = node.copy()
                new.set("expression", exp.Literal.number(value))
                yield Change(kind, new, f"{name.upper()} {old} -> {name.upper()} {value}")
    elif isinstance(node, exp.Query) and node.args.get("limit") is not None:
        dropped = node.copy()
        dropped.set("limit", None)
        dropped.set("offset", None)
        old_text = to_sql(node.args["limit"]).strip()
        yield Change("limit_dropped", dropped, f"{old_text} -> (nothing)")


def set_operation_swapped(node: exp.Expr, schema: Schema) -> Iterator[Change]:
    """EXCEPT, INTERSECT, UNION taken for one another."""
    if not isinstance(node, exp.SetOperation):
        return
    for kind in (exp.Except, exp.Intersect, exp.Union):
        if not isinstance(node, kind):
            arguments = {**node.copy().args, "distinct": True}
            old, new = type(node).__name__.upper(), kind.__name__.upper()
            yield Change("set_operation_swapped", kind(**arguments), f"{old} -> {new}")


def _can_go_ungrouped(select: exp.Select) -> bool:
    """Whether SQLite accepts a SELECT without its GROUP BY."""

    def aggregates(part: exp.Expr) -> bool:
        return part.find(exp.AggFunc) is not None

    order = select.args.get("order")
    return select.args.get("having") is None and (
        order is None or not aggregates(order) or any(map(aggregates, select.expressions))
    )


def _operand(part: exp.Expr) -> exp.Expr:
    return exp.Paren(this=part.copy()) if isinstance(part, exp.Or) else part.copy()


RULES: tuple[Rule, ...] = (
    clause_dropped,
    conjunct_dropped,
    order_flipped,
    distinct_toggled,
    limit_changed,
    set_operation_swapped,
)
