"""Numbers that make an average, or an average less a standard deviation, equal to a value."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from lm_eval_ext.sql.distill.inserting import RefusedError

_NEWTON = 8
_ROUNDS = _NEWTON + 80
_NEAR = 1e-9
"""Relative errors from which random changes can find the last bits."""
_SINGULAR = 2.0**-60
_TRIES = 100_000
_DRAWN = (2, 3, 4, 6, 8, 12)
"""How many numbers are drawn, of which one is chosen; two more are computed."""
_BEYOND = (0.25, 0.5)
"""How far new numbers may lie below and above all present ones, as a share of their range."""


def solve(
    ask: Callable[[list[float]], list[float]],
    x: list[float],
    limits: Sequence[tuple[float, float]],
    units: Sequence[float],
    rng: random.Random,
) -> list[float]:
    """Finds values at which all errors are exactly zero: by Newton's method, then at random.

    Args:
        ask: Returns the errors at given values, one per value.
        x: The start.
        limits: The smallest and largest permitted value of each.
        units: The steps that ``ask`` rounds each value to; 0 if it does not.
        rng: Draws changes of the last bits.

    Raises:
        RefusedError: None were found.
    """
    errors = ask(x)
    slopes: list[list[float]] = []
    for number in range(_ROUNDS):
        if not any(errors):
            return x
        if number < _NEWTON:
            slopes = _slopes(ask, x, limits, units, errors)
        elif number == _NEWTON and (
            max(map(abs, errors)) > _NEAR * max(map(abs, x)) + 2 * sum(units) or min(units) >= 1
        ):
            break
        step = _linear(slopes, errors)
        x = [value - move for value, move in zip(x, step, strict=True)]
        if number >= _NEWTON:  # Newton's steps get no nearer: the last bits, at random
            x = [
                v
                + rng.uniform(-1, 1) * (3 * unit or max(abs(v), 1.0) * 2.0 ** -rng.randint(44, 52))
                for v, unit in zip(x, units, strict=True)
            ]
        x = [min(max(v, low), high) for v, (low, high) in zip(x, limits, strict=True)]
        errors = ask(x)
    if any(errors):
        raise RefusedError("no values reach the targets")
    return x


def _slopes(
    ask: Callable[[list[float]], list[float]],
    x: list[float],
    limits: Sequence[tuple[float, float]],
    units: Sequence[float],
    errors: list[float],
) -> list[list[float]]:
    """Returns the derivatives of each error by each value, a row per error."""
    columns = []
    for i in range(len(x)):
        h = max(max(abs(x[i]), 1.0) * 2.0**-10, units[i])
        h = -h if x[i] + h > limits[i][1] else h
        moved = ask([value + h * (i == j) for j, value in enumerate(x)])
        columns.append([(m - e) / h for m, e in zip(moved, errors, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


def _linear(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solves a small system of linear equations by Gaussian elimination."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(n):
        best = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        if abs(rows[i][i]) < _SINGULAR:
            raise RefusedError("the numbers do not depend on the rows")
        for k in range(n):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    found = [row[n] / row[i] if row[i] else math.inf for i, row in enumerate(rows)]
    if not all(map(math.isfinite, found)):
        raise RefusedError("the numbers do not depend on the rows")
    return found


def extended(values: Sequence[int], rng: random.Random) -> list[tuple[int, ...]]:
    """Returns lists of numbers to add, the one that equals mean less standard deviation first.

    ``age > (SELECT avg(age) - stdev(age) FROM people)`` and ``>=`` differ only if somebody has
    exactly that age. Where ages are whole numbers, few lists of them have such a number.

    With n numbers of mean m, a whole number, and standard deviation t, the squares of their
    distances from m sum to (n - 1) t². Two numbers are computed so that distances and squares
    have the sums that this takes; the mean is among the others.

    Args:
        values: The present numbers, at least two.
        rng: Draws the numbers.
    """
    import numpy as np

    # Unlike numpy's newer generators, this one gives the same numbers in every version.
    draw = np.random.RandomState(rng.getrandbits(32))
    count, total, squares = len(values), sum(values), sum(value * value for value in values)
    low, high = min(values), max(values)
    if not low < high:
        return []
    below, above = (round((high - low) * share) for share in _BEYOND)
    low, high = (max(low - below, 1) if low > 0 else low), high + above
    size = rng.choice(_DRAWN)
    n = count + size + 4
    mean = total / count
    spread = (squares / count - mean * mean) ** 0.5
    reach = max(2, round(spread * (size + 2) / n))

    def around(middle: float) -> Any:
        return round(middle) + draw.randint(-reach, reach + 1, _TRIES)

    m, t = around(mean), np.maximum(around(spread), 1)
    rest = t - (total - count * m)
    left = (n - 2) * t * t - (squares - 2 * m * total + count * m * m)
    typical = np.sqrt(np.maximum(left, 0) / (size + 2))
    drawn = []
    for number in range(size):
        if number < size - 1:
            sign = draw.randint(0, 2, _TRIES) * 2 - 1
            d = np.rint(sign * typical * draw.uniform(0.3, 1.6, _TRIES)).astype(np.int64)
        else:  # brings the sum near to what is needed
            d = rest + np.rint(typical * draw.uniform(-1, 1, _TRIES)).astype(np.int64)
        d = np.clip(d, low - m, high - m)
        drawn.append(d)
        rest, left = rest - d, left - d * d
    root = 2 * left - rest * rest
    side = np.rint(np.sqrt(np.maximum(root, 0))).astype(np.int64)
    good = np.flatnonzero((root >= 0) & (side * side == root) & ((rest + side) % 2 == 0))
    m, t, rest = m[good], t[good], rest[good]
    last = (rest + side[good]) // 2
    drawn = [m + d[good] for d in drawn]
    lists = np.stack([m - t, m, *drawn, m + last, m + rest - last], axis=1)
    fits = ((lists >= low) & (lists <= high)).all(axis=1)
    return [tuple(row) for row in lists[fits].tolist()]
