"""Mutants of a gold query: wrong queries that a model could plausibly write.

Each differs from the gold by one mistake. A database on which a mutant has the gold's result does
not distinguish that mistake from the correct answer (MAGNIFICo, appendix B.1; Zhong et al. 2020,
"Semantic Evaluation for Text-to-SQL with Distilled Test Suites").

:data:`RULES` is the table of mistakes. Excluded on purpose: ORDER BY dropped, unless it ranks
groups (the remaining order depends on SQLite's plan), and DISTINCT added before LIMIT 1 (it asks
for the same row).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql import mutations as make
from lm_eval_ext.sql.parsing import UnparsedQuery, parse, to_sql
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import Mutant
from lm_eval_ext.text import one_line

__all__ = ["KINDS", "RULES", "Mutant", "Rule", "UnparsedQuery", "mutants"]

_MOST = 24
"""Mutants of one kind per gold."""

Change = Callable[[exp.Expr, Schema], Iterator[exp.Expr]]
"""Yields replacements of a node of the gold's tree; the node itself must not be changed."""


@dataclass(frozen=True)
class Rule:
    """A kind of mistake, its description in one line, and the replacements that make it."""

    kind: str
    text: str
    change: Change


def mutants(sql: str, schema: Schema) -> tuple[Mutant, ...]:
    """Returns a gold's mutants, in a fixed order: by rule, then by place in the query.

    Their texts differ from each other and from the gold's. A mutant may still be equivalent to
    the gold (see :mod:`lm_eval_ext.sql.equivalence`) or fail when it is run.

    Raises:
        UnparsedQuery: The gold is not a query that can be read.
    """
    tree = parse(sql, schema)
    gold = to_sql(tree)
    nodes = list(tree.walk())
    found: dict[str, Mutant] = {}
    seen = {sql.strip(), gold}
    for rule in RULES:
        count = 0
        for place, node in enumerate(nodes):
            for new in rule.change(node, schema):
                if place == 0:
                    changed = new
                else:
                    changed = tree.copy()
                    next(n for i, n in enumerate(changed.walk()) if i == place).replace(new)
                text = to_sql(changed)
                if text not in seen and count < _MOST:
                    count += 1
                    seen.add(text)
                    found[text] = Mutant(rule.kind, text, _difference(gold, text))
    return tuple(found.values())


_CONTEXT = 2
"""Words that a difference shows on either side."""


def _difference(gold: str, mutant: str) -> str:
    """The words that differ, as ``salary > 30000 -> salary >= 30000``."""
    old, new = gold.split(), mutant.split()
    shortest = min(len(old), len(new))
    start = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    left = shortest - start
    end = next((i for i in range(left) if old[-1 - i] != new[-1 - i]), left)
    return " -> ".join(
        one_line(" ".join(words[max(start - _CONTEXT, 0) : len(words) - max(end - _CONTEXT, 0)]))
        for words in (old, new)
    )


_LOOSER = {exp.GT: exp.GTE, exp.LT: exp.LTE}
_TIGHTER = {exp.GTE: exp.GT, exp.LTE: exp.LT}
_REVERSED = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}
_OTHER_AGGREGATES = {
    exp.Max: (exp.Avg,), exp.Avg: (exp.Sum, exp.Max), exp.Sum: (exp.Avg, exp.Count),
    exp.Count: (exp.Sum,),
}  # fmt: skip
_NEGATED = {exp.EQ: exp.NEQ, exp.NEQ: exp.EQ}

RULES: tuple[Rule, ...] = (
    Rule("where_dropped", "a SELECT, of a subquery too, without its WHERE",
         partial(make.dropped, "where")),
    Rule("having_dropped", "a SELECT without its HAVING", partial(make.dropped, "having")),
    Rule("conjunct_dropped", "WHERE or HAVING without one of the conditions that AND connects",
         make.conjunct_dropped),
    Rule("group_dropped", "a SELECT without its GROUP BY (where SQLite takes it so)",
         partial(make.dropped, "group")),
    Rule("order_flipped", "ASC for DESC and the other way round, in one sort term",
         make.order_flipped),
    Rule("distinct_dropped", "SELECT for SELECT DISTINCT", make.distinct_dropped),
    Rule("distinct_added",
         "SELECT DISTINCT for SELECT, in the outermost query, but for LIMIT 1",
         make.distinct_added),
    Rule("limit_raised", "LIMIT n + 1 for LIMIT n", partial(make.bound_moved, exp.Limit, 1, 1)),
    Rule("limit_lowered", "LIMIT n - 1 for LIMIT n, if n is above 1",
         partial(make.bound_moved, exp.Limit, -1, 1)),
    Rule("limit_dropped", "a query without its LIMIT (and OFFSET)", make.limit_dropped),
    Rule("offset_raised", "OFFSET n + 1 for OFFSET n", partial(make.bound_moved, exp.Offset, 1, 0)),
    Rule("offset_lowered", "OFFSET n - 1 for OFFSET n, if n is above 0",
         partial(make.bound_moved, exp.Offset, -1, 0)),
    Rule("set_operation_swapped", "another one of EXCEPT, INTERSECT and UNION",
         make.set_operation_swapped),
    Rule("comparison_loosened", ">= for >, <= for <", partial(make.comparison, _LOOSER)),
    Rule("comparison_tightened", "> for >=, < for <=", partial(make.comparison, _TIGHTER)),
    Rule("comparison_reversed", "< for >, > for <, <= for >=, >= for <=",
         partial(make.comparison, _REVERSED)),
    Rule("equality_negated", "= for <> and <> for =, but in conditions that join two tables",
         partial(make.comparison, _NEGATED)),
    Rule("join_loosened", ">= for = in a condition that joins two tables", make.join_loosened),
    Rule("not_toggled", "NOT left out of, or put before, IN, LIKE, EXISTS, BETWEEN or IS NULL",
         make.not_toggled),
    Rule("connector_swapped", "AND for OR and OR for AND", make.connector_swapped),
    Rule("bound_excluded", "BETWEEN without one of its two bounds' own values",
         make.bound_excluded),
    Rule("year_dropped", "months of any year for months of one year", make.year_dropped),
    Rule("min_max_swapped", "MAX for MIN and MIN for MAX",
         partial(make.aggregate_in_select, {exp.Min: (exp.Max,), exp.Max: (exp.Min,)})),
    Rule("aggregate_swapped",
         "SUM for AVG, AVG for SUM; and of numbers also MAX for AVG, AVG for MAX, COUNT for SUM, "
         "SUM for COUNT; everywhere in a SELECT",
         partial(make.aggregate_in_select, _OTHER_AGGREGATES)),
    Rule("aggregate_swapped_once", "SUM for AVG, AVG for SUM, in one place of several",
         make.aggregate_swapped_once),
    Rule("count_distinct_dropped", "COUNT(x) for COUNT(DISTINCT x), likewise in other aggregates",
         make.distinct_in_aggregate_dropped),
    Rule("count_distinct_added", "COUNT(DISTINCT x) for COUNT(x)", make.count_distinct_added),
    Rule("count_of_nullable", "COUNT(x) for COUNT(*), of a column that holds NULL",
         partial(make.count_of, make.nullable)),
    Rule("count_of_distinct", "COUNT(DISTINCT x) for COUNT(*), of the first columns",
         partial(make.count_of, make.countable)),
    Rule("average_truncated", "SUM(x) / COUNT(x) for AVG(x) of whole numbers, else a CAST to INT",
         partial(make.average, make.truncated)),
    Rule("average_of_distinct", "AVG(DISTINCT x) for AVG(x)",
         partial(make.average, make.of_distinct)),
    Rule("average_rounded", "ROUND(AVG(x)) for AVG(x)", partial(make.average, make.rounded)),
    Rule("extreme_as_first", "the first row's x for MAX(x) or MIN(x) in a compared subquery",
         make.extreme_as_first),
    Rule("mode_as_extreme", "MAX(x) for the most frequent x, MIN(x) for the rarest",
         make.mode_as_extreme),
    Rule("mode_as_repeated", "HAVING COUNT(*) > 1 for the most frequent x", make.mode_as_repeated),
    Rule("ranking_dropped", "the first groups, without the ORDER BY that ranks them",
         make.ranking_dropped),
    Rule("column_swapped", "in a result or in WHERE, another column of the same table and type",
         make.column_swapped),
    Rule("arithmetic_swapped", "+ for -, - for +", make.sign_swapped),
    Rule("operands_reversed", "b - a for a - b, b || a for a || b", make.operands_reversed),
    Rule("number_raised", "a number in a condition one higher", partial(make.number_moved, 1)),
    Rule("number_lowered", "a number in a condition one lower", partial(make.number_moved, -1)),
    Rule("string_changed",
         "another string in a condition (a date: another day, a time: another second)",
         make.string_changed),
)  # fmt: skip
"""Every rule is applied to every node of the gold's tree."""

KINDS: Mapping[str, str] = MappingProxyType({rule.kind: rule.text for rule in RULES})
"""The kinds of mistakes, with a description each."""
