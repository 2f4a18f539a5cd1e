"""Ties where a LIMIT cuts: rows with equal sort keys on both sides, of which SQLite takes any."""

from sqlglot import exp

from lm_eval_ext.sql.distill.hints import literal
from lm_eval_ext.sql.distill.query import Query
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner
from lm_eval_ext.sql.parsing import to_sql


def cut_ties(query: Query, runner: Runner) -> int:
    """Returns how many LIMITs of a gold's SELECTs separate rows with equal sort keys.

    Those in correlated subqueries, which do not run alone, are not counted.
    """
    return sum(_cuts_a_tie(scope.select, runner) for scope in query.scopes)


def _cuts_a_tie(select: exp.Select, runner: Runner) -> bool:
    limit, start = select.args.get("limit"), select.args.get("offset")
    if limit is None or select.args.get("order") is None:
        return False
    count = literal(limit.expression)
    skipped = (0,) if start is None else literal(start.expression)
    if count is None or skipped is None:
        return False
    first, size = skipped[0], count[0]
    if not isinstance(first, int) or not isinstance(size, int):
        return False
    keys = _sort_keys(select)
    keys.set("limit", exp.Limit(expression=exp.Literal.number(first + size + 1)))
    try:
        rows = runner.rows(to_sql(keys))
    except NoResultError:
        return False
    return any(0 < end < len(rows) and rows[end - 1] == rows[end] for end in (first, first + size))


def _sort_keys(select: exp.Select) -> exp.Select:
    """A SELECT of the sort keys of all rows, in their order."""
    keys = select.copy()
    terms = keys.args["order"].expressions
    outputs = [column.unalias() for column in keys.selects]
    named = {column.alias.lower(): column.unalias() for column in keys.selects if column.alias}
    for term in terms:
        name = term.this
        if isinstance(name, exp.Column) and not name.table and name.name.lower() in named:
            term.set("this", named[name.name.lower()].copy())
        elif isinstance(name, exp.Literal) and name.is_int and int(name.this) <= len(outputs):
            term.set("this", outputs[int(name.this) - 1].copy())
    shown = [term.this.copy() for term in terms]
    if keys.args.get("distinct") is not None:
        shown += [output.copy() for output in outputs]
    keys.set("expressions", shown)
    keys.set("offset", None)
    return keys
