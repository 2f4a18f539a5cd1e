"""What the cells of a combination should be, so that a SELECT's conditions hold or just fail."""

from typing import TYPE_CHECKING

from sqlglot import exp

from lm_eval_ext.sql.distill.assignment import Assignment
from lm_eval_ext.sql.distill.hints import output_of, single
from lm_eval_ext.sql.distill.planning import Compared, Equal, Exists, Goal, Member, Wish, plan
from lm_eval_ext.sql.distill.scopes import Scope
from lm_eval_ext.sql.distill.values import above, below, compares, satisfying

if TYPE_CHECKING:
    from lm_eval_ext.sql.distill.row_builder import Values, Witness


def aim(
    witness: "Witness", scope: Scope, assignment: Assignment, *, miss: bool, depth: int
) -> None:
    """Turns a SELECT's conditions into ties and wishes, and builds what subqueries need.

    Args:
        witness: Builds the rows.
        scope: The SELECT.
        assignment: Takes the ties and wishes.
        miss: Whether just one of the conditions is to fail.
        depth: How many SELECTs ask for this one.

    """
    rng = witness.rng
    goals: list[Goal] = []
    parts = scope.parts
    failing = rng.randrange(len(parts)) if parts and miss else -1
    for number, part in enumerate(parts):
        goals += plan(part, number != failing, rng)
    for goal in goals:
        if isinstance(goal, Equal):
            left, right = (witness.query.cell(e.unnest(), scope) for e in (goal.left, goal.right))
            if left is not None and right is not None:
                assignment.tie(left, right)
    for goal in goals:
        if isinstance(goal, Wish):
            _wish(witness, goal, scope, assignment)
        elif isinstance(goal, Member):
            _member(witness, goal, scope, assignment, depth)
        elif isinstance(goal, Compared):
            _compared(witness, goal, scope, assignment, depth)
        elif isinstance(goal, Exists):
            inner = witness.query.scope_of(goal.query)
            if inner is not None and rng.random() < 0.7:  # noqa: PLR2004
                witness.build(inner, miss=not goal.truth, depth=depth + 1)


def _wish(witness: "Witness", goal: Wish, scope: Scope, assignment: Assignment) -> None:
    rng = witness.rng
    cell = single(witness.query, goal.expression, scope)
    if cell is not None:
        assignment.wish(cell, goal.values, goal.test)
    elif goal.values:
        value = rng.choice(goal.values)
        assignment.make(goal.expression, scope, value, rng, witness.drawer.draw)


def _member(
    witness: "Witness", goal: Member, scope: Scope, assignment: Assignment, depth: int
) -> None:
    rng = witness.rng
    inner = witness.query.scope_of(goal.query)
    cell = single(witness.query, goal.expression, scope)
    found = witness.values(goal.query) if rng.random() < 0.7 else []  # noqa: PLR2004
    output = output_of(witness.query, inner)
    if not goal.truth and cell is not None:
        members = set(found)
        assignment.wish(cell, (), lambda value: value not in members)
    if inner is None or (found and rng.random() < 0.6):  # noqa: PLR2004
        if goal.truth and cell is not None and found:
            some = (found[0], rng.choice(found), rng.choice(found))
            members = set(found)
            assignment.wish(cell, some, lambda value: value in members)
        return
    presets: Values = {}
    if cell is not None and output is not None:
        if not assignment.known(cell):
            assignment.set(cell, witness.drawer.draw(cell))
        presets[output] = assignment.get(cell)
    witness.build(inner, presets, miss=not goal.truth, depth=depth + 1)


def _compared(
    witness: "Witness", goal: Compared, scope: Scope, assignment: Assignment, depth: int
) -> None:
    rng = witness.rng
    cell = single(witness.query, goal.left, scope)
    right = goal.right.unnest()
    if not isinstance(right, exp.Query):
        other = assignment.value_of(right, scope)
        partner = witness.query.cell(right, scope)
        if other is None and partner is not None:
            other = witness.drawer.draw(partner)
            assignment.set(partner, other)
        if cell is not None and other is not None:
            assignment.wish(
                cell,
                tuple(satisfying(goal.operator, other)),
                lambda value: compares(goal.operator, value, other),
            )
        return
    found = witness.values(right)
    bound = found[0] if found else None
    inner = witness.query.scope_of(right)
    output = output_of(witness.query, inner)
    if bound is None and output is not None:
        bound = witness.drawer.draw(output)
    if inner is not None and rng.random() < 0.6:  # noqa: PLR2004
        value = rng.choice((bound, above(bound), above(bound), below(bound), None))
        presets: Values = {} if output is None or value is None else {output: value}
        witness.build(inner, presets, miss=rng.random() < 0.5, depth=depth + 1)  # noqa: PLR2004
        if found := witness.values(right):
            bound = found[0]
    wanted = tuple(satisfying(goal.operator, bound))
    if cell is None:
        if wanted:
            assignment.make(goal.left, scope, rng.choice(wanted), rng, witness.drawer.draw)
        return
    if wanted:
        assignment.wish(cell, wanted, lambda v: compares(goal.operator, v, bound))
