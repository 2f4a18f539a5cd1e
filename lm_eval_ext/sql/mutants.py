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

from lm_eval_ext.sql import mutations as make
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
    for kind, change in RULES.items():
        texts = dict.fromkeys(
            text
            for text in applied(tree, change, schema)
            if text not in (sql.strip(), gold, *mutants_by_text)
        )
        for text in islice(texts, _MAX_OF_A_KIND):
            mutants_by_text[text] = Mutant(kind, text)
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
    "where_dropped": partial(make.dropped, "where"),
    # A SELECT without its HAVING
    "having_dropped": partial(make.dropped, "having"),
    # WHERE or HAVING without one of the conditions that AND connects
    "conjunct_dropped": make.conjunct_dropped,
    # A SELECT without its GROUP BY (where SQLite takes it so)
    "group_dropped": partial(make.dropped, "group"),
    # ASC for DESC and the other way round, in one sort term
    "order_flipped": make.order_flipped,
    # SELECT for SELECT DISTINCT
    "distinct_dropped": make.distinct_dropped,
    # SELECT DISTINCT for SELECT, in the outermost query, but for LIMIT 1
    "distinct_added": make.distinct_added,
    # LIMIT n + 1 for LIMIT n
    "limit_raised": partial(make.bound_moved, exp.Limit, 1, 1),
    # LIMIT n - 1 for LIMIT n, if n is above 1
    "limit_lowered": partial(make.bound_moved, exp.Limit, -1, 1),
    # A query without its LIMIT (and OFFSET)
    "limit_dropped": make.limit_dropped,
    # OFFSET n + 1 for OFFSET n
    "offset_raised": partial(make.bound_moved, exp.Offset, 1, 0),
    # OFFSET n - 1 for OFFSET n, if n is above 0
    "offset_lowered": partial(make.bound_moved, exp.Offset, -1, 0),
    # Another one of EXCEPT, INTERSECT and UNION
    "set_operation_swapped": make.set_operation_swapped,
    # >= for >, <= for <
    "comparison_loosened": partial(make.comparison, _LOOSER),
    # > for >=, < for <=
    "comparison_tightened": partial(make.comparison, _TIGHTER),
    # < for >, > for <, <= for >=, >= for <=
    "comparison_reversed": partial(make.comparison, _REVERSED),
    # = for <> and <> for =, but in conditions that join two tables
    "equality_negated": partial(make.comparison, _NEGATED),
    # >= for = in a condition that joins two tables
    "join_loosened": make.join_loosened,
    # NOT left out of, or put before, IN, LIKE, EXISTS, BETWEEN or IS NULL
    "not_toggled": make.not_toggled,
    # AND for OR and OR for AND
    "connector_swapped": make.connector_swapped,
    # BETWEEN without one of its two bounds' own values
    "bound_excluded": make.bound_excluded,
    # Months of any year for months of one year
    "year_dropped": make.year_dropped,
    # MAX for MIN and MIN for MAX
    "min_max_swapped": partial(
        make.aggregate_in_select, {exp.Min: (exp.Max,), exp.Max: (exp.Min,)}
    ),
    # SUM for AVG, AVG for SUM; and of numbers also MAX for AVG, AVG for MAX, COUNT for SUM, SUM for
    # COUNT; everywhere in a SELECT
    "aggregate_swapped": partial(make.aggregate_in_select, _OTHER_AGGREGATES),
    # SUM for AVG, AVG for SUM, in one place of several
    "aggregate_swapped_once": make.aggregate_swapped_once,
    # COUNT(x) for COUNT(DISTINCT x), likewise in other aggregates
    "count_distinct_dropped": make.distinct_in_aggregate_dropped,
    # COUNT(DISTINCT x) for COUNT(x)
    "count_distinct_added": make.count_distinct_added,
    # COUNT(x) for COUNT(*), of a column that holds NULL
    "count_of_nullable": partial(make.count_of, make.nullable),
    # COUNT(DISTINCT x) for COUNT(*), of the first columns
    "count_of_distinct": partial(make.count_of, make.countable),
    # SUM(x) or COUNT(DISTINCT x) for COUNT(*) in ORDER BY
    "ranking_count_replaced": make.ranking_count_replaced,
    # GROUP BY a, b for GROUP BY a
    "group_extended": make.group_extended,
    # X = (SELECT MAX(x) FROM table) for ORDER BY x DESC LIMIT 1 of joined or chosen rows
    "first_as_extreme": make.first_as_extreme,
    # SUM(x) / COUNT(x) for AVG(x) of whole numbers, else a CAST to INT
    "average_truncated": partial(make.average, make.truncated),
    # AVG(DISTINCT x) for AVG(x)
    "average_of_distinct": partial(make.average, make.of_distinct),
    # ROUND(AVG(x)) for AVG(x)
    "average_rounded": partial(make.average, make.rounded),
    # The first row's x for MAX(x) or MIN(x) in a compared subquery
    "extreme_as_first": make.extreme_as_first,
    # MAX(x) for the most frequent x, MIN(x) for the rarest
    "mode_as_extreme": make.mode_as_extreme,
    # HAVING COUNT(*) > 1 for the most frequent x
    "mode_as_repeated": make.mode_as_repeated,
    # The first groups, without the ORDER BY that ranks them
    "ranking_dropped": make.ranking_dropped,
    # In a result or in WHERE, another column of the same table and type
    "column_swapped": make.column_swapped,
    # + for -, - for +
    "arithmetic_swapped": make.sign_swapped,
    # B - a for a - b, b || a for a || b
    "operands_reversed": make.operands_reversed,
    # A number in a condition one higher
    "number_raised": partial(make.number_moved, 1),
    # A number in a condition one lower
    "number_lowered": partial(make.number_moved, -1),
    # Another string in a condition (a date: another day, a time: another second)
    "string_changed": make.string_changed,
}
"""What changes a node, by the kind of mistake; applied to every node of the gold's tree."""
