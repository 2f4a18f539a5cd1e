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
from typing import TYPE_CHECKING, Any, TypeVar

from lm_eval_ext.benchmarks.diner.glossary import Component, Components
from lm_eval_ext.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Values = NDArray[np.float64]
    Positions = NDArray[np.intp]

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

MAX_TOGETHER = 20
"""Largest group of names that is swapped together."""

ILLEGAL = float("-inf")
"""In place of the divergence after a move that is not possible."""

ComponentT = TypeVar("ComponentT", Component, str)


def compounds(components: Iterable[ComponentT], extent: str) -> list[tuple[ComponentT, ...]]:
    """Return the compounds of a name: the whole set of its components, or all its subsets.

    The paper says "subsets", but of its 3,803 names only 2,933 compounds at most are different
    (table 4): too few even for pairs. Whole sets fit best, also in the mix of the categories.

    All have two components or more: every test component must occur in training, so names cannot
    diverge in them. Order and repeats do not matter.
    """
    members = sorted(set(components))
    if extent == "whole":
        return [tuple(members)] if len(members) > 1 else []
    subsets: list[tuple[ComponentT, ...]] = []
    for size in range(2, len(members) + 1):
        subsets.extend(combinations(members, size))
    return subsets


def search(
    names: Mapping[str, Components], *, target: float, compounds: str, seed: int
) -> tuple[list[str], list[float]]:
    """Divide names so that the compounds of training and test diverge.

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

    best_test: list[str] = []
    best_course = [-1.0]
    # disable=None: a bar on terminals only.
    with tqdm(desc="Exchanging names", unit=" exchanges", disable=None) as bar:
        for attempt in range(ATTEMPTS):
            order = sorted(names)
            random.Random(f"{seed}:{attempt}").shuffle(order)
            components = [names[name] for name in order]
            partition = Partition(components, _start(components), compounds)
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
            if course[-1] > best_course[-1]:
                best_test = sorted(compress(order, partition.in_test))
                best_course = course
            if course[-1] >= target:
                break
    return best_test, best_course


def _start(names: Sequence[Components]) -> list[bool]:
    """Return which names start in test.

    Names are taken in the given order, if training keeps all of their components.
    """
    in_training = Counter[Component]()
    for name in names:
        in_training.update(set(name))
    missing = round(len(names) / (1 + RATIO))
    in_test = []
    for name in names:
        components = set(name)
        keeps_components = all(in_training[component] > 1 for component in components)
        is_taken = missing > 0 and len(components) > 1 and keeps_components
        in_test.append(is_taken)
        if is_taken:
            missing -= 1
            in_training.subtract(components)
    return in_test


def _improve(partition: "Partition", divergence: float) -> bool:
    """Swap names so that the divergence increases; return False if no such swap is found."""
    import numpy as np

    to_exceed = round(divergence, DECIMALS)
    after = partition.after_moving(to_test=True)
    # The sort is stable: of ties, the name that the seed puts first.
    for name in np.argsort(-after, kind="stable")[:STARTS]:
        is_legal = after[name] != ILLEGAL
        if is_legal and _exchange(partition, [int(name)], to_exceed, to_test=True):
            return True
    # While other names with the same compound stay, moving one of them gains little. So all names
    # with a compound are moved together.
    for holders in partition.shared():
        for to_test in (False, True):
            together = [int(name) for name in holders if partition.in_test[name] != to_test]
            if len(together) > MAX_TOGETHER:
                continue
            if _exchange(partition, together, to_exceed, to_test=to_test):
                return True
    return False


def _exchange(
    partition: "Partition", together: list[int], to_exceed: float, *, to_test: bool
) -> bool:
    """Move names from one side to the other, and as many back, each time the best one.

    If the divergence does not exceed ``to_exceed``, the moves are undone and False is returned.
    """
    moved: list[int] = []
    is_complete = _move_all(partition, together, moved, to_test=to_test)
    is_complete = is_complete and _move_best(partition, len(together), moved, to_test=not to_test)
    if is_complete and round(partition.divergence, DECIMALS) > to_exceed:
        return True
    for name in reversed(moved):
        partition.move(name)
    return False


def _move_all(
    partition: "Partition", names: Sequence[int], moved: list[int], *, to_test: bool
) -> bool:
    """Move names and list them in ``moved``, until one cannot be; return whether all were."""
    for name in names:
        if to_test and not partition.may_be_tested(name):
            return False
        partition.move(name)
        moved.append(name)
    return True


def _move_best(partition: "Partition", count: int, moved: list[int], *, to_test: bool) -> bool:
    """Move so many names that are not in ``moved``, each time the best one, and list them there.

    Returns:
        False if there are too few.
    """
    import numpy as np

    for _ in range(count):
        after = partition.after_moving(to_test=to_test)
        after[moved] = ILLEGAL
        name = int(np.argmax(after))
        if after[name] == ILLEGAL:
            return False
        partition.move(name)
        moved.append(name)
    return True


class Partition:
    """A division of names into training and test, one name of which can be moved at a time.

    Moving a name changes only the terms of its own compounds. So the divergences after all
    possible moves are computed together, in one pass over all names.

    Attributes:
        in_test: For each name, whether it is in test.
        train: For each compound, the number of training names that have it.
        test: For each compound, the number of test names that have it.
        atoms_in_train: For each component, the number of training names that have it.
        atoms_in_test: For each component, the number of test names that have it.
    """

    def __init__(self, names: Sequence[Components], in_test: Sequence[bool], extent: str) -> None:
        """Take components and side of every name, and which compounds count."""
        import numpy as np

        self.in_test = np.array(in_test, dtype=bool)
        self._compounds = _incidence([compounds(name, extent) for name in names])
        self._atoms = _incidence([sorted(set(name)) for name in names])
        self._holders = self._compounds.tocsc()
        self._sizes: Counts = np.diff(self._compounds.indptr)
        self.train = self._compounds.T @ ~self.in_test
        self.test = self._compounds.T @ self.in_test
        self.atoms_in_train = self._atoms.T @ ~self.in_test
        self.atoms_in_test = self._atoms.T @ self.in_test
        counts = np.arange(len(names) + 2)
        # Powers of all counts that may occur, to be looked up.
        self._train_powers = counts**ALPHA
        self._test_powers = counts ** (1 - ALPHA)

    @property
    def divergence(self) -> float:
        """1 minus the Chernoff coefficient of the compounds' distributions on both sides.

        With frequencies p in training and q in test, it is 1 - sum of p^alpha q^(1-alpha): 0 for
        equal distributions, 1 for disjoint ones or if a side is empty. The smaller alpha, the less
        it matters how often something occurs in training.
        """
        train_total = self.train.sum(keepdims=True)
        test_total = self.test.sum(keepdims=True)
        overlap = self._terms(self.train, self.test).sum(keepdims=True)
        return float(_scaled(overlap, train_total, test_total)[0])

    def _terms(self, train: "Counts", test: "Counts") -> "Values":
        """Return train^alpha test^(1-alpha) for each compound."""
        terms: Values = self._train_powers[train] * self._test_powers[test]
        return terms

    def after_moving(self, *, to_test: bool) -> "Values":
        """Return, for each name, the divergence after moving it to test (or to training).

        It is rounded to :data:`DECIMALS`; :data:`ILLEGAL` for a name that is already there, has no
        compound, or has a component that training would lose.
        """
        import numpy as np

        sign = 1 if to_test else -1
        # Counts below 0 belong to compounds of names that cannot be moved; they are not used.
        train = np.maximum(self.train - sign, 0)
        test = np.maximum(self.test + sign, 0)
        terms = self._terms(self.train, self.test)
        change = self._compounds @ (self._terms(train, test) - terms)
        sizes = sign * self._sizes
        divergences = _scaled(
            terms.sum() + change, self.train.sum() - sizes, self.test.sum() + sizes
        )
        is_legal = (self._sizes > 0) & (self.in_test != to_test)
        if to_test:
            is_legal &= self._atoms @ (self.atoms_in_train == 1) == 0
        after: Values = np.where(is_legal, np.round(divergences, DECIMALS), ILLEGAL)
        return after

    def may_be_tested(self, name: int) -> bool:
        """Return whether training has all components of one of its names without that name."""
        return bool((self.atoms_in_train[_indices(self._atoms, name)] > 1).all())

    def move(self, name: int) -> None:
        """Move a name to the other side."""
        sign = -1 if self.in_test[name] else 1
        compounds_of_name = _indices(self._compounds, name)
        atoms = _indices(self._atoms, name)
        self.train[compounds_of_name] -= sign
        self.test[compounds_of_name] += sign
        self.atoms_in_train[atoms] -= sign
        self.atoms_in_test[atoms] += sign
        self.in_test[name] = not self.in_test[name]

    def shared(self) -> "list[Positions]":
        """Return, for each compound that both sides have, the names with it.

        Compounds that reduce the divergence most come first.
        """
        import numpy as np

        terms = np.round(self._terms(self.train, self.test), DECIMALS)
        order = np.argsort(-terms, kind="stable")
        return [_indices(self._holders, compound) for compound in order[: np.count_nonzero(terms)]]


def _incidence(rows: Sequence[Sequence[object]]) -> Any:
    """Return a sparse matrix: a column per value, ones where a row has the value."""
    import numpy as np
    from scipy.sparse import csr_array

    column_of: dict[object, int] = {}
    columns: list[int] = []
    ends = [0]
    for row in rows:
        for value in row:
            columns.append(column_of.setdefault(value, len(column_of)))
        ends.append(len(columns))
    entries = np.ones(len(columns), dtype=np.int64)
    content = (entries, np.array(columns, int), np.array(ends))
    return csr_array(content, shape=(len(rows), len(column_of)))


def _indices(matrix: Any, number: int) -> "Positions":
    """Return the columns of a row, or the rows of a column."""
    indices: Positions = matrix.indices[matrix.indptr[number] : matrix.indptr[number + 1]]
    return indices


def _scaled(overlap: "Values", train_total: "Counts", test_total: "Counts") -> "Values":
    """Return the divergence.

    Args:
        overlap: The sum over compounds of train^alpha test^(1-alpha).
        train_total: The sum of train over compounds.
        test_total: The sum of test over compounds.
    """
    import numpy as np

    # Totals for names that cannot be moved, which are not used, may be negative.
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = 1 - overlap / (train_total**ALPHA * test_total ** (1 - ALPHA))
    is_empty = (train_total == 0) | (test_total == 0)
    scaled: Values = np.where(is_empty, 1.0, divergence)
    return scaled
