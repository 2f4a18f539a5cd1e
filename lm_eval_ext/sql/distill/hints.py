"""What can be read off a gold about the values that matter to it."""

from sqlglot import exp

from lm_eval_ext.sql.distill.planning import literal, operator_of
from lm_eval_ext.sql.distill.scopes import Cell, Query, Scope
from lm_eval_ext.sql.distill.values import above, below
from lm_eval_ext.sql.values import Value


def single(query: Query, expression: exp.Expr, scope: Scope) -> Cell | None:
    """Returns the cell of a column, or of an aggregate's only column."""
    node = expression.unnest()
    if isinstance(node, exp.AggFunc) and not isinstance(node, exp.Count):
        node = node.this.unnest() if node.this is not None else node
    return query.cell(node, scope)


def output_of(query: Query, inner: Scope | None) -> Cell | None:
    """Returns the cell of a subquery's first result column."""
    if inner is None or not inner.outputs:
        return None
    return single(query, inner.outputs[0], inner)


def sorted_by(query: Query) -> set[Cell]:
    """Returns the cells that something is sorted by, or an extreme is sought of."""
    found: set[Cell] = set()
    for scope in query.scopes:
        parts = [*scope.orders, *scope.outputs]
        for expression in parts:
            for node in expression.find_all(exp.AggFunc):
                if not isinstance(node, exp.Count):
                    found.update(query.cells(node, scope))
        for expression in scope.orders:
            found.update(query.cells(expression, scope))
    return found


def literals_by_column(query: Query) -> dict[tuple[str, str], list[Value]]:
    """Returns the constants that a gold compares columns with, and their neighbours."""
    found: dict[tuple[str, str], list[Value]] = {}
    for scope in query.scopes:
        for condition in scope.parts:
            for node in condition.walk():
                if operator_of(node) is None:
                    continue
                for one, other in ((node.this, node.expression), (node.expression, node.this)):
                    cell, bound = query.cell(one.unnest(), scope), literal(other)
                    if cell is not None and bound is not None:
                        key = (query.table_of(cell), cell[2])
                        value = bound[0]
                        found.setdefault(key, []).extend((value, above(value), below(value)))
    return found


def takes_the_first(query: Query) -> bool:
    """Whether a comparison takes the first of the rows that a subquery finds."""
    for scope in query.scopes:
        for part in scope.parts:
            for side in (part.this, part.args.get("expression")):
                inner = side.unnest() if operator_of(part) and side is not None else None
                if isinstance(inner, exp.Select) and not inner.find(exp.AggFunc):
                    return True
    return False
