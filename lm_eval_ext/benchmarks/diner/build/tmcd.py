"""The split by maximum compound divergence of the target (paper, section 3.3).

The greedy exchange of Shaw et al. (2021, section 4.3): names change sides in pairs, so that the
sizes stay, and only if the divergence grows. They take the first pair that serves. Here it is
the best move to test, then the best move back, which needs fewer steps.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lm_eval_ext.benchmarks.diner.build.divergence import DECIMALS, Sides
from lm_eval_ext.benchmarks.diner.glossary import Component
from lm_eval_ext.errors import DataError

RATIO = 4.5
"""Names in training for each in test (paper, section 3.4)."""

ATTEMPTS = 8
"""So many divisions to start from are tried, until one leads to the divergence asked for."""

STARTS = 50
"""So many moves to test are tried in a step, best first."""

MOST_TOGETHER = 20
"""Most names that change sides together."""

Names = Mapping[str, tuple[Component, ...]]
"""Names of dishes and what they parse into."""


@dataclass(frozen=True)
class Split:
    """Names of training and test.

    Attributes:
        train: Sorted.
        test: Sorted; all have two components or more, each of which occurs in ``train``.
        course: The divergence at the start and after each exchange.
        reached: Whether the divergence asked for was reached.
    """

    train: tuple[str, ...]
    test: tuple[str, ...]
    course: tuple[float, ...]
    reached: bool

    @property
    def divergence(self) -> float:
        """Of the compounds, training against test."""
        return self.course[-1]


def split(
    names: Names,
    *,
    target: float,
    seed: int = 0,
    ratio: float = RATIO,
    progress: Callable[[float], None] | None = None,
) -> Split:
    """Splits names so that their compounds diverge.

    The same split whatever the order of the names.

    Args:
        names: Each counts once, however many recipes it has.
        target: The search ends when the divergence is this or more; 1 asks for the most.
        seed: Of the division that the search starts from.
        ratio: Names in training for each in test.
        progress: Told the divergence after each exchange.

    Raises:
        DataError: No name can be tested.
    """
    best: Split | None = None
    for attempt in range(ATTEMPTS):
        found = _search(names, target, random.Random(f"{seed}:{attempt}"), ratio, progress)
        if best is None or found.divergence > best.divergence:
            best = found
        if best.reached:
            break
    assert best is not None
    return best


def _search(
    names: Names,
    target: float,
    rng: random.Random,
    ratio: float,
    progress: Callable[[float], None] | None,
) -> Split:
    order = sorted(names)
    rng.shuffle(order)
    sides = Sides([names[name] for name in order], _start([names[name] for name in order], ratio))
    if not sides.in_test.any():
        raise DataError(
            f"none of the {len(order):,} dish names can be tested: each has one component, or a "
            "component that no other name has. Use a larger corpus or another glossary."
        )
    course = [sides.divergence]
    while course[-1] < target and _improve(sides, course[-1]):
        course.append(sides.divergence)
        if progress is not None:
            progress(course[-1])
    tested = {name for name, in_test in zip(order, sides.in_test, strict=True) if in_test}
    return Split(
        train=tuple(sorted(set(order) - tested)),
        test=tuple(sorted(tested)),
        course=tuple(course),
        reached=course[-1] >= target,
    )


def _start(names: list[tuple[Component, ...]], ratio: float) -> list[bool]:
    """Names for test in the order given, as long as training keeps each of their components."""
    left = Counter(component for name in names for component in set(name))
    wanted = round(len(names) / (1 + ratio))
    chosen = []
    for name in names:
        members = set(name)
        take = wanted > 0 and len(members) > 1 and all(left[member] > 1 for member in members)
        chosen.append(take)
        if take:
            wanted -= 1
            left.subtract(members)
    return chosen


def _improve(sides: Sides, divergence: float) -> bool:
    """Exchanges names so that the divergence grows; False where no way was found."""
    import numpy as np

    needed = round(divergence, DECIMALS)
    after = sides.after_moving(to_test=True)
    # Stable: among ties the name that the seed puts first.
    first = [int(name) for name in np.argsort(-after, kind="stable")[:STARTS] if after[name] > -1]
    if any(_exchange(sides, [name], needed, to_test=True) for name in first):
        return True
    # Names that share a compound hold each other where they are: they must go together.
    for holders in sides.shared():
        for to_test in (False, True):
            together = [int(name) for name in holders if sides.in_test[name] != to_test]
            if len(together) <= MOST_TOGETHER and _exchange(
                sides, together, needed, to_test=to_test
            ):
                return True
    return False


def _exchange(sides: Sides, together: list[int], needed: float, *, to_test: bool) -> bool:
    """Moves names to one side, and for each of them the best one to the other.

    Args:
        sides: As before where False is returned.
        together: Names on one side.
        needed: What the divergence must exceed.
        to_test: Where they go.

    Returns:
        Whether the divergence does.
    """
    import numpy as np

    moved: list[int] = []
    for name in together:
        if to_test and not sides.may_be_tested(name):
            break
        sides.move(name)
        moved.append(name)
    else:
        for _ in together:
            after = sides.after_moving(to_test=not to_test)
            after[moved] = -np.inf
            name = int(np.argmax(after))
            if after[name] == -np.inf:
                break
            sides.move(name)
            moved.append(name)
        else:
            if round(sides.divergence, DECIMALS) > needed:
                return True
    for name in reversed(moved):
        sides.move(name)
    return False
