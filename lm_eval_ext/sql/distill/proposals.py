"""Groups of rows that together may tell a gold from a near miss."""

import random
from collections.abc import Callable

from sqlglot import exp

from lm_eval_ext.sql.distill.aggregate_targets import balance, comparisons
from lm_eval_ext.sql.distill.groups import LARGEST, bounds, groups_of, size_of
from lm_eval_ext.sql.distill.inserting import RefusedError
from lm_eval_ext.sql.distill.row_builder import Values, Witness
from lm_eval_ext.sql.distill.scopes import Cell, Query, Scope


def add_bundle(witness: Witness, *, whole: bool = False) -> None:
    """Adds some rows around a gold's own conditions.

    Args:
        witness: Builds them.
        whole: Whether each SELECT gets one combination that satisfies everything, as an empty
            gold needs.

    Raises:
        RefusedError: They do not fit.
    """
    rng = witness.rng
    if not whole and rng.random() < 0.3 and witness.query.noted("comparisons", comparisons):  # noqa: PLR2004
        balance(witness)
        return
    scopes = [scope for scope in witness.query.scopes if scope.tables]
    if not scopes:
        raise RefusedError("it reads no table")
    links = witness.query.noted("links", links_of)
    known: Values = {}
    for _ in range(1 if whole else rng.choice((1, 1, 2, 2, 3))):
        # The first SELECT is the gold's own; the others are its subqueries.
        scope = scopes[0] if whole or rng.random() < 0.5 else rng.choice(scopes)  # noqa: PLR2004
        presets = _linked(links, known, scope, rng)
        weights = (2, 1, 1, 5, 3) if bounds(scope) else (4, 2, 2, 2, 1)
        shape = rng.choices(_SHAPES, weights)[0]
        known.update(_single(witness, scope, presets) if whole else shape(witness, scope, presets))


def links_of(query: Query) -> list[tuple[Cell, Cell]]:
    """Returns pairs of cells of different SELECTs whose values are held against each other."""
    pairs: list[tuple[Cell, Cell]] = []
    for scope in query.scopes:
        for part in scope.parts:
            for node in part.find_all(exp.In):
                inner = query.scope_of(node.args["query"]) if node.args.get("query") else None
                if inner is not None and inner.outputs:
                    one = query.cell(node.this.unnest(), scope)
                    other = query.cell(inner.outputs[0], inner)
                    if one is not None and other is not None:
                        pairs.append((one, other))
    for operation in query.tree.find_all(exp.SetOperation):
        left, right = query.scope_of(operation.this), query.scope_of(operation.expression)
        if left is not None and right is not None:
            for one_output, other_output in zip(left.outputs, right.outputs, strict=False):
                one, other = query.cell(one_output, left), query.cell(other_output, right)
                if one is not None and other is not None:
                    pairs.append((one, other))
    return pairs


def _linked(
    links: list[tuple[Cell, Cell]], known: Values, scope: Scope, rng: random.Random
) -> Values:
    if rng.random() < 0.3:  # noqa: PLR2004
        return {}
    found: Values = {}
    for one, other in [*links, *[(b, a) for a, b in links]]:
        if one in known and other[0] == scope.number:
            found[other] = known[one]
    return found


def _single(witness: Witness, scope: Scope, presets: Values) -> Values:
    """One combination."""
    return witness.build(scope, presets)


def _near(witness: Witness, scope: Scope, presets: Values) -> Values:
    """One that satisfies the conditions and one that fails one of them, else the same."""
    values = witness.build(scope, presets)
    rng = witness.rng
    shown = _some_cells(witness, scope, [*scope.outputs, *scope.groups, *scope.orders], values)
    kept = {cell: value for cell, value in shown.items() if rng.random() < 0.7}  # noqa: PLR2004
    witness.build(scope, presets | kept, miss=True)
    return values


def _missed(witness: Witness, scope: Scope, presets: Values) -> Values:
    """One that fails one condition."""
    return witness.build(scope, presets, miss=True)


def _group(witness: Witness, scope: Scope, presets: Values) -> Values:
    """Several that fall into one group, as many as tell HAVING, LIMIT or the largest group."""
    rng = witness.rng
    if rng.random() < 0.5:  # noqa: PLR2004
        presets = presets | witness.fresh_groups(scope)
    values = witness.build(scope, presets, miss=rng.random() < 0.2)  # noqa: PLR2004
    shared = _some_cells(witness, scope, scope.groups or scope.outputs, values)
    for _ in range(size_of(witness, scope) - 1):
        witness.build(scope, presets | shared, miss=rng.random() < 0.1)  # noqa: PLR2004
    return values


def _level(witness: Witness, scope: Scope, presets: Values) -> Values:
    """Rows for a group that is there, so that it has as many as a larger one, or one more."""
    rng = witness.rng
    counts = groups_of(witness, scope)
    cells = [witness.query.cell(group.unnest(), scope) for group in scope.groups]
    if not counts or None in cells:
        return _group(witness, scope, presets)
    sizes = {count for count, _ in counts} | set(bounds(scope))
    choices = [
        (size - count + extra, keys)
        for count, keys in counts
        for size in sorted(sizes)
        for extra in (0, 1)
        if 0 < size - count + extra <= LARGEST
    ]
    if not choices:
        return _group(witness, scope, presets)
    needed, keys = rng.choice(choices)
    shared = dict(presets)
    for cell, key in zip(cells, keys, strict=True):
        assert cell is not None
        shared[cell] = key
    values: Values = {}
    last = rng.random() < 0.4  # noqa: PLR2004 (a row that only a near miss counts)
    for number in range(needed):
        values = witness.build(scope, shared, miss=last and number == 0)
    return values


_SHAPES: tuple[Callable[[Witness, Scope, Values], Values], ...] = (
    _single, _near, _missed, _group, _level,
)  # fmt: skip


def _some_cells(
    witness: Witness, scope: Scope, expressions: list[exp.Expr], values: Values
) -> Values:
    cells = [cell for e in expressions for cell in witness.query.cells(e, scope)]
    return {cell: values[cell] for cell in cells if cell in values}
