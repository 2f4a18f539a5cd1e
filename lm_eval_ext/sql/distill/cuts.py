"""Ties where a LIMIT cuts: rows with equal sort keys on both sides, of which SQLite takes any."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lm_eval_ext.sql.distill.hints import literal
from lm_eval_ext.sql.distill.query import Query, Scope
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner
from lm_eval_ext.sql.parsing import to_sql


@dataclass(frozen=True)
class Cut:
    """A LIMIT after ORDER BY.

    Attributes:
        sql: Gives the sort keys, in their order, to one row after the last one that is taken.
        ends: How many rows come before each end of the part that is taken.
    """

    sql: str
    ends: tuple[int, ...]


def cuts_of(query: Query) -> tuple[Cut, ...]:
    """Returns the LIMITs of a gold's SELECTs; those in a correlated subquery do not run alone."""
    return tuple(cut for scope in query.scopes for cut in _cut(scope))


def tied(cuts: Sequence[Cut], runner: Runner) -> frozenset[int]:
    """Returns the positions of those that separate rows with equal sort keys."""
    found = set()
    for number, cut in enumerate(cuts):
        try:
            rows = runner.rows(cut.sql)
        except NoResultError:
            continue
        if any(0 < end < len(rows) and rows[end - 1] == rows[end] for end in cut.ends):
            found.add(number)
    return frozenset(found)


def _cut(scope: Scope) -> Iterator[Cut]:
    select = scope.select
    limit, order = select.args.get("limit"), select.args.get("order")
    if limit is None or order is None:
        return
    start = select.args.get("offset")
    bounds = [literal(limit.expression), (0,) if start is None else literal(start.expression)]
    if any(bound is None or not isinstance(bound[0], int) for bound in bounds):
        return
    count, skipped = (int(str(bound[0])) for bound in bounds if bound is not None)
    keys = select.copy()
    terms = keys.args["order"].expressions
    named = {column.alias.lower(): column.unalias() for column in keys.selects if column.alias}
    for term in terms:
        name = term.this
        if isinstance(name, exp.Column) and not name.table and name.name.lower() in named:
            term.set("this", named[name.name.lower()].copy())
        elif isinstance(name, exp.Literal) and name.is_int and int(name.this) <= len(keys.selects):
            term.set("this", keys.selects[int(name.this) - 1].unalias().copy())
    shown = [term.this.copy() for term in terms]
    if keys.args.get("distinct") is not None:
        shown += [column.unalias().copy() for column in keys.selects]
    keys.set("expressions", shown)
    keys.set("limit", exp.Limit(expression=exp.Literal.number(skipped + count + 1)))
    keys.set("offset", None)
    yield Cut(to_sql(keys), (skipped, skipped + count))
