"""Proofs that no database can tell a near miss from its gold, or that a gold is always empty.

Both queries are simplified by named rules, each of which leaves the result as it is on every
database that keeps the schema's declared keys and NOT NULLs; if they end up the same, they are
equivalent. What is not proven may still be true.

- Results are compared as MAGNIFICo's authors do (``reference`` in
  :mod:`lm_eval_ext.sql.compare`): the order of rows counts, also where no query asks for one.
  So a change that may make SQLite take another plan, and give other rows first, is not taken
  for equivalent (:mod:`.plans`).
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
from typing import TYPE_CHECKING

from lm_eval_ext.sql.equivalence import aggregates, conditions, operands, rows
from lm_eval_ext.sql.equivalence.conditions import never
from lm_eval_ext.sql.mutations import NearMiss
from lm_eval_ext.sql.parsing import UnparsedQuery, parse, to_sql
from lm_eval_ext.sql.schema import Schema

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["RULES", "equivalent", "simplified", "unsatisfiable"]

_SIMPLIFICATIONS = (
    *rows.SIMPLIFICATIONS,
    *aggregates.SIMPLIFICATIONS,
    *conditions.SIMPLIFICATIONS,
    *operands.SIMPLIFICATIONS,
)

RULES = MappingProxyType({rule.name: rule.reason for rule in _SIMPLIFICATIONS})
"""The reason of each rule by its name."""

_MOST_STEPS = 200
_KNOWN_FUNCTIONS = frozenset({"stdev", "ifnull", "coalesce", "abs", "round", "upper", "lower"})


def equivalent(gold: str, near_miss: NearMiss, schema: Schema) -> str | None:
    """Returns why no database can tell a near miss from its gold.

    Args:
        gold: The gold query.
        near_miss: One of its :func:`~lm_eval_ext.sql.mutations.near_misses`.
        schema: That of the databases.

    Returns:
        One line for a person, or None if it is not proven.
    """
    one, other = simplified(gold, schema), simplified(near_miss.sql, schema)
    if one is None or other is None:
        return None
    if one[0] == other[0]:
        used = [step for step in (*one[1], *other[1]) if step not in one[1] or step not in other[1]]
        reasons = dict.fromkeys(RULES[name] for name in (used or one[1]))
        return "; ".join(reasons) or "both are the same query"
    if (why := unsatisfiable(gold, schema)) and unsatisfiable(near_miss.sql, schema):
        return f"both are always empty: {why}"
    return None


def unsatisfiable(sql: str, schema: Schema) -> str | None:
    """Returns why a query is empty on every database, None if that is not proven."""
    from sqlglot import exp

    from lm_eval_ext.sql.equivalence.places import is_aggregate

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
def simplified(sql: str, schema: Schema) -> tuple[str, tuple[str, ...]] | None:
    """Returns a query's simplest form and the names of the rules that led there.

    None if it cannot be read or holds what no rule here knows of.
    """
    try:
        tree = parse(sql, schema)
    except UnparsedQuery:
        return None
    if _is_foreign(tree):
        return None
    used: list[str] = []
    for _ in range(_MOST_STEPS):
        name = _step(tree, schema)
        if name is None:
            break
        used.append(name)
    return to_sql(tree), tuple(used)


def _step(tree: "exp.Expr", schema: Schema) -> str | None:
    from sqlglot import exp

    for select in tree.find_all(exp.Select):
        for rule in _SIMPLIFICATIONS:
            if rule.apply(select, schema):
                return rule.name
    return None


def _is_foreign(tree: "exp.Expr") -> bool:
    from sqlglot import exp

    if tree.find(exp.Window, exp.With, exp.Lateral, exp.Pivot) is not None:
        return True
    return any(
        str(call.this).lower() not in _KNOWN_FUNCTIONS for call in tree.find_all(exp.Anonymous)
    )
