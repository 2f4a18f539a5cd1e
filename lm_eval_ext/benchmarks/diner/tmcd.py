"""The split by target maximum compound divergence, TMCD (paper, section 3.3).

A compound is a combination of a name's components. Divergence is defined by Keysers et al. (2020).
The greedy search of Shaw et al. (2021, section 4.3) swaps a training name and a test name if that
increases the divergence. They take the first such pair; we take the best move to test and then
the best move back, which needs fewer swaps.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, compress
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.diner.glossary import Components
from lm_eval_ext.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Values = NDArray[np.float64]

ALPHA = 0.1
"""The exponent of the training side for compounds (Keysers et al. 2020, section 2)."""

DECIMALS = 12
"""Divergences that agree in this many decimals are ties: the last bits depend on the processor."""

RATIO = 4.5
"""Training names per test name (paper, section 3.4)."""

ATTEMPTS = 8
"""Number of initial divisions that are tried until one reaches the target divergence."""

STARTS = 50
"""Number of moves to test that are tried for a swap, best first."""

MOST_TOGETHER = 20
"""Largest group of names that is swapped together."""


def compounds(components: Iterable[Any], which: str) -> list[tuple[Any, ...]]:
    """The compounds of a name: the whole set of its components, or all its subsets.

    The paper says "subsets", but of its 3,803 names only 2,933 compounds at most are different
    (table 4): too few even for pairs. Whole sets fit best, also in the mix of the categories.

    All have two components or more: every test component must occur in training, so names cannot
    diverge in them. Order and repeats do not matter.
    """
    members = sorted(set(components))
    least = max(2, len(members)) if which == "whole" else 2
    sizes = range(least, len(members) + 1)
    return [subset for size in sizes for subset in combinations(members, size)]


def search(
    names: Mapping[str, Components], *, target: float, compounds: str, seed: int
) -> tuple[list[str], list[float]]:
    """Divides names so that the compounds of training and test diverge.

    The search stops at the divergence ``target``; 1 searches for the maximum. It starts from random
    divisions, which depend on the seed, but not on the order of the names, until one start leads to
    the target, and returns the best.

    Returns:
        The test names, sorted; all have two or more components, each of which occurs in training.
        And the course of the search: the divergence at the start and after each swap.

    Raises:
        DataError: No name can be in test.
    """
    from tqdm import tqdm

    best: tuple[list[str], list[float]] = [], [-1.0]
    # disable=None: a bar on terminals only.
    with tqdm(desc="Exchanging names", unit=" exchanges", disable=None) as bar:
        for attempt in range(ATTEMPTS):
            order = sorted(names)
            random.Random(f"{seed}:{attempt}").shuffle(order)
            listed = [names[name] for name in order]
            partition = Partition(listed, _start(listed), compounds)
            if not partition.in_test.any():
                raise DataError(
                    f"none of {len(order):,} dish names can be in test: each has one component, or "
                    "one that no other name has; use a larger corpus or another glossary"
                )
            course = [partition.divergence]
            while course[-1] < target and _improve(partition, course[-1]):
                course.append(partition.divergence)
                bar.set_postfix_str(f"divergence {course[-1]:.4f}", refresh=False)
                bar.update()
            if course[-1] > best[1][-1]:
                best = sorted(compress(order, partition.in_test)), course
            if course[-1] >= target:
                break
    return best


def _start(names: Sequence[Components]) -> list[bool]:
    """Takes names for test in the given order, if training keeps all of their components."""
    left = Counter(component for name in names for component in set(name))
    wanted = round(len(names) / (1 + RATIO))
    chosen = []
    for name in names:
        members = set(name)
        take = wanted > 0 and len(members) > 1 and all(left[member] > 1 for member in members)
        chosen.append(take)
        if take:
            wanted -= 1
            left.subtract(members)
    return chosen


def _improve(partition: "Partition", divergence: float) -> bool:
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


def _exchange(partition: "Partition", together: list[int], needed: float, *, to_test: bool) -> bool:
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


class Partition:
    """A division of names into training and test, one name of which can be moved at a time.

    Moving a name changes only the terms of its own compounds. So the divergences after all
    possible moves are computed together, in one pass over all names.

    Attributes:
        in_test: For each name, whether it is in test.
        train: For each compound, how many training names have it.
        test: The same for test names.
        atoms_in_train: The same for single components.
        atoms_in_test: The same for single components of test names.
    """

    def __init__(self, names: Sequence[Components], in_test: Sequence[bool], which: str) -> None:
        """Takes components and side of every name, and what counts as a compound."""
        import numpy as np

        self.in_test = np.array(in_test, dtype=bool)
        self._compounds = _incidence([compounds(name, which) for name in names])
        self._atoms = _incidence([sorted(set(name)) for name in names])
        self._holders = self._compounds.tocsc()
        self._sizes: Counts = np.diff(self._compounds.indptr)
        self.train, self.test = (self._compounds.T @ side for side in (~self.in_test, self.in_test))
        self.atoms_in_train = self._atoms.T @ ~self.in_test
        self.atoms_in_test = self._atoms.T @ self.in_test
        counts = np.arange(len(names) + 2)
        self._p, self._q = counts**ALPHA, counts ** (1 - ALPHA)

    @property
    def divergence(self) -> float:
        """1 minus the Chernoff coefficient of the compounds' distributions on both sides.

        With frequencies p in training and q in test, it is 1 - sum of p^alpha q^(1-alpha): 0 for
        equal distributions, 1 for disjoint ones or if a side is empty. The smaller alpha, the less
        it matters how often something occurs in training.
        """
        train, test = self.train.sum(keepdims=True), self.test.sum(keepdims=True)
        total = (self._p[self.train] * self._q[self.test]).sum(keepdims=True)
        return float(_scaled(total, train, test)[0])

    def after_moving(self, *, to_test: bool) -> "Values":
        """For each name, the divergence after moving it to test (or to training).

        Rounded to :data:`DECIMALS`; minus infinity for a name that is already there, has no
        compound, or has a component that training would lose.
        """
        import numpy as np

        sign = 1 if to_test else -1
        # Counts below 0 belong to compounds of names that cannot be moved; they are not used.
        train, test = np.maximum(self.train - sign, 0), np.maximum(self.test + sign, 0)
        now = self._p[self.train] * self._q[self.test]
        change = self._compounds @ (self._p[train] * self._q[test] - now)
        sizes = sign * self._sizes
        found = _scaled(now.sum() + change, self.train.sum() - sizes, self.test.sum() + sizes)
        legal = (self._sizes > 0) & (self.in_test != to_test)
        if to_test:
            legal &= self._atoms @ (self.atoms_in_train == 1) == 0
        moved: Values = np.where(legal, np.round(found, DECIMALS), -np.inf)
        return moved

    def may_be_tested(self, name: int) -> bool:
        """Whether training still has all components of one of its names without that name."""
        return bool((self.atoms_in_train[_of(self._atoms, name)] > 1).all())

    def move(self, name: int) -> None:
        """Moves a name to the other side."""
        sign = -1 if self.in_test[name] else 1
        held, atoms = _of(self._compounds, name), _of(self._atoms, name)
        self.train[held] -= sign
        self.test[held] += sign
        self.atoms_in_train[atoms] -= sign
        self.atoms_in_test[atoms] += sign
        self.in_test[name] = not self.in_test[name]

    def shared(self) -> "list[Counts]":
        """For each compound that both sides have, the names with it.

        Compounds that reduce the divergence most come first.
        """
        import numpy as np

        taken = np.round(self._p[self.train] * self._q[self.test], DECIMALS)
        order = np.argsort(-taken, kind="stable")
        return [_of(self._holders, one) for one in order[: np.count_nonzero(taken)]]


def _incidence(held: Sequence[Sequence[object]]) -> Any:
    """A sparse matrix: a row per name, a column per thing, ones where the name has the thing."""
    import numpy as np
    from scipy.sparse import csr_array

    numbers: dict[object, int] = {}
    flat = [numbers.setdefault(thing, len(numbers)) for things in held for thing in things]
    ends = np.cumsum([0, *map(len, held)])
    ones = np.ones(len(flat), dtype=np.int64)
    return csr_array((ones, np.array(flat, int), ends), shape=(len(held), len(numbers)))


def _of(matrix: Any, number: int) -> "Counts":
    """The columns of a row, or the rows of a column."""
    found: Counts = matrix.indices[matrix.indptr[number] : matrix.indptr[number + 1]]
    return found


def _scaled(total: "Values", train: "Counts", test: "Counts") -> "Values":
    """The divergence from the sum over compounds of train^alpha test^(1-alpha) and both totals."""
    import numpy as np

    # Totals for names that cannot be moved, which are not used, may be negative.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 1 - total / (train**ALPHA * test ** (1 - ALPHA))
    one_empty: Values = np.where((train == 0) | (test == 0), 1.0, found)
    return one_empty
