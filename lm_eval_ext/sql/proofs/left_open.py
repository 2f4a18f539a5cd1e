"""Second and third grade: proofs up to what a query leaves open, or up to empty results.

A query leaves open the order of rows where no ORDER BY gives one, which of several tied rows
comes first, and from which row of a group a plain column is taken. Each rule of the second grade
keeps the set of results that a query *may* have; it may change the plan, and so which of them
SQLite gives. Inside a larger query, that keeps the larger query's set as well.

The third grade (:func:`differ_where_empty`) is for near misses that ask less of a row looked up
by its key, by a condition dropped or weakened. Where the gold has a result, that row satisfies
the gold's conditions, so it satisfies the near miss's, and no second row can.
"""

from sqlglot import exp

from lm_eval_ext.sql.parsing import COMPARISONS, parts_of, select_of, sources, to_sql
from lm_eval_ext.sql.proofs.conditions import Bound, bounds, implies
from lm_eval_ext.sql.proofs.facts import Facts, Name, at_most_one_row, facts_of, is_closed
from lm_eval_ext.sql.proofs.places import (
    ORDER,
    TIES,
    is_aggregate,
    limit_of,
    only_values_count,
    place_of,
    simplification,
)
from lm_eval_ext.sql.proofs.rows import counts_one, drop
from lm_eval_ext.sql.schema import Schema

WHERE_EMPTY = (
    "the two differ only where the gold's result is empty, which a populated copy avoids: "
    "the near miss asks less of a row that is found by its key"
)


@simplification("the rows differ from each other anyway" + ORDER)
def open_distinct_rows(select: exp.Select, schema: Schema) -> bool:
    """DISTINCT over rows that differ anyway: a key, or what they are grouped by."""
    if select.args.get("distinct") is None:
        return False
    facts = facts_of(select, schema)
    if not facts.sources:
        return False
    # A group's plain columns all come from one of its rows, so a key of the rows differs.
    plain = select.args.get("group") is not None or not is_aggregate(select)
    differ = plain and facts.one_row(facts.selected_names())
    return (differ or _shows_groups(select, facts)) and drop(select, "distinct")


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


@simplification("any rows of the table will do" + ORDER)
def open_inner_limit(select: exp.Select, schema: Schema) -> bool:
    """LIMIT of an unordered table in FROM that the outer query passes on as it is."""
    outer, limit = passed_on_by(select), limit_of(select)
    if outer is None or limit is None or limit < 1:
        return False
    if any(
        q.args.get(clause)
        for q, clause in ((select, "order"), (outer, "order"), (outer, "distinct"))
    ):
        return False
    taken = limit_of(outer)
    if taken is not None and taken < 1:
        return False
    most = limit if taken is None else min(limit, taken)
    outer.set("limit", exp.Limit(expression=exp.Literal.number(most)))
    return drop(select, "limit")


@simplification("all rows tie in that sort term" + TIES)
def open_constant_term(select: exp.Select, schema: Schema) -> bool:
    """A sort term that is constant, be it within a subquery in FROM only."""
    order = select.args.get("order")
    if order is None or (select.args.get("group") is None and is_aggregate(select)):
        return False
    facts = facts_of(select, schema)
    tables = _tables(select)
    before: set[Name] = set()
    for term in order.expressions:
        name = facts.name(term.this)
        if name is None:
            continue
        same, inner = name in facts.fixed(before), tables[name[0]]
        if isinstance(inner, exp.Select):
            value, inside = _result(inner, name[1]), facts_of(inner, schema)
            same = same or counts_one(value, inside) or inside.name(value) in inside.fixed()
        if same:
            rest = [other for other in order.expressions if other is not term]
            order.set("expressions", rest)
            return bool(rest) or drop(select, "order")
        before.add(name)
    return False


@simplification("only whether the subquery has a row counts")
def open_existence(select: exp.Select, schema: Schema) -> bool:
    """ORDER BY, LIMIT and DISTINCT where only the existence of a row matters."""
    limit = limit_of(select)
    if (limit is not None and limit < 1) or not _only_existence_counts(select, schema):
        return False
    return drop(select, "order", "limit", "distinct")


def passed_on_by(select: exp.Select) -> exp.Select | None:
    """Returns the query around a table in FROM if it drops rows by LIMIT or DISTINCT at most."""
    outer = select_of(select)
    if place_of(select) != "table" or outer is None or is_aggregate(outer):
        return None
    clauses = ("where", "group", "having", "joins")
    return None if any(outer.args.get(clause) for clause in clauses) else outer


def _only_existence_counts(select: exp.Select, schema: Schema) -> bool:
    """Whether only the existence of a SELECT's rows matters, not which or how many."""
    if place_of(select) == "exists":
        return True
    if only_values_count(select):
        return all(_is_constant(s.unalias(), select, schema) for s in select.expressions)
    outer = passed_on_by(select)
    limit = None if outer is None else limit_of(outer)
    if outer is None or (limit is not None and limit < 1):
        return False
    return _only_existence_counts(outer, schema)


def _is_constant(value: exp.Expr, select: exp.Select, schema: Schema) -> bool:
    """Whether a value belongs to an outer row, and so is the same in all rows of a SELECT."""
    facts = facts_of(select, schema)
    if not isinstance(value, exp.Column) or isinstance(value.this, exp.Star) or not facts.sources:
        return False
    if (name := facts.name(value)) is not None:
        inner = _tables(select)[name[0]]
        return isinstance(inner, exp.Select) and _is_constant(
            _result(inner, name[1]), inner, schema
        )
    return bool(value.table) and value.table.casefold() not in facts.sources


def _tables(select: exp.Select) -> dict[str, exp.Expr]:
    """Returns the tables and subqueries in FROM by alias; subqueries without their brackets."""
    return {source.alias_or_name.casefold(): source.this for source in sources(select)}


def _result(select: exp.Select, name: str) -> exp.Expr:
    found = next(s for s in select.expressions if s.alias_or_name.casefold() == name)
    value: exp.Expr = found.unalias()
    return value


def differ_where_empty(gold: exp.Expr, near_miss: exp.Expr, schema: Schema) -> bool:
    """Whether a near miss has the gold's result on every database where the gold has one."""
    selects = list(gold.find_all(exp.Select))
    if len(selects) != len(list(near_miss.find_all(exp.Select))):
        return False
    for number, select in enumerate(selects):
        other = near_miss.copy()
        there = list(other.find_all(exp.Select))[number]
        mine, theirs = select.args.get("where"), there.args.get("where")
        if mine is None:
            continue
        there.set("where", mine.copy())
        if to_sql(other) != to_sql(gold):
            continue
        there.set("where", None if theirs is None else theirs.copy())
        if _empties_gold(select, gold, schema) and _asks_less(select, there, schema):
            return True
    return False


def _empties_gold(select: exp.Select, gold: exp.Expr, schema: Schema) -> bool:
    """Whether the gold is empty wherever one of its SELECTs is.

    That is so if it is the gold itself, or if the gold's WHERE requires a comparison with its
    value, which is then NULL.
    """
    if not isinstance(gold, exp.Select) or select.args.get("group") is not None:
        return False
    if is_aggregate(select) or limit_of(select) not in (None, 1):
        return False
    if select is gold:
        return True
    if is_aggregate(gold) and gold.args.get("group") is None:
        return False
    for part in parts_of(gold, "where"):
        bare = part.unnest()
        sides = [bare.this, bare.expression] if type(bare) in COMPARISONS else []
        if any(isinstance(side, exp.Subquery) and side.this is select for side in sides):
            return is_closed(select, schema)
    return False


def _asks_less(select: exp.Select, other: exp.Select, schema: Schema) -> bool:
    """Whether another SELECT has every row of the first, and at most one row."""
    if select_of(other) is not None and not is_closed(other, schema):
        return False
    facts = facts_of(select, schema)
    known = parts_of(select, "where")
    given = [bound for part in known for bound in bounds(part, facts)]
    there = facts_of(other, schema)
    follow = all(_follows(part, there, known, given) for part in parts_of(other, "where"))
    return follow and at_most_one_row(other, schema)


def _follows(asked: exp.Expr, facts: Facts, known: list[exp.Expr], given: list[Bound]) -> bool:
    """Whether a condition follows from others, or from the comparisons that they amount to."""
    bare = asked.unnest()
    if isinstance(bare, exp.Or):
        return any(_follows(p, facts, known, given) for p in (bare.this, bare.expression))
    if isinstance(bare, exp.And):
        return all(_follows(p, facts, known, given) for p in (bare.this, bare.expression))
    wanted = bounds(asked, facts)
    implied = bool(wanted) and all(any(implies(k, a) for k in given) for a in wanted)
    return implied or asked in known


SIMPLIFICATIONS = (
    open_distinct_rows,
    open_inner_limit,
    open_constant_term,
    open_existence,
)
