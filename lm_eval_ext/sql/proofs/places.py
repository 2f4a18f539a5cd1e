"""The interface of rules, and the position of a query within a larger one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from lm_eval_ext.sql.schema import Schema

ORDER = "; in what order rows come without ORDER BY both leave open"
TIES = "; which of tied rows comes first both leave open"


@dataclass(frozen=True)
class Simplification:
    """A named rule that simplifies a query without changing its result.

    That holds on every database that satisfies the schema's keys; for rules of the second grade,
    up to the order of rows and the choice among ties that the query does not settle.

    Attributes:
        name: For tests and documentation.
        reason: Why the result is the same, for a reader.
        apply: Changes one SELECT in place, within its tree, and returns whether it did. Each
            application makes the query smaller or brings it closer to a normal form, so that
            repeating it terminates.
    """

    name: str
    reason: str
    apply: Callable[[exp.Select, Schema], bool]


def simplification(reason: str) -> Callable[[Callable[[exp.Select, Schema], bool]], Simplification]:
    """Makes a function the rule of its name."""
    return lambda apply: Simplification(apply.__name__, reason, apply)


Place = Literal["outer", "in", "exists", "set", "scalar", "table", "other"]
"""``outer``: the whole query; ``in``: only the set of values matters; ``exists``: only whether
there is a row; ``set``: operand of EXCEPT, INTERSECT or UNION, which drop duplicates; ``scalar``:
only the first row matters; ``table``: in FROM."""


def place_of(query: exp.Expr) -> Place:
    """Returns where a SELECT or a set operation stands."""
    child, parent, brackets = query, query.parent, 0
    while isinstance(parent, exp.Subquery) and not _has_more(parent):
        child, parent, brackets = parent, parent.parent, brackets + 1
    if parent is None:
        return "outer"
    if isinstance(parent, exp.In):
        # x IN ((SELECT y)) is a list of one value.
        return "in" if child.arg_key == "query" and brackets == 1 else "scalar"
    if isinstance(parent, exp.Exists):
        return "exists"
    if isinstance(parent, exp.SetOperation):
        return "set" if parent.args.get("distinct") else "other"
    if isinstance(parent, exp.Subquery | exp.From | exp.Join):
        return "table"
    return "scalar" if isinstance(child, exp.Subquery) else "other"


def only_values_count(query: exp.Expr) -> bool:
    """Whether neither the order nor the number of equal rows of a query matters."""
    return place_of(query) in ("in", "exists", "set")


def limit_of(query: exp.Expr) -> int | None:
    """Returns the number of a LIMIT, None without one; -1 if nothing can be concluded from it.

    That is so if it is computed, or has an OFFSET.
    """
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if offset is not None:
        return -1
    if limit is None:
        return None
    number = limit.expression
    if isinstance(number, exp.Literal) and not number.is_string and number.this.isdigit():
        return int(number.this)
    return -1


def is_aggregate(select: exp.Select) -> bool:
    """Whether a SELECT computes an aggregate of its own rows, not only in a subquery."""
    return any(aggregates(part) for part in own_parts(select))


def own_parts(select: exp.Select) -> list[exp.Expr]:
    """Returns what a SELECT computes after WHERE: results, HAVING, sort terms."""
    found = list(select.expressions)
    for clause in ("having", "order"):
        if select.args.get(clause) is not None:
            found.append(select.args[clause])
    return found


def aggregates(part: exp.Expr) -> list[exp.Expr]:
    """Returns the aggregates in an expression, without those in its subqueries."""
    found: list[exp.Expr] = []
    for node in part.walk(prune=lambda n: isinstance(n, exp.Query)):
        if is_aggregate_call(node):
            found.append(node)
    return found


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether a node is an aggregate; MIN and MAX of several arguments are not."""
    if isinstance(node, exp.Min | exp.Max):
        return not node.expressions
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in AGGREGATES
    return isinstance(node, exp.AggFunc)


AGGREGATES = frozenset({"stdev", "total", "group_concat", "string_agg", "median"})


def _has_more(subquery: exp.Subquery) -> bool:
    """Whether a bracketed query has an alias or clauses outside its brackets."""
    return any(subquery.args.get(key) for key in ("alias", "limit", "offset", "order", "joins"))
