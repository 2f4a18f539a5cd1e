"""Whole numbers whose mean, less their standard deviation, is one of them.

``age > (SELECT avg(age) - stdev(age) FROM people)`` and ``>=`` differ only if somebody has exactly
that age. Where ages are whole numbers, few lists of them have such a number; this module finds
some that extend a given list.
"""

import random
from collections.abc import Sequence
from typing import Any

_TRIES = 100_000
_DRAWN = (2, 3, 4, 6, 8, 12)
"""How many numbers are drawn, of which one is chosen; two more are computed."""
_BEYOND = (0.25, 0.5)
"""How far new numbers may lie below and above all present ones, as a share of their range."""


def extended(values: Sequence[int], rng: random.Random) -> list[tuple[int, ...]]:
    """Returns lists of numbers to add, the one that equals mean less standard deviation first.

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
    last = (rest + side) // 2
    lists = np.stack([m - t, m, *(m + d for d in drawn), m + last, m + rest - last], axis=1)
    good = (root >= 0) & (side * side == root) & ((rest + side) % 2 == 0)
    good &= ((lists >= low) & (lists <= high)).all(axis=1)
    return [tuple(map(int, row)) for row in lists[good]]
