"""Simplifications of subqueries by what the query around them makes of their rows.

All are sound up to what the query itself leaves open; :mod:`.left_open` says what that means.
"""

from sqlglot import exp

from lm_eval_ext.sql.parsing import select_of, sources
from lm_eval_ext.sql.proofs.base import ORDER, TIES, Simplification
from lm_eval_ext.sql.proofs.facts import Name
from lm_eval_ext.sql.proofs.places import is_aggregate, limit_of, only_values_count, place_of
from lm_eval_ext.sql.proofs.reading import facts_of
from lm_eval_ext.sql.proofs.rows import counts_one, drop
from lm_eval_ext.sql.schema import Schema


def open_inner_limit(select: exp.Select, schema: Schema) -> bool:
    """LIMIT of an unordered table that is given as it is: the outer query may as well have it."""
    del schema
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


def open_constant_term(select: exp.Select, schema: Schema) -> bool:
    """A sort term that is the same in all rows, or in all rows of a table in FROM."""
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


def open_existence(select: exp.Select, schema: Schema) -> bool:
    """ORDER BY, LIMIT and DISTINCT where only whether there is a row counts."""
    limit = limit_of(select)
    if (limit is not None and limit < 1) or not _only_existence_counts(select, schema):
        return False
    return drop(select, "order", "limit", "distinct")


def passed_on_by(select: exp.Select) -> exp.Select | None:
    """The outer query of a table in FROM, if it reads nothing else and leaves no row out.

    Other than by LIMIT or DISTINCT.
    """
    outer = select_of(select)
    if place_of(select) != "table" or outer is None or is_aggregate(outer):
        return None
    clauses = ("where", "group", "having", "joins")
    return None if any(outer.args.get(clause) for clause in clauses) else outer


def _only_existence_counts(select: exp.Select, schema: Schema) -> bool:
    """Whether it is all the same which rows a SELECT gives, and how many, if any."""
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
    """Whether a value is that of a row of a query around, the same in all rows of a SELECT."""
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
    """What stands in FROM, by alias; subqueries as the SELECTs that they are."""
    return {source.alias_or_name.casefold(): source.this for source in sources(select)}


def _result(select: exp.Select, name: str) -> exp.Expr:
    found = next(s for s in select.expressions if s.alias_or_name.casefold() == name)
    value: exp.Expr = found.unalias()
    return value


SIMPLIFICATIONS = (
    Simplification("open_inner_limit", "any rows of the table will do" + ORDER, open_inner_limit),
    Simplification(
        "open_constant_term", "all rows tie in that sort term" + TIES, open_constant_term
    ),
    Simplification("open_existence", "only whether the subquery has a row counts", open_existence),
)
