"""Simplifications that are sound up to what the query itself leaves open.

That is the order of rows where no ORDER BY gives one, which of several tied rows comes first,
and which row of a group a plain column is taken from. Each rule leaves the results that a query
*may* give as they are; it may change the plan, and so which of them SQLite does give. Choosing
among the same results inside a larger query leaves that one with the same results, too.
"""

from sqlglot import exp

from lm_eval_ext.sql.proofs.base import ORDER, TIES, Simplification
from lm_eval_ext.sql.proofs.facts import Facts
from lm_eval_ext.sql.proofs.places import is_aggregate, limit_of, place_of
from lm_eval_ext.sql.proofs.reading import facts_of
from lm_eval_ext.sql.proofs.rows import drop
from lm_eval_ext.sql.proofs.subqueries import passed_on_by
from lm_eval_ext.sql.schema import Schema


def open_distinct_rows(select: exp.Select, schema: Schema) -> bool:
    """DISTINCT over rows that differ anyway: a key, or what they are grouped by."""
    if select.args.get("distinct") is None:
        return False
    facts = facts_of(select, schema)
    if not facts.sources:
        return False
    # Plain columns of a group are all of one of its rows, so a key of the rows tells groups apart.
    plain = select.args.get("group") is not None or not is_aggregate(select)
    differ = plain and facts.one_row(facts.selected_names())
    return (differ or _shows_groups(select, facts)) and drop(select, "distinct")


def open_distinct_first(select: exp.Select, schema: Schema) -> bool:
    """DISTINCT where only the first row counts, and equal rows have equal sort terms.

    SQLite drops duplicates before it sorts: of two equal rows with different sort terms the one
    that it reads first stays, and that need not be the one that sorting would put first.
    """
    if select.args.get("distinct") is None or not _first_row_counts(select):
        return False
    order = select.args.get("order")
    terms = [term.this for term in order.expressions] if order is not None else []
    facts = facts_of(select, schema)
    return all(_is_shown(term, facts) for term in terms) and drop(select, "distinct")


def _first_row_counts(select: exp.Select) -> bool:
    limit = limit_of(select)
    if limit is not None:
        return limit == 1
    if place_of(select) == "scalar":
        return True
    outer = passed_on_by(select)
    return outer is not None and limit_of(outer) == 1 and not outer.args.get("order")


def _is_shown(term: exp.Expr, facts: Facts) -> bool:
    """Whether rows of the same results have the same sort term."""
    if isinstance(term, exp.Literal):
        return True  # the number of a result, or a constant
    if isinstance(term, exp.Column) and not term.table and facts.hides(term.name):
        return True  # a result by its alias
    if _is_result(term, facts):
        return True
    given, name = facts.selected_names(), facts.name(term)
    if name is None or name in given:
        return name is not None
    if facts.select.args.get("group") is not None:
        groups = facts.group_names()
        given &= set() if groups is None else facts.fixed(groups)
        if groups is None or name not in facts.fixed(groups):
            return False
    return name in facts.fixed(given)


def _shows_groups(select: exp.Select, facts: Facts) -> bool:
    """Whether the results hold all terms of GROUP BY."""
    group = select.args.get("group")
    terms = group.expressions if group is not None else []
    return bool(terms) and all(_is_result(term, facts) for term in terms)


def _is_result(term: exp.Expr, facts: Facts) -> bool:
    """Whether an expression is a result as it stands, and none of its names is an alias, too."""
    names = [node for node in term.find_all(exp.Column) if not node.table]
    if term.find(exp.Query) is not None or any(facts.hides(node.name) for node in names):
        return False
    return any(selected.unalias() == term for selected in facts.select.expressions)


SIMPLIFICATIONS = (
    Simplification(
        "open_distinct_rows",
        "the rows differ from each other anyway" + ORDER,
        open_distinct_rows,
    ),
    Simplification("open_distinct_first", "only the first row counts" + TIES, open_distinct_first),
)
