"""Are these rows among those, each once, with numbers equal up to float noise?"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Sequence

from lm_eval_ext.sql.values import Row, Value

RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""How far two numbers may lie apart of which at least one is a float. Adding 100,000 floats in
another order moves a sum by some 1e-11 of itself, and around zero by as much of its terms; a
rounding that a query asks for (``round(x, 6)``) stays a difference."""


def close(a: Value, b: Value) -> bool:
    """Whether two values are equal; for numbers, up to float noise.

    Integers equal floats of the same value. Two integers must be the same. A text never
    equals a number, nor a blob; NULL equals NULL.
    """
    if type(a) is float or type(b) is float:
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        return False
    return type(a) is type(b) and a == b


def close_rows(a: Row, b: Row) -> bool:
    """Whether two rows are equal value by value, in the order of the columns."""
    return len(a) == len(b) and all(map(close, a, b))


def among(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    """Whether every row has a partner of its own among the others.

    With as many rows as others, this is equality of multisets. Rows that are exactly equal
    are paired first; what is left is paired by a maximum matching, since being close is not
    transitive and neither sorting nor rounding can decide it.
    """
    if len(rows) > len(others):
        return False
    wanted, left = Counter(rows), Counter(others)
    wanted, left = wanted - left, left - wanted
    if not wanted:
        return True
    candidates = _by_skeleton(left)
    return all(
        _all_paired(group, candidates.get(skeleton, []))
        for skeleton, group in _by_skeleton(wanted).items()
    )


def _by_skeleton(rows: "Counter[Row]") -> dict[tuple[object, ...], list[Row]]:
    """Groups rows by all that must be exactly equal: which cells are numbers, and the rest."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows.elements():
        groups[tuple(_NUMBER if isinstance(v, (int, float)) else v for v in row)].append(row)
    return groups


_NUMBER = object()


def _all_paired(rows: list[Row], others: list[Row]) -> bool:
    """Whether a matching of close rows covers all of ``rows`` (augmenting paths)."""
    numbers = [i for i, value in enumerate(rows[0]) if isinstance(value, (int, float))]
    if not numbers or len(rows) > len(others):
        return False  # equal rows were paired before
    column = max(numbers, key=lambda i: len({row[i] for row in others}))  # tells most apart
    others = sorted(others, key=lambda row: _at(row, column))
    keys = [_at(row, column) for row in others]

    def partners(row: Row) -> list[int]:
        x = _at(row, column)
        # Wider than isclose, which measures from the larger of the two.
        reach = 0.0 if math.isinf(x) else 2 * max(abs(x) * RELATIVE, ABSOLUTE)
        near = range(bisect_left(keys, x - reach), bisect_right(keys, x + reach))
        return [i for i in near if close_rows(row, others[i])]

    edges = [partners(row) for row in rows]
    owner: dict[int, int] = {}
    return all(_augment(start, edges, owner) for start in range(len(rows)))


def _augment(start: int, edges: list[list[int]], owner: dict[int, int]) -> bool:
    """Gives ``start`` a partner, moving earlier pairs if need be; breadth first."""
    came_from: dict[int, int] = {}
    partner_of_row: dict[int, int] = {}
    queue = deque([start])
    while queue:
        row = queue.popleft()
        for other in edges[row]:
            if other in came_from:
                continue
            came_from[other] = row
            if other in owner:
                partner_of_row[owner[other]] = other
                queue.append(owner[other])
                continue
            free: int | None = other
            while free is not None:  # hand partners over along the path
                taker = came_from[free]
                owner[free], free = taker, partner_of_row.get(taker)
            return True
    return False


def _at(row: Row, column: int) -> float:
    value = row[column]
    return float(value) if isinstance(value, (int, float)) else math.nan
