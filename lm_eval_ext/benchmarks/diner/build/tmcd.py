"""The split by target maximum compound divergence, TMCD (paper, section 3.3).

The greedy search of Shaw et al. (2021, section 4.3) swaps a training name and a test name if that
increases the divergence. They take the first such pair; we take the best move to test and then
the best move back, which needs fewer swaps.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lm_eval_ext.benchmarks.diner.build.divergence import DECIMALS, WHOLE, Partition
from lm_eval_ext.benchmarks.diner.glossary import Component
from lm_eval_ext.errors import DataError

RATIO = 4.5
"""Training names per test name (paper, section 3.4)."""

ATTEMPTS = 8
"""Number of initial divisions that are tried until one reaches the target divergence."""

STARTS = 50
"""Number of moves to test that are tried for a swap, best first."""

MOST_TOGETHER = 20
"""Largest group of names that is swapped together."""

Names = Mapping[str, tuple[Component, ...]]
"""Components by dish name."""


@dataclass(frozen=True)
class Split:
    """A division of names.

    Attributes:
        train: Sorted.
        test: Sorted; all have two or more components, each of which occurs in ``train``.
        course: The divergence at the start and after each swap.
        reached: Whether the target divergence was reached.
    """

    train: tuple[str, ...]
    test: tuple[str, ...]
    course: tuple[float, ...]
    reached: bool

    @property
    def divergence(self) -> float:
        """The compound divergence of training and test."""
        return self.course[-1]


def split(
    names: Names,
    *,
    target: float,
    compounds: str = WHOLE,
    seed: int = 0,
    ratio: float = RATIO,
    progress: Callable[[float], None] | None = None,
) -> Split:
    """Divides names so that the compounds of training and test diverge.

    The search stops at the divergence ``target``; 1 searches for the maximum. The initial divisions
    depend on the seed, but not on the order of the names. ``compounds`` is one of
    :data:`~lm_eval_ext.benchmarks.diner.build.divergence.COMPOUNDS`; ``progress`` is called with
    the divergence after each swap.

    Raises:
        DataError: No name can be in test.
    """
    best: Split | None = None
    for attempt in range(ATTEMPTS):
        rng = random.Random(f"{seed}:{attempt}")
        found = _search(names, target, rng, compounds=compounds, ratio=ratio, progress=progress)
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
    *,
    compounds: str,
    ratio: float,
    progress: Callable[[float], None] | None,
) -> Split:
    order = sorted(names)
    rng.shuffle(order)
    listed = [names[name] for name in order]
    partition = Partition(listed, _start(listed, ratio), compounds)
    if not partition.in_test.any():
        raise DataError(
            f"none of {len(order):,} dish names can be in test: each has one component, or one "
            "that no other name has; use a larger corpus or another glossary"
        )
    course = [partition.divergence]
    while course[-1] < target and _improve(partition, course[-1]):
        course.append(partition.divergence)
        if progress is not None:
            progress(course[-1])
    tested = {name for name, in_test in zip(order, partition.in_test, strict=True) if in_test}
    return Split(
        train=tuple(sorted(set(order) - tested)),
        test=tuple(sorted(tested)),
        course=tuple(course),
        reached=course[-1] >= target,
    )


def _start(names: list[tuple[Component, ...]], ratio: float) -> list[bool]:
    """Takes names for test in the given order, if training keeps all of their components."""
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


def _improve(partition: Partition, divergence: float) -> bool:
    """Swaps names so that the divergence increases; False if no such swap is found."""
    import numpy as np

    needed = round(divergence, DECIMALS)
    after = partition.after_moving(to_test=True)
    # The sort is stable: of ties, the name that the seed puts first.
    first = [int(name) for name in np.argsort(-after, kind="stable")[:STARTS] if after[name] > -1]
    if any(_exchange(partition, [name], needed, to_test=True) for name in first):
        return True
    # While other names with the same compound stay, moving one of them gains little. So all names
    # with a compound are moved together.
    for holders in partition.shared():
        for to_test in (False, True):
            together = [int(name) for name in holders if partition.in_test[name] != to_test]
            if len(together) <= MOST_TOGETHER and _exchange(
                partition, together, needed, to_test=to_test
            ):
                return True
    return False


def _exchange(partition: Partition, together: list[int], needed: float, *, to_test: bool) -> bool:
    """Moves names from one side to the other, and as many back, each time the best one.

    If the divergence does not exceed ``needed``, the moves are undone and False is returned.
    """
    import numpy as np

    moved: list[int] = []
    for name in together:
        if to_test and not partition.may_be_tested(name):
            break
        partition.move(name)
        moved.append(name)
    else:
        for _ in together:
            after = partition.after_moving(to_test=not to_test)
            after[moved] = -np.inf
            name = int(np.argmax(after))
            if after[name] == -np.inf:
                break
            partition.move(name)
            moved.append(name)
        else:
            if round(partition.divergence, DECIMALS) > needed:
                return True
    for name in reversed(moved):
        partition.move(name)
    return False
