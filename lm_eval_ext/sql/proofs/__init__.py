"""Proofs that no database can tell a near miss from its gold, or that a gold is always empty.

Both queries are simplified by named rules, each of which leaves the result as it is on every
database that keeps the schema's declared keys and NOT NULLs; if they end up the same, they are
equivalent. What is not proven may still be true.

- In the first grade results are compared as MAGNIFICo's authors do (``reference`` in
  :mod:`lm_eval_ext.sql.compare`): the order of rows counts, also where no query asks for one.
  So a change that may make SQLite take another plan, and give other rows first, is not taken
  for equivalent (:mod:`.plans`).
- In the second grade (:data:`OPEN_RULES`) two queries are the same if they differ only in what
  both leave open: the order of rows without ORDER BY, and which of tied rows comes first. SQLite
  may give them different results, but neither is more right than the other
  (:mod:`.left_open`, :mod:`.subqueries`).
- In the third the near miss has the gold's result wherever the gold has one
  (:mod:`.where_empty`). That goes one way only.
- Columns of a primary key hold no NULL, unless the original file has some
  (:attr:`lm_eval_ext.sql.schema.Column.not_null`); other keys may, and then do not tell rows
  apart.
- Foreign keys are not relied on: SQLite does not enforce them unless told, and Spider's own
  data break many.
- Nothing is proven of queries with window functions, common table expressions, outer joins or
  functions whose workings are not known here.
"""

from functools import lru_cache
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql.mutants import NearMiss
from lm_eval_ext.sql.parsing import UnparsedQuery, parse, to_sql
from lm_eval_ext.sql.proofs import (
    aggregates,
    conditions,
    left_open,
    operands,
    rows,
    subqueries,
    where_empty,
)
from lm_eval_ext.sql.proofs.base import Simplification
from lm_eval_ext.sql.proofs.conditions import never
from lm_eval_ext.sql.schema import Schema

__all__ = ["OPEN_RULES", "RULES", "equivalent", "simplified", "unsatisfiable"]

_SIMPLIFICATIONS = (
    *rows.SIMPLIFICATIONS,
    *aggregates.SIMPLIFICATIONS,
    *conditions.SIMPLIFICATIONS,
    *operands.SIMPLIFICATIONS,
)

_OPEN_SIMPLIFICATIONS = (*left_open.SIMPLIFICATIONS, *subqueries.SIMPLIFICATIONS)
_ALL_SIMPLIFICATIONS = (*_SIMPLIFICATIONS, *_OPEN_SIMPLIFICATIONS)

RULES = MappingProxyType({rule.name: rule.reason for rule in _ALL_SIMPLIFICATIONS})
"""The reason of each rule by its name, of the first grade and of the second."""

OPEN_RULES = frozenset(rule.name for rule in _OPEN_SIMPLIFICATIONS)
"""Names of the rules of the second grade: sound up to what both queries leave open."""

_MOST_STEPS = 200
_KNOWN_FUNCTIONS = frozenset({"stdev", "ifnull", "coalesce", "abs", "round", "upper", "lower"})


def equivalent(
    gold: str, near_miss: NearMiss, schema: Schema, *, first_grade_only: bool = False
) -> str | None:
    """Returns why no database can tell a near miss from its gold, or should.

    Args:
        gold: The gold query.
        near_miss: One of its :func:`~lm_eval_ext.sql.mutants.near_misses`.
        schema: That of the databases.
        first_grade_only: Whether only what gives the same by the ``reference`` semantics counts.

    Returns:
        One line for a person, or None if it is not proven.
    """
    other = near_miss.sql
    if simplified(gold, schema) is None or simplified(other, schema) is None:
        return None
    if (reason := _same(gold, other, schema)) is not None:
        return reason
    if (why := unsatisfiable(gold, schema)) and unsatisfiable(other, schema):
        return f"both are always empty: {why}"
    if first_grade_only:
        return None
    if (reason := _same(gold, other, schema, open_too=True)) is not None:
        return reason
    trees = parse(gold, schema), parse(other, schema)
    return where_empty.REASON if where_empty.differ_where_empty(*trees, schema) else None


def _same(gold: str, other: str, schema: Schema, *, open_too: bool = False) -> str | None:
    """Returns why two queries are the same by the rules of one grade or of two."""
    one = simplified(gold, schema, open_too=open_too)
    two = simplified(other, schema, open_too=open_too)
    if one is None or two is None or one[0] != two[0]:
        return None
    used = [step for step in (*one[1], *two[1]) if step not in one[1] or step not in two[1]]
    # A rule of the second grade is named even if both use it: the proof rests on it.
    used += [step for step in one[1] if step in OPEN_RULES]
    reasons = dict.fromkeys(RULES[name] for name in (used or one[1]))
    return "; ".join(reasons) or "both are the same query"


def unsatisfiable(sql: str, schema: Schema) -> str | None:
    """Returns why a query is empty on every database, None if that is not proven."""
    from lm_eval_ext.sql.proofs.places import is_aggregate

    found = simplified(sql, schema)
    if found is None or "contradiction" not in found[1]:
        return None
    tree = parse(found[0], schema)
    if not isinstance(tree, exp.Select) or not never(tree):
        return None
    if tree.args.get("group") is None and is_aggregate(tree):
        return None  # a row of NULLs and zeros
    return RULES["contradiction"]


@lru_cache(maxsize=20_000)
def simplified(
    sql: str, schema: Schema, *, open_too: bool = False
) -> tuple[str, tuple[str, ...]] | None:
    """Returns a query's simplest form and the names of the rules that led there.

    Args:
        sql: The query.
        schema: That of the databases.
        open_too: Whether rules of the second grade are used, too.

    Returns:
        None if it cannot be read or holds what no rule here knows of.
    """
    try:
        tree = parse(sql, schema)
    except UnparsedQuery:
        return None
    if _is_foreign(tree):
        return None
    rules = _ALL_SIMPLIFICATIONS if open_too else _SIMPLIFICATIONS
    used: list[str] = []
    for _ in range(_MOST_STEPS):
        name = _step(tree, schema, rules)
        if name is None:
            break
        used.append(name)
    return to_sql(tree), tuple(used)


def _step(tree: exp.Expr, schema: Schema, rules: tuple[Simplification, ...]) -> str | None:
    for select in tree.find_all(exp.Select):
        for rule in rules:
            if rule.apply(select, schema):
                return rule.name
    return None


def _is_foreign(tree: exp.Expr) -> bool:
    if tree.find(exp.Window, exp.With, exp.Lateral, exp.Pivot) is not None:
        return True
    return any(
        str(call.this).lower() not in _KNOWN_FUNCTIONS for call in tree.find_all(exp.Anonymous)
    )
