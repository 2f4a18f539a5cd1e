"""Simplifications of aggregates."""

from sqlglot import exp

from lm_eval_ext.sql.proofs.base import Simplification
from lm_eval_ext.sql.proofs.facts import Facts, Name
from lm_eval_ext.sql.proofs.places import aggregates, own_parts
from lm_eval_ext.sql.proofs.reading import facts_of
from lm_eval_ext.sql.schema import Schema

_EXACT = 2**31
"""Averages of equal integers below are exact."""


def distinct_extreme(select: exp.Select, schema: Schema) -> bool:
    """DISTINCT in MIN and MAX."""
    calls = [call for call in _calls(select) if _distinct_argument(call) is not None]
    if not calls or _shows_plan(select, facts_of(select, schema)):
        return False
    for call in calls:
        if isinstance(call, exp.Min | exp.Max) and _distinct_argument(call) is not None:
            call.set("this", _distinct_argument(call))
            return True
    return False


def distinct_key(select: exp.Select, schema: Schema) -> bool:
    """DISTINCT in COUNT of a column that is a key of the rows."""
    calls = [call for call in _calls(select) if isinstance(call, exp.Count)]
    facts = facts_of(select, schema) if calls else None
    if facts is None or _shows_plan(select, facts):
        return False
    for call in calls:
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


def count_not_null(select: exp.Select, schema: Schema) -> bool:
    """COUNT of a column that is never NULL counts rows."""
    calls = [call for call in _calls(select) if isinstance(call, exp.Count)]
    facts = facts_of(select, schema) if calls else None
    if facts is None or _shows_plan(select, facts):
        return False
    for call in calls:
        if facts.name(call.this) in facts.not_null:
            call.set("this", exp.Star())
            return True
    return False


def same_extremes(select: exp.Select, schema: Schema) -> bool:
    """MIN of a column that is the same in all rows of a group is its MAX."""
    calls = [call for call in _calls(select) if isinstance(call, exp.Min | exp.Avg)]
    facts = facts_of(select, schema) if calls else None
    if facts is None or _shows_plan(select, facts):
        return False
    fixed = _fixed_in_groups(select, facts)
    for call in calls:
        name = facts.name(call.this) if call.this is not None else None
        if name is None or name not in fixed:
            continue
        if isinstance(call, exp.Min) or (
            isinstance(call, exp.Avg) and _is_result(call, select) and _is_integer(name, facts)
        ):
            call.replace(exp.Max(this=call.this.copy()))
            return True
    return False


def _fixed_in_groups(select: exp.Select, facts: Facts) -> set[Name]:
    groups = facts.group_names() if select.args.get("group") is not None else []
    return set() if groups is None else facts.fixed(groups)


def _shows_plan(select: exp.Select, facts: Facts) -> bool:
    """Whether results depend on which row of a group SQLite reads first, or last.

    Plain columns do, where they are not the same throughout the group, and so do sums of
    floats, by their noise.
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


def _only_fixed_columns(select: exp.Select, facts: Facts, fixed: "set[Name]") -> bool:
    for part in own_parts(select):
        inside = {id(node) for call in aggregates(part) for node in call.walk()}
        for node in part.find_all(exp.Column, exp.Star, exp.Query):
            if id(node) not in inside and facts.name(node) not in fixed:
                return False
    return True


def _is_result(call: exp.Expr, select: exp.Select) -> bool:
    """Whether an aggregate is a result of the whole query, and nothing is computed from it.

    An average is a float: 3.0 is equal to 3, but 3.0 / 2 is not 3 / 2, nor is '3.0' '3'.
    """
    return call.parent is select and call.arg_key == "expressions" and select.parent is None


def _is_integer(name: "Name", facts: Facts) -> bool:
    literal = facts.constants.get(name)
    return (
        literal is not None
        and not literal.is_string
        and literal.this.isdigit()
        and int(literal.this) < _EXACT
        and facts.column(name).affinity in ("INTEGER", "NUMERIC", "REAL")
    )


SIMPLIFICATIONS = (
    Simplification("distinct_extreme", "DISTINCT changes no minimum or maximum", distinct_extreme),
    Simplification("distinct_key", "the aggregate's column is a key of the rows", distinct_key),
    Simplification("count_not_null", "the counted column is never NULL", count_not_null),
    Simplification(
        "same_extremes", "the aggregate's column is the same in all rows", same_extremes
    ),
)
