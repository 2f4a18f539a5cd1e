"""Which rows of a combination are there already, and in which order the others are made."""

from typing import TYPE_CHECKING

from lm_eval_ext.sql.distill.assignment import Assignment
from lm_eval_ext.sql.distill.scopes import Scope

if TYPE_CHECKING:
    from lm_eval_ext.sql.distill.row_builder import Witness


def bind(witness: "Witness", scope: Scope, assignment: Assignment) -> set[str]:
    """Lets some aliases be rows that are there already."""
    bound: set[str] = set()
    aliases = list(scope.tables)
    witness.rng.shuffle(aliases)
    for alias in aliases[: len(aliases) - 1]:
        rows = witness.pools.rows.get(scope.tables[alias], [])
        if not rows or witness.rng.random() > witness.share_bound:
            continue
        cells = witness.query.cells_in(scope, alias)
        for row in witness.rng.sample(rows, min(8, len(rows))):
            if all(assignment.fits(cell, row.get(cell[2])) for cell in cells):
                for cell in cells:
                    assignment.set(cell, row.get(cell[2]))
                bound.add(alias)
                break
    return bound


def bind_by_key(
    witness: "Witness", scope: Scope, assignment: Assignment, only: str | None = None
) -> set[str]:
    """Lets aliases be the rows whose keys they must have, where there are such rows."""
    bound: set[str] = set()
    for alias, name in scope.tables.items():
        if only not in (None, alias):
            continue
        table = witness.schema[name]
        for key in table.unique_keys:
            cells = [(scope.number, alias, part.lower()) for part in key]
            if not all(assignment.known(cell) for cell in cells):
                continue
            row = witness.pools.find(name, key, [assignment.get(cell) for cell in cells])
            if row is not None:
                for cell in witness.query.cells_of(scope):
                    if cell[:2] == (scope.number, alias):
                        assignment.set(cell, row.get(cell[2]))
                bound.add(alias)
                break
    return bound


def parents_first(witness: "Witness", scope: Scope) -> list[tuple[str, str]]:
    """Orders aliases so that a key joined by is made fresh where it is a key."""
    used = {cell[1:] for cell in witness.query.cells_of(scope) if cell[0] == scope.number}
    keyed: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for alias, name in scope.tables.items():
        keys = {key[0].lower() for key in witness.schema[name].unique_keys if len(key) == 1}
        list_ = keyed if any((alias, key) in used for key in keys) else others
        list_.append((alias, name))
    if witness.rng.random() < 0.5:  # noqa: PLR2004 (two tables may share a key)
        keyed.reverse()
    return keyed + others
