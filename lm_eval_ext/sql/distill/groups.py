"""The sizes of groups at which a gold's result changes."""

from sqlglot import exp

from lm_eval_ext.sql.distill.planning import literal, operator_of
from lm_eval_ext.sql.distill.row_builder import Witness
from lm_eval_ext.sql.distill.runner import NoResultError
from lm_eval_ext.sql.distill.scopes import Scope
from lm_eval_ext.sql.parsing import to_sql
from lm_eval_ext.sql.values import Row

LARGEST = 50
"""Most rows of one table that a group gets at once: copies stay small."""

Group = tuple[int, Row]
"""A group's size, and the values that it has in common."""


def size_of(witness: Witness, scope: Scope) -> int:
    """Draws a group's size among those at which something changes."""
    sizes = [1, 2, 3, *bounds(scope) * 2]
    limit = scope.select.args.get("limit")
    if limit is not None and (bound := literal(limit.expression)) is not None:
        sizes += [n for n in (bound[0], bound[0] + 1) if isinstance(n, int)]  # type: ignore[operator]
    if scope.groups:
        counts = [count for count, _ in groups_of(witness, scope)[:2]]
        sizes += [n + extra for n in counts for extra in (0, 1)]
    fitting = [size for size in sizes if 1 <= size <= LARGEST]
    return witness.rng.choice(fitting or [2])


def bounds(scope: Scope) -> list[int]:
    """Returns the group sizes that HAVING names, with their neighbours."""
    found: list[int] = []
    for part in scope.parts:
        bound = literal(part.args["expression"]) if operator_of(part) else None
        if bound is not None and isinstance(bound[0], int) and part.find(exp.Count):
            found += [bound[0] - 1, bound[0], bound[0] + 1]
    return found


def groups_of(witness: Witness, scope: Scope) -> list[Group]:
    """Returns sizes and keys of groups of a SELECT, HAVING left out, the largest first."""
    key = (witness.query.text, scope.number)
    if not scope.groups:
        return []
    if key not in witness.cache:
        texts = witness.query.noted("counts", lambda _: {})
        if scope.number not in texts:
            texts[scope.number] = _counting(scope)
        try:
            rows = witness.runner.rows(texts[scope.number])
        except NoResultError:
            rows = []
        witness.cache[key] = _some_groups(rows, bounds(scope))
    found: list[Group] = witness.cache[key]
    return found


def _counting(scope: Scope) -> str:
    select = scope.select.copy()
    for part in ("order", "limit", "having", "distinct", "offset"):
        select.set(part, None)
    keys = ", ".join(to_sql(group) for group in scope.groups)
    select.set("expressions", [])
    body = to_sql(select).removeprefix("SELECT").lstrip().removeprefix("*").lstrip()
    return f"SELECT count(*), {keys} {body} ORDER BY count(*) DESC"


def _some_groups(rows: list[Row], bounds: list[int]) -> list[Group]:
    """Returns the largest groups, and those just below a size that HAVING names."""
    low, high = min(bounds, default=0) - LARGEST, max(bounds, default=-1)
    groups = [(size, row[1:]) for row in rows if isinstance(size := row[0], int)]
    near = [group for group in groups if low < group[0] <= high]
    return list(dict.fromkeys([*groups[:5], *near[:20]]))
