"""Simplifications of what orders, limits and deduplicates a result."""

from sqlglot import exp

from lm_eval_ext.sql.proofs.base import Simplification
from lm_eval_ext.sql.proofs.facts import Facts, Name
from lm_eval_ext.sql.proofs.places import (
    aggregates,
    is_aggregate,
    limit_of,
    only_values_count,
    place_of,
)
from lm_eval_ext.sql.proofs.plans import (
    distinct_keeps_plan,
    is_redundant_for_sqlite,
    order_is_settled,
)
from lm_eval_ext.sql.proofs.reading import at_most_one_row, facts_of, most_rows
from lm_eval_ext.sql.schema import Schema


def single_row(select: exp.Select, schema: Schema) -> bool:
    """ORDER BY, LIMIT and DISTINCT of a query that gives at most one row."""
    if not _has(select, "order", "limit", "distinct") or limit_of(select) in (0, -1):
        return False
    return at_most_one_row(select, schema) and drop(select, "order", "limit", "distinct")


def limit_beyond(select: exp.Select, schema: Schema) -> bool:
    """A LIMIT that is not below the number of rows there can be."""
    limit = limit_of(select)
    if limit is None or limit < 1:
        return False
    most = most_rows(select, schema)
    return most is not None and most <= limit and drop(select, "limit")


def distinct_pair(select: exp.Select, schema: Schema) -> bool:
    """DISTINCT before LIMIT 1 of at most two rows: if it drops one, the other is the same."""
    if select.args.get("distinct") is None or limit_of(select) != 1:
        return False
    most = most_rows(select, schema)
    if most is None or most > 2 or not has_exact_results(select, schema):  # noqa: PLR2004
        return False
    return drop(select, "distinct")


def scalar_limit(select: exp.Select, schema: Schema) -> bool:
    """LIMIT of a subquery of which SQLite takes the first row anyway, or asks for any."""
    del schema
    limit = limit_of(select)
    if limit is None or limit < 1 or place_of(select) not in ("scalar", "exists"):
        return False
    return drop(select, "limit")


def unordered_place(select: exp.Select, schema: Schema) -> bool:
    """ORDER BY and DISTINCT where only the set of values counts."""
    if limit_of(select) is not None or not only_values_count(select):
        return False
    if place_of(select) == "exists" or has_exact_results(select, schema):
        return drop(select, "order", "distinct")
    # Of equal texts DISTINCT keeps the first, and what is around it may tell them apart.
    return select.args.get("distinct") is None and drop(select, "order")


def grouped_place(select: exp.Select, schema: Schema) -> bool:
    """GROUP BY without an aggregate where only the set of values counts."""
    if select.args.get("group") is None or select.args.get("having") is not None:
        return False
    if limit_of(select) is not None or not only_values_count(select) or is_aggregate(select):
        return False
    facts = facts_of(select, schema)
    names = facts.group_names()
    wanted = [facts.name(selected.unalias()) for selected in select.expressions]
    if names is None or not all(name in names for name in wanted):
        return False  # some other column: of which row is SQLite's choice
    if any(facts.column(name).collation != "BINARY" for name in names):
        return False
    return drop(select, "group")


def distinct_rows(select: exp.Select, schema: Schema) -> bool:
    """DISTINCT over rows that differ anyway: a key, or what the rows are grouped by."""
    if select.args.get("distinct") is None:
        return False
    facts = facts_of(select, schema)
    if not facts.sources:
        return False
    given = facts.selected_names()
    if select.args.get("group") is None:
        differ = not is_aggregate(select) and facts.one_row(given)
        if not (
            distinct_keeps_plan(select, facts)
            or is_redundant_for_sqlite(select, facts)
            or order_is_settled(select, facts)
        ):
            return False
    else:
        groups = facts.group_names()
        if groups is None:
            return False
        # A column that is not the same throughout a group is that of some row of it.
        given &= facts.fixed(groups)
        differ = all(facts.column(g).collation == "BINARY" for g in groups) and (
            set(groups) <= facts.fixed(given)
        )
    return differ and drop(select, "distinct")


def distinct_first(select: exp.Select, schema: Schema) -> bool:
    """DISTINCT where only the first row counts, and with it the same row comes first."""
    if select.args.get("distinct") is None:
        return False
    if limit_of(select) != 1 and not (limit_of(select) is None and place_of(select) == "scalar"):
        return False
    order = select.args.get("order")
    if order is None and select.args.get("group") is None:
        facts = facts_of(select, schema)
        return distinct_keeps_plan(select, facts) and drop(select, "distinct")
    terms = {term.this for term in order.expressions} if order is not None else set()
    results = {part for s in select.expressions for part in (s.unalias(), _alias(s))}
    sorted_by = all(not terms.isdisjoint({s.unalias(), _alias(s)}) for s in select.expressions)
    return sorted_by and terms <= results and drop(select, "distinct")


def constant_term(select: exp.Select, schema: Schema) -> bool:
    """A sort term that is the same in all rows, or wherever the terms before it are."""
    order = select.args.get("order")
    if order is None:
        return False
    facts = facts_of(select, schema)
    if not facts.sources or (select.args.get("group") is None and is_aggregate(select)):
        return False
    before: set[Name] = set()
    for term in order.expressions:
        name = facts.name(term.this)
        if counts_one(term.this, facts) or (
            name is not None and name in facts.fixed(before) and facts.is_seen_fixed(name, before)
        ):
            rest = [other for other in order.expressions if other is not term]
            order.set("expressions", rest)
            return bool(rest) or drop(select, "order")
        if name is not None:
            before.add(name)
    return False


def counts_one(value: exp.Expr, facts: Facts) -> bool:
    """Whether a value is COUNT over groups that are single rows."""
    if not isinstance(value, exp.Count) or not aggregates(value):
        return False
    groups = facts.group_names()
    if groups is None or not facts.one_row(groups):
        return False
    counted = value.this.expressions[0] if isinstance(value.this, exp.Distinct) else value.this
    return isinstance(counted, exp.Star) or facts.name(counted) in facts.not_null


def has_exact_results(select: exp.Select, schema: Schema) -> bool:
    """Whether texts that DISTINCT takes for equal are the same byte by byte.

    True where its results are columns without another collation, or where nothing that the
    whole query reads or does has one.
    """
    facts = facts_of(select, schema)
    plain = [s for s in select.expressions if isinstance(s.unalias(), exp.Column | exp.Star)]
    if facts.sources and len(plain) == len(select.expressions):
        # A column that is none of these sources' is that of a row around: always the same.
        return all(facts.column(name).collation == "BINARY" for name in facts.selected_names())
    whole = select.root()
    tables = [schema.get(table.name) for table in whole.find_all(exp.Table)]
    columns = [column for table in tables if table is not None for column in table.columns]
    return whole.find(exp.Collate) is None and all(c.collation == "BINARY" for c in columns)


def _alias(selected: exp.Expr) -> exp.Expr:
    return exp.column(selected.alias) if selected.alias else selected


def _has(select: exp.Select, *clauses: str) -> bool:
    return any(select.args.get(clause) is not None for clause in clauses)


def drop(select: exp.Select, *clauses: str) -> bool:
    """Takes clauses away; says whether there was one."""
    found = _has(select, *clauses)
    for clause in clauses:
        select.set(clause, None)
    return found


SIMPLIFICATIONS = (
    Simplification("single_row", "the query gives at most one row", single_row),
    Simplification("limit_beyond", "there are no more rows than that", limit_beyond),
    Simplification("distinct_pair", "of two equal rows either one is the first", distinct_pair),
    Simplification(
        "scalar_limit", "only the first row of the subquery counts anyway", scalar_limit
    ),
    Simplification(
        "unordered_place", "only the set of the subquery's values counts", unordered_place
    ),
    Simplification("grouped_place", "only the set of the subquery's values counts", grouped_place),
    Simplification("distinct_rows", "the rows differ from each other anyway", distinct_rows),
    Simplification(
        "distinct_first", "only the first row counts, with or without DISTINCT", distinct_first
    ),
    Simplification("constant_term", "all rows tie in that sort term", constant_term),
)
