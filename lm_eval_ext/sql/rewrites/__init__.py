"""Other ways to write a gold query, each with the gold's result: they must stay right.

The near misses (:mod:`lm_eval_ext.sql.mutants`) ask for rows that tell queries apart. These ask
for the opposite: on whatever rows are added, a right answer that is written otherwise must keep the
gold's result. Each rule is sound under a condition (:data:`CONDITIONS`) on types, keys, NULLs and
uniqueness. What the schema alone does not grant is a promise: the original keeps it, and added
rows must, too (:attr:`.base.Rewrite.needs`).

Results are compared as by default, by ``reference`` semantics, so that the order of rows counts as
well. A rewrite whose rows might come in another order is not given (:mod:`.order`).
"""

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql.parsing import UnparsedQuery, parse, to_sql
from lm_eval_ext.sql.rewrites import (
    conditions,
    dates,
    extremes,
    groups,
    having,
    joins,
    sets,
    subqueries,
)
from lm_eval_ext.sql.rewrites.base import NEEDS, Facts, Need, Rewrite, Rule
from lm_eval_ext.sql.rewrites.order import same_groups, same_order
from lm_eval_ext.sql.schema import Schema

__all__ = [
    "CONDITIONS", "KINDS", "NEEDS", "RULES", "Facts", "Need", "Rewrite", "UnparsedQuery",
    "rewrites",
]  # fmt: skip

_FAMILIES = (dates, conditions, joins, sets, subqueries, groups, having, extremes)

KINDS: Mapping[str, str] = MappingProxyType(
    {kind: text for family in _FAMILIES for kind, text in family.KINDS.items()}
)
"""The rules, with a description each."""

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {kind: text for family in _FAMILIES for kind, text in family.CONDITIONS.items()}
)
"""When each rule is sound."""

RULES: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in family.RULES)
"""Every rule is applied to every node of the gold's tree."""


def rewrites(sql: str, schema: Schema, facts: Facts) -> tuple[Rewrite, ...]:
    """Returns a gold's rewrites, in a fixed order: by rule, then by place in the query.

    Their texts differ from each other and from the gold's. A gold that SQLite refuses has none.

    Raises:
        UnparsedQuery: The gold is not a query that can be read.
    """
    tree = _read(sql, schema)
    whole = to_sql(tree)
    found: dict[str, Rewrite] = {}
    seen = {sql.strip(), whole}
    if facts.plan(whole) is None:
        return ()
    nodes = list(tree.walk())
    for rule in RULES:
        for place, node in enumerate(nodes):
            for change in rule(node, facts):
                new = change.new if place == 0 else _replaced(tree, place, change.new)
                text = to_sql(new)
                if text in seen:
                    continue
                seen.add(text)
                if same_groups(tree, new, facts) and (
                    change.settled or same_order((tree, whole), (new, text), change, facts)
                ):
                    found[text] = Rewrite(change.kind, text, change.text, change.needs)
    return tuple(found.values())


def _replaced(tree: exp.Expr, place: int, new: exp.Expr) -> exp.Expr:
    copy: exp.Expr = tree.copy()
    next(node for number, node in enumerate(copy.walk()) if number == place).replace(new)
    return copy


def _read(sql: str, schema: Schema) -> exp.Expr:
    """The tree, in which a comma between tables is no CROSS JOIN, which SQLite never reorders."""
    tree = parse(sql, schema)
    if "CROSS" not in sql.upper():
        for join in tree.find_all(exp.Join):
            if join.args.get("kind") == "CROSS":
                join.set("kind", None)
    return tree
