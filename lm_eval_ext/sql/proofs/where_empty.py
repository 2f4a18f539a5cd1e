"""Near misses that differ from the gold only where the gold's result is empty.

A near miss asks less of a row that is looked up by a key: it leaves a condition out, or makes it
weaker. Whenever the gold gives anything, that row fulfils the gold's conditions, so it fulfils
the near miss's, and there is no second row that could.
"""

from sqlglot import exp

from lm_eval_ext.sql.parsing import select_of, to_sql
from lm_eval_ext.sql.proofs.conditions import parts_of
from lm_eval_ext.sql.proofs.facts import Facts
from lm_eval_ext.sql.proofs.places import is_aggregate, limit_of
from lm_eval_ext.sql.proofs.ranges import Bound, bounds, implies
from lm_eval_ext.sql.proofs.reading import at_most_one_row, facts_of, is_closed
from lm_eval_ext.sql.schema import Schema

REASON = (
    "the two differ only where the gold's result is empty, which a populated copy avoids: "
    "the near miss asks less of a row that is found by its key"
)


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

    That is so if it is the gold, or if the gold's WHERE compares with its one value: a comparison
    with NULL does not hold.
    """
    if not isinstance(gold, exp.Select) or select.args.get("group") is not None:
        return False
    if is_aggregate(select) or limit_of(select) not in (None, 1):
        return False
    if select is gold:
        return True
    if is_aggregate(gold) and gold.args.get("group") is None:
        return False
    compared = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE
    for part in parts_of(gold, "where"):
        bare = part.unnest()
        sides = [bare.this, bare.expression] if isinstance(bare, compared) else []
        if any(isinstance(side, exp.Subquery) and side.this is select for side in sides):
            return is_closed(select, schema)
    return False


def _asks_less(select: exp.Select, other: exp.Select, schema: Schema) -> bool:
    """Whether another SELECT has each row of one, and at most one row itself."""
    if select_of(other) is not None and not is_closed(other, schema):
        return False
    facts = facts_of(select, schema)
    known = parts_of(select, "where")
    given = [bound for part in known for bound in bounds(part, facts)]
    there = facts_of(other, schema)
    follow = all(_follows(part, there, known, given) for part in parts_of(other, "where"))
    return follow and at_most_one_row(other, schema)


def _follows(asked: exp.Expr, facts: Facts, known: list[exp.Expr], given: list[Bound]) -> bool:
    """Whether a condition holds wherever all of some others, and what they say, do."""
    bare = asked.unnest()
    if isinstance(bare, exp.Or):
        return any(_follows(p, facts, known, given) for p in (bare.this, bare.expression))
    if isinstance(bare, exp.And):
        return all(_follows(p, facts, known, given) for p in (bare.this, bare.expression))
    wanted = bounds(asked, facts)
    implied = bool(wanted) and all(any(implies(k, a) for k in given) for a in wanted)
    return implied or asked in known
