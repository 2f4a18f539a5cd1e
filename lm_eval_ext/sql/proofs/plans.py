"""Whether SQLite's choice of a plan can show in a result.

Where no ORDER BY says otherwise, rows come as the plan gives them, and DISTINCT or one condition
less can make SQLite read another index first. By the reference semantics that is another
result, and a database can show it. So such a change proves nothing.
"""

from sqlglot import exp

from lm_eval_ext.sql.proofs.facts import Facts
from lm_eval_ext.sql.proofs.places import is_aggregate, limit_of, only_values_count


def order_is_settled(select: exp.Select, facts: Facts) -> bool:
    """Whether a SELECT's rows, and which of them a LIMIT takes, do not depend on the plan."""
    if only_values_count(select) and limit_of(select) is None:
        return True
    order = select.args.get("order")
    if order is None or is_aggregate(select) or select.args.get("group") is not None:
        return False
    names = [facts.name(term.this) for term in order.expressions]
    return facts.one_row(name for name in names if name is not None)


def distinct_keeps_plan(select: exp.Select, facts: Facts) -> bool:
    """Whether SQLite reads rows in the same order with DISTINCT and without.

    With DISTINCT it looks for an index that brings equal results together, but only where there
    is no ORDER BY (``sqlite3WhereBegin``), or where that is the whole list of results. Where
    there is one, DISTINCT makes sorting look a little cheaper, which matters only if an index
    could spare it. So nothing changes where no index holds the columns in question.
    """
    order = select.args.get("order")
    results = [facts.name(selected.unalias()) for selected in select.expressions]
    if order is None:
        return len(facts.sources) == 1 and not any(
            column in facts.sources[alias].indexed for alias, column in facts.selected_names()
        )
    terms = [facts.name(term.this) for term in order.expressions]
    columns = [name for name in terms if name is not None]
    if len(columns) != len(terms) or not set(columns).isdisjoint(results):
        return False
    return not any(column in facts.sources[alias].indexed for alias, column in columns)


def is_redundant_for_sqlite(select: exp.Select, facts: Facts) -> bool:
    """Whether SQLite itself sees that rows differ, and passes over a DISTINCT.

    That is so for one table with a key of which it refuses NULLs, all in the result
    (``isDistinctRedundant`` in its where.c). Then there is one plan with and without.
    """
    given = facts.selected_names()
    if len(facts.sources) != 1:
        return False
    ((alias, source),) = facts.sources.items()
    return any(
        bool(key.columns)
        and all((alias, c) in given and source.columns[c].refuses_null for c in key.columns)
        for key in source.keys
    )
