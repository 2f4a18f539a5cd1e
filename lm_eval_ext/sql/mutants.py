"""Mutants of a gold query: wrong queries that a model could plausibly write.

Each differs from the gold by one mistake. A database on which a mutant has the gold's result does
not distinguish that mistake from the correct answer (MAGNIFICo, appendix B.1; Zhong et al. 2020,
"Semantic Evaluation for Text-to-SQL with Distilled Test Suites").

:data:`RULES` is the table of mistakes. Excluded on purpose: ORDER BY dropped, unless it ranks
groups (the remaining order depends on SQLite's plan), and DISTINCT added before LIMIT 1 (it asks
for the same row).
"""

from collections.abc import Mapping
from functools import partial
from itertools import islice

from sqlglot import exp

from lm_eval_ext.sql import aggregate_mutations, mutations
from lm_eval_ext.sql.parsing import Change, applied, parse, to_sql
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import Mutant

_MAX_OF_A_KIND = 24
"""Mutants of one kind per gold."""


def mutants(sql: str, schema: Schema) -> tuple[Mutant, ...]:
    """Return a gold's mutants, in a fixed order: by rule, then by place in the query.

    Their texts differ from each other and from the gold's. A mutant may still be equivalent to
    the gold or fail when it is run.

    Raises:
        UnparsedQuery: The gold is not a query that can be read.
    """
    tree = parse(sql, schema)
    gold = to_sql(tree)
    mutants_by_text: dict[str, Mutant] = {}
    for rule, change in RULES.items():
        texts = dict.fromkeys(
            text
            for text in applied(tree, change, schema)
            if text not in (sql.strip(), gold, *mutants_by_text)
        )
        for text in islice(texts, _MAX_OF_A_KIND):
            mutants_by_text[text] = Mutant(rule, text)
    return tuple(mutants_by_text.values())


_LOOSER = {exp.GT: exp.GTE, exp.LT: exp.LTE}
_TIGHTER = {exp.GTE: exp.GT, exp.LTE: exp.LT}
_REVERSED = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}
_OTHER_AGGREGATES = {
    exp.Max: (exp.Avg,), exp.Avg: (exp.Sum, exp.Max), exp.Sum: (exp.Avg, exp.Count),
    exp.Count: (exp.Sum,),
}  # fmt: skip
_NEGATED = {exp.EQ: exp.NEQ, exp.NEQ: exp.EQ}

RULES: Mapping[str, Change] = {
    # A SELECT, of a subquery too, without its WHERE
    "where_dropped": partial(mutations.dropped, "where"),
    # A SELECT without its HAVING
    "having_dropped": partial(mutations.dropped, "having"),
    # WHERE or HAVING without one of the conditions that AND connects
    "conjunct_dropped": mutations.conjunct_dropped,
    # A SELECT without its GROUP BY (where SQLite accepts that)
    "group_dropped": partial(mutations.dropped, "group"),
    # ASC for DESC and the other way round, in one sort term
    "order_flipped": mutations.order_flipped,
    # SELECT for SELECT DISTINCT
    "distinct_dropped": mutations.distinct_dropped,
    # SELECT DISTINCT for SELECT, in the outermost query, but for LIMIT 1
    "distinct_added": mutations.distinct_added,
    # LIMIT n + 1 for LIMIT n
    "limit_raised": partial(mutations.bound_moved, exp.Limit, 1, 1),
    # LIMIT n - 1 for LIMIT n, if n is above 1
    "limit_lowered": partial(mutations.bound_moved, exp.Limit, -1, 1),
    # A query without its LIMIT (and OFFSET)
    "limit_dropped": mutations.limit_dropped,
    # OFFSET n + 1 for OFFSET n
    "offset_raised": partial(mutations.bound_moved, exp.Offset, 1, 0),
    # OFFSET n - 1 for OFFSET n, if n is above 0
    "offset_lowered": partial(mutations.bound_moved, exp.Offset, -1, 0),
    # Another one of EXCEPT, INTERSECT and UNION
    "set_operation_swapped": mutations.set_operation_swapped,
    # >= for >, <= for <
    "comparison_loosened": partial(mutations.comparison, _LOOSER),
    # > for >=, < for <=
    "comparison_tightened": partial(mutations.comparison, _TIGHTER),
    # < for >, > for <, <= for >=, >= for <=
    "comparison_reversed": partial(mutations.comparison, _REVERSED),
    # = for <> and <> for =, but in conditions that join two tables
    "equality_negated": partial(mutations.comparison, _NEGATED),
    # >= for = in a condition that joins two tables
    "join_loosened": mutations.join_loosened,
    # NOT left out of, or put before, IN, LIKE, EXISTS, BETWEEN or IS NULL
    "not_toggled": mutations.not_toggled,
    # AND for OR and OR for AND
    "connector_swapped": mutations.connector_swapped,
    # BETWEEN without one of its two bounds' own values
    "bound_excluded": mutations.bound_excluded,
    # Months of any year for months of one year
    "year_dropped": mutations.year_dropped,
    # MAX for MIN and MIN for MAX
    "min_max_swapped": partial(
        aggregate_mutations.aggregate_in_select, {exp.Min: (exp.Max,), exp.Max: (exp.Min,)}
    ),
    # SUM for AVG, AVG for SUM; and of numbers also MAX for AVG, AVG for MAX, COUNT for SUM, SUM for
    # COUNT; everywhere in a SELECT
    "aggregate_swapped": partial(aggregate_mutations.aggregate_in_select, _OTHER_AGGREGATES),
    # SUM for AVG, AVG for SUM, in one place of several
    "aggregate_swapped_once": aggregate_mutations.aggregate_swapped_once,
    # COUNT(x) for COUNT(DISTINCT x), likewise in other aggregates
    "count_distinct_dropped": aggregate_mutations.distinct_in_aggregate_dropped,
    # COUNT(DISTINCT x) for COUNT(x)
    "count_distinct_added": aggregate_mutations.count_distinct_added,
    # COUNT(x) for COUNT(*), of a column that holds NULL
    "count_of_nullable": partial(aggregate_mutations.count_of, aggregate_mutations.nullable),
    # COUNT(DISTINCT x) for COUNT(*), of the first columns
    "count_of_distinct": partial(aggregate_mutations.count_of, aggregate_mutations.countable),
    # SUM(x) or COUNT(DISTINCT x) for COUNT(*) in ORDER BY
    "ranking_count_replaced": aggregate_mutations.ranking_count_replaced,
    # GROUP BY a, b for GROUP BY a
    "group_extended": aggregate_mutations.group_extended,
    # X = (SELECT MAX(x) FROM table) for ORDER BY x DESC LIMIT 1 of joined or chosen rows
    "first_as_extreme": aggregate_mutations.first_as_extreme,
    # SUM(x) / COUNT(x) for AVG(x) of whole numbers, else a CAST to INT
    "average_truncated": partial(aggregate_mutations.average, aggregate_mutations.truncated),
    # AVG(DISTINCT x) for AVG(x)
    "average_of_distinct": partial(aggregate_mutations.average, aggregate_mutations.of_distinct),
    # ROUND(AVG(x)) for AVG(x)
    "average_rounded": partial(aggregate_mutations.average, aggregate_mutations.rounded),
    # The first row's x for MAX(x) or MIN(x) in a compared subquery
    "extreme_as_first": aggregate_mutations.extreme_as_first,
    # MAX(x) for the most frequent x, MIN(x) for the rarest
    "mode_as_extreme": aggregate_mutations.mode_as_extreme,
    # HAVING COUNT(*) > 1 for the most frequent x
    "mode_as_repeated": aggregate_mutations.mode_as_repeated,
    # The first groups, without the ORDER BY that ranks them
    "ranking_dropped": aggregate_mutations.ranking_dropped,
    # In a result or in WHERE, another column of the same table and type
    "column_swapped": mutations.column_swapped,
    # + for -, - for +
    "arithmetic_swapped": mutations.sign_swapped,
    # B - a for a - b, b || a for a || b
    "operands_reversed": mutations.operands_reversed,
    # A number in a condition one higher
    "number_raised": partial(mutations.number_moved, 1),
    # A number in a condition one lower
    "number_lowered": partial(mutations.number_moved, -1),
    # Another string in a condition (a date: another day, a time: another second)
    "string_changed": mutations.string_changed,
}
"""What changes a node, by the kind of mistake; applied to every node of the gold's tree."""
