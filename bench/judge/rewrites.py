"""Right rewrites of a gold: other ways to say the same, none of which the package's gate has.

Each rule gives a query that has the gold's rows (in the gold's order, where it has one) wherever
the database keeps what the original promises: declared keys, no NULL where a column has none,
values of the column's kind, no tie where a LIMIT cuts. A case counts only if it is right on the
original.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

from sqlglot import exp

from bench.judge.query import (
    Query,
    normal,
)
from bench.judge.rewrite_nodes import (
    and_true,
    as_case,
    average_parts,
    average_total,
    between_split,
    case_aggregates,
    case_of_text,
    concatenated,
    concatenated_equal,
    count_case,
    count_null_free,
    count_one,
    count_sum,
    day_before,
    day_by_epoch,
    day_by_julian,
    day_in_pieces,
    de_morgan,
    difference,
    equal_as_in,
    filtered_count,
    in_as_or,
    is_true,
    length_as_like,
    length_of_trailing,
    like_as_instr,
    like_function,
    like_upper,
    max_negated,
    mirrored,
    month_like,
    month_parts,
    month_range,
    negated,
    never_null,
    number_added,
    number_written,
    or_as_in,
    plus_negative,
    plus_zero,
    times_turned,
    two_sides,
    years_apart,
    years_by_substr,
)
from bench.judge.rewrite_queries import (
    as_cte,
    distinct_grouped,
    formatted,
    from_itself,
    group_ordinal,
    having_outside,
    item_named,
    items_turned,
    joined_by_comma,
    limit_offset,
    on_in_where,
    order_more,
    order_negated,
    order_ordinal,
    other_case,
    quoted_names,
    renamed,
    second_by_offset,
    set_as_in,
    tables_as_ctes,
    tables_wrapped,
    top_by_row_number,
    top_by_window,
    top_group_by_having,
    union_as_or,
    using,
)
from bench.judge.rewrite_subqueries import (
    in_as_count,
    in_as_equal,
    in_as_join,
    in_distinct,
    max_as_not_exists,
    not_in_as_count,
    not_in_as_except,
    not_in_as_left_join,
    scalar_by_cte,
    scalar_by_window,
    scalar_joined,
)
from bench.judge.writing import put
from lm_eval_ext.sql.parsing import to_sql

EACH = 2
"""Most rewrites by one rule of one gold."""


class Rewrite(NamedTuple):
    """A right query."""

    kind: str
    sql: str


Node = Callable[[Query, exp.Expr], str | None]
"""Writes a node in another way; the text stands where the node stood. None: it does not apply."""

Whole = Callable[[Query], str | None]
"""Writes the whole query in another way."""


def rewrites(query: Query) -> list[Rewrite]:
    """Returns a gold's rewrites, the same ones each time; some may not run."""
    chance = random.Random(f"rewrite {query.gold}")
    found: dict[str, Rewrite] = {}
    known = {normal(query.gold), normal(to_sql(query.tree))}
    for kind, rule in NODES.items():
        edits = [
            (place, text)
            for place, node in enumerate(query.nodes)
            if (text := rule(query, node)) is not None
        ]
        for place, text in chance.sample(edits, min(EACH, len(edits))):
            sql = query.edited(put(place, text))
            if normal(sql) not in known:
                found.setdefault(normal(sql), Rewrite(kind, sql))
    for kind, whole in WHOLE.items():
        written = whole(query)
        if written is not None and normal(written) not in known:
            found.setdefault(normal(written), Rewrite(kind, written))
    return list(found.values())


NODES: dict[str, Node] = {
    rule.__name__: rule
    for rule in (
        mirrored, negated, de_morgan, two_sides, between_split, in_as_or, or_as_in, equal_as_in,
        as_case, and_true, is_true, like_function, like_upper, like_as_instr, length_as_like,
        length_of_trailing, difference, number_written, number_added, plus_zero, never_null,
        case_of_text, day_by_julian, day_by_epoch, day_in_pieces, day_before, years_apart,
        years_by_substr, month_range, month_like, month_parts, concatenated, concatenated_equal,
        plus_negative, times_turned, count_one, count_null_free, count_case, count_sum,
        average_parts, average_total, max_negated, in_as_count, not_in_as_count, not_in_as_except,
        not_in_as_left_join, in_distinct, in_as_equal, scalar_by_window, max_as_not_exists,
    )
}  # fmt: skip

WHOLE: dict[str, Whole] = {
    rule.__name__: rule
    for rule in (
        filtered_count, case_aggregates, from_itself, as_cte, tables_wrapped, tables_as_ctes,
        renamed, joined_by_comma, on_in_where, using, having_outside, distinct_grouped,
        group_ordinal, order_ordinal, order_negated, order_more, limit_offset, top_by_window,
        top_by_row_number, second_by_offset, top_group_by_having, set_as_in, union_as_or,
        in_as_join, scalar_by_cte, scalar_joined, other_case, formatted, quoted_names, item_named,
        items_turned,
    )
}  # fmt: skip
