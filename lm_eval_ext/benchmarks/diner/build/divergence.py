"""Compound divergence between training and test names, and how moving a name changes it.

A compound is a combination of a name's components. Which ones count is not clear from the paper
(section 3.3): see :data:`COMPOUNDS`. Divergence is defined by Keysers et al. (2020) and used for
splitting by Shaw et al. (2021).
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

from lm_eval_ext.benchmarks.diner.glossary import Component

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


C = TypeVar("C", bound=Hashable)

Compound = tuple[Component, ...]
"""Two or more components, sorted."""

WHOLE, PAIRS, SUBSETS = "whole", "pairs", "subsets"
COMPOUNDS = (WHOLE, PAIRS, SUBSETS)
"""What counts as a compound: the whole component set of a name, its pairs, or all its subsets.

The paper says "subsets", but of its 3,803 names only 2,933 compounds at most are different (table
4): too few even for pairs. Whole sets fit best, also in the mix of the categories.
"""

COMPOUND_ALPHA = 0.1
"""The exponent of the training side for compounds (Keysers et al. 2020, section 2)."""

ATOM_ALPHA = 0.5
"""The same for single components, which Keysers et al. call atoms."""


def compounds(components: Iterable[Component], which: str) -> tuple[Compound, ...]:
    """The compounds of a name, by one of :data:`COMPOUNDS`; all have two components or more.

    Single components are excluded: every test component must occur in training, so names cannot
    diverge in them. Order and repeats do not matter.
    """
    members = sorted(set(components))
    most = len(members)
    sizes = {WHOLE: range(max(2, most), most + 1), PAIRS: (2,), SUBSETS: range(2, most + 1)}[which]
    return tuple(subset for size in sizes for subset in combinations(members, size))


def count(names: Iterable[Iterable[Component]], which: str) -> Counter[Compound]:
    """Counts the names that each compound occurs in."""
    return Counter(compound for components in names for compound in compounds(components, which))


def divergence(
    train: Mapping[C, int], test: Mapping[C, int], *, alpha: float = COMPOUND_ALPHA
) -> float:
    """1 minus the Chernoff coefficient of two distributions, given by counts.

    With frequencies p in training and q in test, it is 1 - sum of p^alpha q^(1-alpha): 0 for equal
    distributions, 1 for disjoint ones or if a side is empty. The smaller alpha (between 0 and 1),
    the less it matters how often something occurs in training.
    """
    total_train, total_test = sum(train.values()), sum(test.values())
    if not total_train or not total_test:
        return 1.0
    coefficient = math.fsum(
        (train[key] / total_train) ** alpha * (count / total_test) ** (1 - alpha)
        for key, count in test.items()
        if train.get(key)
    )
    # The coefficient may exceed 1 by a rounding error.
    return max(0.0, 1.0 - coefficient)


DECIMALS = 12
"""Divergences that agree in this many decimals are ties: the last bits depend on the processor."""


class Partition:
    """A division of names into training and test, one name of which can be moved at a time.

    Moving a name changes only the terms of its own compounds. So the divergences after all
    possible moves are computed together, in one pass over all names.

    Attributes:
        in_test: For each name, whether it is in test.
    """

    def __init__(
        self, names: Sequence[Sequence[Component]], in_test: Sequence[bool], which: str
    ) -> None:
        """Takes components and side of every name, and what counts as a compound.

        Test names have two components or more.
        """
        import numpy as np

        self.in_test = np.array(in_test, dtype=bool)
        self._compounds = _Incidence([compounds(name, which) for name in names])
        self._atoms = _Incidence([tuple(sorted(set(name))) for name in names])
        self._train = self._compounds.counts(~self.in_test)
        self._test = self._compounds.counts(self.in_test)
        self._in_train = self._atoms.counts(~self.in_test)
        most = int((self._train + self._test).max(initial=0)) + 2
        self._p = np.array([float(n) ** COMPOUND_ALPHA for n in range(most)])
        self._q = np.array([float(n) ** (1 - COMPOUND_ALPHA) for n in range(most)])

    @property
    def divergence(self) -> float:
        """The compound divergence of training and test."""
        train, test = self._train.sum(keepdims=True), self._test.sum(keepdims=True)
        total = (self._p[self._train] * self._q[self._test]).sum(keepdims=True)
        return float(_scaled(total, train, test)[0])

    def after_moving(self, *, to_test: bool) -> "NDArray[np.float64]":
        """For each name, the divergence after moving it to test (or to training).

        Rounded to :data:`DECIMALS`; minus infinity for a name that is already there, has no
        compound, or has a component that training would lose.
        """
        import numpy as np

        sign = 1 if to_test else -1
        # Counts below 0 belong to compounds of names that cannot be moved; they are not used.
        train, test = np.maximum(self._train - sign, 0), np.maximum(self._test + sign, 0)
        now = self._p[self._train] * self._q[self._test]
        change = self._compounds.sums(self._p[train] * self._q[test] - now)
        sizes = sign * self._compounds.sizes
        found = _scaled(now.sum() + change, self._train.sum() - sizes, self._test.sum() + sizes)
        legal = (self._compounds.sizes > 0) & (self.in_test != to_test)
        if to_test:
            legal &= self._atoms.sums(self._in_train == 1) == 0
        moved: NDArray[np.float64] = np.where(legal, np.round(found, DECIMALS), -np.inf)
        return moved

    def may_be_tested(self, name: int) -> bool:
        """Whether training still has all components of one of its names without that name."""
        return bool((self._in_train[self._atoms.of(name)] > 1).all())

    def move(self, name: int) -> None:
        """Moves a name to the other side."""
        sign = -1 if self.in_test[name] else 1
        held = self._compounds.of(name)
        self._train[held] -= sign
        self._test[held] += sign
        self._in_train[self._atoms.of(name)] -= sign
        self.in_test[name] = not self.in_test[name]

    def shared(self) -> "list[NDArray[np.int64]]":
        """For each compound that both sides have, the names with it.

        Compounds that reduce the divergence most come first.
        """
        import numpy as np

        taken = np.round(self._p[self._train] * self._q[self._test], DECIMALS)
        order = np.argsort(-taken, kind="stable")
        return [self._compounds.holders(number) for number in order[: np.count_nonzero(taken)]]


class _Incidence:
    """Sums over the things (compounds or components) of each name, which are numbered."""

    def __init__(self, held: Sequence[Sequence[object]]) -> None:
        import numpy as np

        numbers: dict[object, int] = {}
        flat = [numbers.setdefault(thing, len(numbers)) for things in held for thing in things]
        self._flat = np.array(flat, dtype=np.int64)
        self.sizes = np.array([len(things) for things in held], dtype=np.int64)
        self._owner = np.repeat(np.arange(len(held)), self.sizes)
        self._ends = np.cumsum(self.sizes)
        self._kinds = len(numbers)

    def of(self, name: int) -> "NDArray[np.int64]":
        """The things of a name, all different."""
        end = self._ends[name]
        return self._flat[end - self.sizes[name] : end]

    def holders(self, thing: int) -> "NDArray[np.int64]":
        """The names that have a thing, in order."""
        found: NDArray[np.int64] = self._owner[self._flat == thing]
        return found

    def counts(self, names: "NDArray[np.bool_]") -> "NDArray[np.int64]":
        """For each thing, how many of the selected names have it."""
        import numpy as np

        return np.bincount(self._flat[np.repeat(names, self.sizes)], minlength=self._kinds)

    def sums(self, values: "NDArray[Any]") -> "NDArray[np.float64]":
        """For each name, the sum of its things' values."""
        import numpy as np

        weights: NDArray[np.float64] = values[self._flat].astype(float)
        return np.bincount(self._owner, weights, len(self.sizes)).astype(float)


def _scaled(
    total: "NDArray[np.float64]", train: "NDArray[np.int64]", test: "NDArray[np.int64]"
) -> "NDArray[np.float64]":
    """The divergence from the sum over compounds of train^alpha test^(1-alpha) and both totals."""
    import numpy as np

    # Totals for names that cannot be moved, which are not used, may be negative.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 1 - total / (train**COMPOUND_ALPHA * test ** (1 - COMPOUND_ALPHA))
    one_empty: NDArray[np.float64] = np.where((train == 0) | (test == 0), 1.0, found)
    return one_empty
