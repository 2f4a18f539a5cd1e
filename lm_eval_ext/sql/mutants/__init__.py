"""Near misses of a gold query: what a model could plausibly have written by mistake.

Each differs from the gold in one place. A database that gives one of them the gold's result
cannot tell that mistake from the right answer (MAGNIFICo, appendix B.1; Zhong et al. 2020,
"Semantic Evaluation for Text-to-SQL with Distilled Test Suites").

Not among them, on purpose: ORDER BY dropped (the order that is left is whatever SQLite's plan
happens to give, so that no data can be sure to tell the two apart), changed conditions of
joins, and other columns or tables.
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
"""What the rules do, by the name of the kind."""

RULES: tuple[Rule, ...] = (*clauses.RULES, *expressions.CONDITION_RULES, *expressions.VALUE_RULES)
"""Every rule is asked about every node of the gold's tree."""


def near_misses(sql: str, schema: Schema) -> tuple[NearMiss, ...]:
    """Returns a gold's near misses, in a fixed order: by rule, then by place in the query.

    No two of them have the same text, and none has the gold's. A near miss may still mean the
    same as the gold (see :mod:`lm_eval_ext.sql.proofs`) or fail when it is run.

    Raises:
        UnparsedQuery: The gold is no query that can be read.
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
