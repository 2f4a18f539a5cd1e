"""Proofs that a near miss has its gold's result on every database, or that a gold is always empty.

Both queries are simplified by named rules, each of which keeps the result on every database that
satisfies the schema's declared keys and NOT NULLs; if the two end up the same, they are
equivalent. What is not proven may still be true.

- In the first grade results are compared as MAGNIFICo's authors do (``reference`` in
  :mod:`lm_eval_ext.sql.compare`), by which the order of rows matters even without ORDER BY. So
  a change that may make SQLite choose another plan is not accepted (:mod:`.rows`).
- In the second grade (:data:`OPEN_RULES`) two queries are the same if they differ only in what
  both leave open: the order of rows without ORDER BY, and which of tied rows comes first. SQLite
  may give them different results, but neither is the more correct one (:mod:`.left_open`).
- In the third grade the near miss has the gold's result wherever that is not empty
  (:func:`.left_open.differ_where_empty`). That holds in one direction only.
- Columns of a primary key hold no NULL, unless the original file has one
  (:attr:`lm_eval_ext.sql.schema.Column.not_null`); other keys may, and rows with NULL in such a
  key need not differ.
- Nothing is proven of queries with window functions, common table expressions, outer joins or
  functions that are not listed here.

docs/sql.md lists how many of the published golds need each rule. ``contradiction`` serves none of
them: it explains golds of a user's own that can have no rows.
"""

from functools import lru_cache
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql.mutants import Mutant
from lm_eval_ext.sql.parsing import UnparsedQuery, parse, to_sql
from lm_eval_ext.sql.proofs import conditions, left_open, rows
from lm_eval_ext.sql.proofs.places import Simplification, is_aggregate
from lm_eval_ext.sql.schema import Schema

__all__ = ["OPEN_RULES", "RULES", "WHERE_EMPTY", "equivalent", "simplified", "unsatisfiable"]

WHERE_EMPTY = left_open.WHERE_EMPTY
_SIMPLIFICATIONS = (*rows.SIMPLIFICATIONS, *conditions.SIMPLIFICATIONS)
_ALL_SIMPLIFICATIONS = (*_SIMPLIFICATIONS, *left_open.SIMPLIFICATIONS)

RULES = MappingProxyType({rule.name: rule.reason for rule in _ALL_SIMPLIFICATIONS})
"""The reason of each rule, by its name."""

OPEN_RULES = frozenset(rule.name for rule in left_open.SIMPLIFICATIONS)
"""Names of the rules of the second grade."""

_MOST_STEPS = 200
_KNOWN_FUNCTIONS = frozenset({"stdev", "ifnull", "coalesce", "abs", "round", "upper", "lower"})


def equivalent(
    gold: str, near_miss: Mutant, schema: Schema, *, first_grade_only: bool = False
) -> str | None:
    """Returns why a near miss has, or may have, its gold's result on every database.

    Args:
        gold: The gold query.
        near_miss: One of its :func:`~lm_eval_ext.sql.mutants.mutants`.
        schema: That of the databases.
        first_grade_only: Whether only equality by the ``reference`` semantics counts.

    Returns:
        One line, or None if it is not proven.
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
    return WHERE_EMPTY if left_open.differ_where_empty(*trees, schema) else None


def _same(gold: str, other: str, schema: Schema, *, open_too: bool = False) -> str | None:
    """Returns why two queries are the same by the rules of one grade or of two."""
    one = simplified(gold, schema, open_too=open_too)
    two = simplified(other, schema, open_too=open_too)
    if one is None or two is None or one[0] != two[0]:
        return None
    used = [step for step in (*one[1], *two[1]) if step not in one[1] or step not in two[1]]
    # Rules of the second grade are named even if both queries use them: the proof needs them.
    used += [step for step in one[1] if step in OPEN_RULES]
    reasons = dict.fromkeys(RULES[name] for name in (used or one[1]))
    return "; ".join(reasons) or "both are the same query"


def unsatisfiable(sql: str, schema: Schema) -> str | None:
    """Returns why a query has no rows on any database, None if that is not proven."""
    found = simplified(sql, schema)
    if found is None or "contradiction" not in found[1]:
        return None
    tree = parse(found[0], schema)
    if not isinstance(tree, exp.Select) or not conditions.never(tree):
        return None
    if tree.args.get("group") is None and is_aggregate(tree):
        return None  # a row of NULLs and zeros
    return RULES["contradiction"]


@lru_cache(maxsize=20_000)
def simplified(
    sql: str, schema: Schema, *, open_too: bool = False
) -> tuple[str, tuple[str, ...]] | None:
    """Returns a query's simplest form and the names of the rules that led there.

    ``open_too``: by the rules of the second grade as well. None if the query cannot be read or has
    a part that no rule supports.
    """
    try:
        tree = parse(sql, schema)
    except UnparsedQuery:
        return None
    if _is_unsupported(tree):
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


def _is_unsupported(tree: exp.Expr) -> bool:
    if tree.find(exp.Window, exp.With, exp.Lateral, exp.Pivot) is not None:
        return True
    return any(
        str(call.this).lower() not in _KNOWN_FUNCTIONS for call in tree.find_all(exp.Anonymous)
    )
