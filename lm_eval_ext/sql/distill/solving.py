"""Values at which numbers that follow them are equal to others, to the last bit."""

import math
import random
from collections.abc import Callable, Sequence

from lm_eval_ext.sql.distill.inserting import RefusedError

_NEWTON = 8
_ROUNDS = _NEWTON + 80
_NEAR = 1e-9
"""Errors, beside the values, from which chance can find the last bits."""


def solve(
    ask: Callable[[list[float]], list[float]],
    x: list[float],
    limits: Sequence[tuple[float, float]],
    rng: random.Random,
) -> list[float]:
    """Finds values at which all errors are exactly zero: Newton's way, then by trial.

    Args:
        ask: Returns the errors at given values, as many as values.
        x: Where to begin.
        limits: The smallest and largest value that each may have.
        rng: Draws the last bits.

    Returns:
        The values.

    Raises:
        RefusedError: None were found.
    """
    errors = ask(x)
    slopes: list[list[float]] = []
    for number in range(_ROUNDS):
        if not any(errors):
            return x
        if number < _NEWTON:
            slopes = _slopes(ask, x, limits, errors)
        elif number == _NEWTON and max(map(abs, errors)) > _NEAR * max(map(abs, x)):
            break
        step = _linear(slopes, errors)
        x = [value - move for value, move in zip(x, step, strict=True)]
        if number >= _NEWTON:  # as near as it gets: now the last bits, by chance
            x = [v + rng.uniform(-1, 1) * max(abs(v), 1.0) * 2.0 ** -rng.randint(44, 52) for v in x]
        x = [min(max(v, low), high) for v, (low, high) in zip(x, limits, strict=True)]
        errors = ask(x)
    if any(errors):
        raise RefusedError("not balanced")
    return x


def _slopes(
    ask: Callable[[list[float]], list[float]],
    x: list[float],
    limits: Sequence[tuple[float, float]],
    errors: list[float],
) -> list[list[float]]:
    """Returns by how much each error changes with each value, an error's slopes together."""
    columns = []
    for i in range(len(x)):
        h = max(abs(x[i]), 1.0) * 2.0**-10
        h = -h if x[i] + h > limits[i][1] else h
        moved = ask([value + h * (i == j) for j, value in enumerate(x)])
        columns.append([(m - e) / h for m, e in zip(moved, errors, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


def _linear(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solves a small system of linear equations by elimination."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(n):
        best = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        if abs(rows[i][i]) < 2.0**-60:
            raise RefusedError("the numbers do not follow the rows")
        for k in range(n):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    found = [row[n] / row[i] if row[i] else math.inf for i, row in enumerate(rows)]
    if not all(map(math.isfinite, found)):
        raise RefusedError("the numbers do not follow the rows")
    return found
