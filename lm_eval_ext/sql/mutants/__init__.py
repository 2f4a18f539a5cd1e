"""Near misses of a gold query: wrong queries that a model could plausibly write.

Each differs from the gold in one place. A database on which one of them has the gold's result
does not distinguish that mistake from the correct answer (MAGNIFICo, appendix B.1; Zhong et al.
2020, "Semantic Evaluation for Text-to-SQL with Distilled Test Suites").

Excluded on purpose: ORDER BY dropped (the remaining order depends on SQLite's plan, so that no
data distinguishes the two reliably), DISTINCT added before LIMIT 1 (it asks for the same row),
changed conditions of joins, and other columns or tables.
"""

from collections.abc import Mapping
from types import MappingProxyType

from lm_eval_ext.sql.mutants import clauses, expressions
from lm_eval_ext.sql.mutants.base import Rule
from lm_eval_ext.sql.parsing import UnparsedQuery, parse, to_sql
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import NearMiss
from lm_eval_ext.text import one_line

__all__ = ["KINDS", "RULES", "NearMiss", "UnparsedQuery", "near_misses"]

KINDS: Mapping[str, str] = MappingProxyType(
    {**clauses.KINDS, **expressions.CONDITION_KINDS, **expressions.VALUE_KINDS}
)
"""The kinds of mistakes, with a description each."""

RULES: tuple[Rule, ...] = (*clauses.RULES, *expressions.CONDITION_RULES, *expressions.VALUE_RULES)
"""Every rule is applied to every node of the gold's tree."""


def near_misses(sql: str, schema: Schema) -> tuple[NearMiss, ...]:
    """Returns a gold's near misses, in a fixed order: by rule, then by place in the query.

    Their texts differ from each other and from the gold's. A near miss may still be equivalent to
    the gold (see :mod:`lm_eval_ext.sql.proofs`) or fail when it is run.

    Raises:
        UnparsedQuery: The gold is not a query that can be read.
    """
    tree = parse(sql, schema)
    found: dict[str, NearMiss] = {}
    seen = {sql.strip(), to_sql(tree)}
    for rule in RULES:
        for place, node in enumerate(tree.walk()):
            for change in rule(node, schema):
                if place == 0:
                    mutant = change.new
                else:
                    mutant = tree.copy()
                    next(n for i, n in enumerate(mutant.walk()) if i == place).replace(change.new)
                text = to_sql(mutant)
                if text not in seen:
                    seen.add(text)
                    found[text] = NearMiss(change.kind, text, one_line(change.text, limit=200))
    return tuple(found.values())
