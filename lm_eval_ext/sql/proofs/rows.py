"""First grade: rules on ORDER BY, LIMIT and DISTINCT, and on aggregates.

Where no ORDER BY settles the order, rows come as SQLite's plan reads them, and DISTINCT, or one
condition less, can make it read another index. By the reference semantics that is another
result, so here a change that may change the plan proves nothing.
"""

from sqlglot import exp

from lm_eval_ext.sql.proofs.facts import Facts, Name, at_most_one_row, facts_of, most_rows
from lm_eval_ext.sql.proofs.places import (
    aggregates,
    is_aggregate,
    limit_of,
    only_values_count,
    own_parts,
    place_of,
    simplification,
)
from lm_eval_ext.sql.schema import Schema

_EXACT = 2**31
"""Averages of equal integers below this bound are exact."""


def order_is_settled(select: exp.Select, facts: Facts) -> bool:
    """Whether neither the order of a SELECT's rows nor the effect of LIMIT depends on the plan."""
    if only_values_count(select) and limit_of(select) is None:
        return True
    order = select.args.get("order")
    if order is None or is_aggregate(select) or select.args.get("group") is not None:
        return False
    names = [facts.name(term.this) for term in order.expressions]
    return facts.one_row(name for name in names if name is not None)


def distinct_keeps_plan(select: exp.Select, facts: Facts) -> bool:
    """Whether SQLite reads rows in the same order with DISTINCT and without.

    With DISTINCT it looks for an index that brings equal results together, but only without an
    ORDER BY, or where that is the whole list of results (``sqlite3WhereBegin``). With an ORDER
    BY, DISTINCT lowers the estimated cost of sorting, which matters only if an index could
    replace the sort. So the plan stays the same if no index holds the columns in question.
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
    """Whether SQLite itself finds that rows differ and ignores DISTINCT: one plan either way.

    That is so for one table with a NOT NULL key that is part of the result
    (``isDistinctRedundant`` in SQLite's where.c).
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


@simplification("the query gives at most one row")
def single_row(select: exp.Select, schema: Schema) -> bool:
    """ORDER BY, LIMIT and DISTINCT of a query that gives at most one row."""
    if not _has(select, "order", "limit", "distinct") or limit_of(select) in (0, -1):
        return False
    return at_most_one_row(select, schema) and drop(select, "order", "limit", "distinct")


@simplification("there are no more rows than that")
def limit_beyond(select: exp.Select, schema: Schema) -> bool:
    """A LIMIT that is not below the number of rows there can be."""
    limit = limit_of(select)
    if limit is None or limit < 1:
        return False
    most = most_rows(select, schema)
    return most is not None and most <= limit and drop(select, "limit")


@simplification("only the first row of the subquery counts anyway")
def scalar_limit(select: exp.Select, schema: Schema) -> bool:
    """LIMIT of a subquery of which only the first row matters, or whether there is one."""
    limit = limit_of(select)
    if limit is None or limit < 1 or place_of(select) not in ("scalar", "exists"):
        return False
    return drop(select, "limit")


@simplification("only the set of the subquery's values counts")
def unordered_place(select: exp.Select, schema: Schema) -> bool:
    """ORDER BY and DISTINCT where only the set of values matters."""
    if limit_of(select) is not None or not only_values_count(select):
        return False
    if place_of(select) == "exists" or has_exact_results(select, schema):
        return drop(select, "order", "distinct")
    # Of texts that its collation takes as equal DISTINCT keeps one, and outside they may differ.
    return select.args.get("distinct") is None and drop(select, "order")


@simplification("the rows differ from each other anyway")
def distinct_rows(select: exp.Select, schema: Schema) -> bool:
    """DISTINCT over rows that differ by a key, or by what they are grouped by."""
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
        # A column that varies within a group is taken from an unspecified row.
        given &= facts.fixed(groups)
        differ = all(facts.column(g).collation == "BINARY" for g in groups) and (
            set(groups) <= facts.fixed(given)
        )
    return differ and drop(select, "distinct")


@simplification("all rows tie in that sort term")
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
    """Whether texts that DISTINCT takes as equal are the same byte by byte.

    True if its results are columns of binary collation, or if the whole query uses no other.
    """
    facts = facts_of(select, schema)
    plain = [s for s in select.expressions if isinstance(s.unalias(), exp.Column | exp.Star)]
    if facts.sources and len(plain) == len(select.expressions):
        # A column of no source here belongs to an outer row: it is constant.
        return all(facts.column(name).collation == "BINARY" for name in facts.selected_names())
    whole = select.root()
    tables = [schema.get(table.name) for table in whole.find_all(exp.Table)]
    columns = [column for table in tables if table is not None for column in table.columns]
    return whole.find(exp.Collate) is None and all(c.collation == "BINARY" for c in columns)


def _has(select: exp.Select, *clauses: str) -> bool:
    return any(select.args.get(clause) is not None for clause in clauses)


def drop(select: exp.Select, *clauses: str) -> bool:
    """Removes clauses; returns whether there was one."""
    found = _has(select, *clauses)
    for clause in clauses:
        select.set(clause, None)
    return found


@simplification("the aggregate's column is a key of the rows")
def distinct_key(select: exp.Select, schema: Schema) -> bool:
    """DISTINCT in COUNT of a column that is a key of the rows."""
    facts = facts_of(select, schema)
    for call in _stable_calls(select, facts, exp.Count):
        argument = _distinct_argument(call)
        name = None if argument is None else facts.name(argument)
        if argument is None or name is None:
            continue
        learnt, facts.not_null = facts.not_null, facts.not_null | {name}  # NULLs do not count
        unique = facts.one_row({name})
        facts.not_null = learnt
        if unique:
            call.set("this", argument)
            return True
    return False


@simplification("the counted column is never NULL")
def count_not_null(select: exp.Select, schema: Schema) -> bool:
    """COUNT of a column that is never NULL counts rows."""
    facts = facts_of(select, schema)
    for call in _stable_calls(select, facts, exp.Count):
        if facts.name(call.this) in facts.not_null:
            call.set("this", exp.Star())
            return True
    return False


@simplification("the aggregate's column is the same in all rows")
def same_extremes(select: exp.Select, schema: Schema) -> bool:
    """MIN of a column that is the same in all rows of a group is its MAX."""
    facts = facts_of(select, schema)
    fixed = _fixed_in_groups(select, facts)
    for call in _stable_calls(select, facts, exp.Min, exp.Avg):
        name = facts.name(call.this) if call.this is not None else None
        if name is None or name not in fixed:
            continue
        if isinstance(call, exp.Min) or (
            isinstance(call, exp.Avg) and _is_result(call, select) and _is_integer(name, facts)
        ):
            call.replace(exp.Max(this=call.this.copy()))
            return True
    return False


def _stable_calls(select: exp.Select, facts: Facts, *kinds: type[exp.Expr]) -> list[exp.Expr]:
    """Returns a SELECT's aggregates of some kinds; none if results depend on the plan."""
    calls = [call for call in _calls(select) if isinstance(call, kinds)]
    return [] if calls and _shows_plan(select, facts) else calls


def _fixed_in_groups(select: exp.Select, facts: Facts) -> set[Name]:
    groups = facts.group_names() if select.args.get("group") is not None else []
    return set() if groups is None else facts.fixed(groups)


def _shows_plan(select: exp.Select, facts: Facts) -> bool:
    """Whether results depend on the order in which SQLite reads a group's rows.

    Plain columns that vary within the group do, and so do the last bits of sums of floats.
    """
    if any(isinstance(call, exp.Sum | exp.Anonymous) for call in _calls(select)):
        return True
    fixed = _fixed_in_groups(select, facts)
    averages = [call for call in _calls(select) if isinstance(call, exp.Avg)]
    if any(facts.name(call.this) not in fixed for call in averages):
        return True
    return not _only_fixed_columns(select, facts, fixed)


def _calls(select: exp.Select) -> list[exp.Expr]:
    return [call for part in own_parts(select) for call in aggregates(part)]


def _distinct_argument(call: exp.Expr) -> exp.Expr | None:
    inner = call.this
    if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        argument: exp.Expr = inner.expressions[0]
        return argument
    return None


def _only_fixed_columns(select: exp.Select, facts: Facts, fixed: set[Name]) -> bool:
    for part in own_parts(select):
        inside = {id(node) for call in aggregates(part) for node in call.walk()}
        for node in part.find_all(exp.Column, exp.Star, exp.Query):
            if id(node) not in inside and facts.name(node) not in fixed:
                return False
    return True


def _is_result(call: exp.Expr, select: exp.Select) -> bool:
    """Whether an aggregate is a result of the whole query as it stands.

    An average is a float: 3.0 equals 3, but 3.0 / 2 differs from 3 / 2, and '3.0' from '3'.
    """
    return call.parent is select and call.arg_key == "expressions" and select.parent is None


def _is_integer(name: Name, facts: Facts) -> bool:
    literal = facts.constants.get(name)
    return (
        literal is not None
        and not literal.is_string
        and literal.this.isdigit()
        and int(literal.this) < _EXACT
        and facts.column(name).numeric
    )


SIMPLIFICATIONS = (
    single_row,
    limit_beyond,
    scalar_limit,
    unordered_place,
    distinct_rows,
    constant_term,
    distinct_key,
    count_not_null,
    same_extremes,
)
