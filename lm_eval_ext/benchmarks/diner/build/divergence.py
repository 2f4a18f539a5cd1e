"""Compounds of dish names, and how far two sets of names diverge in them.

The paper (section 3.3) calls subsets of a name's component set compounds, and splits by the
target maximum compound divergence of Shaw et al. (2021), after Keysers et al. (2020).

Names on two sides, and what moving any of them would do to the divergence.

Only sums over the compounds of a name change when it moves. So the divergence after each
possible move is found in one pass over all names, from the counts as they stand.
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

COMPOUND_ALPHA = 0.1
"""The exponent of the training side for compounds (Keysers et al. 2020, section 2)."""

ATOM_ALPHA = 0.5
"""The same for single components."""


def compounds(components: Iterable[Component]) -> tuple[Compound, ...]:
    """All subsets of a component set with two members or more, the whole set among them.

    Single components are no compounds: each of the test side must occur in training, so names
    could never diverge in them.

    Args:
        components: Of one name; their order does not matter, and repeats count once.
    """
    members = sorted(set(components))
    return tuple(
        subset for size in range(2, len(members) + 1) for subset in combinations(members, size)
    )


def count(names: Iterable[Iterable[Component]]) -> Counter[Compound]:
    """In how many of the names each compound occurs."""
    return Counter(compound for components in names for compound in compounds(components))


def divergence(
    train: Mapping[C, int], test: Mapping[C, int], *, alpha: float = COMPOUND_ALPHA
) -> float:
    """1 minus the Chernoff coefficient of two distributions.

    With the frequencies p in training and q in test it is 1 - sum of p^alpha q^(1-alpha): 0
    for equal distributions, 1 for disjoint ones. A small alpha asks whether what is tested
    occurs in training at all, and less how often.

    Args:
        train: Counts.
        test: Counts.
        alpha: Above 0 and below 1.

    Returns:
        0 to 1; 1 where a side is empty.
    """
    total_train, total_test = sum(train.values()), sum(test.values())
    if not total_train or not total_test:
        return 1.0
    coefficient = math.fsum(
        (train[key] / total_train) ** alpha * (count / total_test) ** (1 - alpha)
        for key, count in test.items()
        if train.get(key)
    )
    # Rounding may bring it above 1.
    return max(0.0, 1.0 - coefficient)


DECIMALS = 12
"""Divergences that agree so far are ties: the last bits depend on the processor."""


class Sides:
    """A division of names into training and test that can be changed.

    Attributes:
        in_test: Which names are tested.
        divergence: Of the compounds, training against test.
    """

    def __init__(self, names: Sequence[Sequence[Component]], in_test: Sequence[bool]) -> None:
        """Counts compounds and components.

        Args:
            names: The components of every name.
            in_test: The side of each; all names in test have two components or more.
        """
        import numpy as np

        self.in_test = np.array(in_test, dtype=bool)
        self._compounds = _Sums([compounds(name) for name in names])
        self._atoms = _Sums([tuple(sorted(set(name))) for name in names])
        self._train = self._compounds.counts(~self.in_test)
        self._test = self._compounds.counts(self.in_test)
        self._in_train = self._atoms.counts(~self.in_test)
        most = int((self._train + self._test).max(initial=0)) + 2
        self._p = np.array([float(n) ** COMPOUND_ALPHA for n in range(most)])
        self._q = np.array([float(n) ** (1 - COMPOUND_ALPHA) for n in range(most)])

    @property
    def divergence(self) -> float:
        """Of the compounds, training against test."""
        train, test = self._train.sum(keepdims=True), self._test.sum(keepdims=True)
        total = (self._p[self._train] * self._q[self._test]).sum(keepdims=True)
        return float(_scaled(total, train, test)[0])

    def after_moving(self, *, to_test: bool) -> "NDArray[np.float64]":
        """The divergence after moving one name, for each of them.

        Args:
            to_test: From training to test, or the other way.

        Returns:
            Rounded to :data:`DECIMALS`; minus infinity for a name that is on the other side
            already, has no compound, or has a component that training would lose.
        """
        import numpy as np

        sign = 1 if to_test else -1
        # Counts below 0 belong to compounds of names on the other side: they are not asked for.
        train, test = np.maximum(self._train - sign, 0), np.maximum(self._test + sign, 0)
        now = self._p[self._train] * self._q[self._test]
        change = self._compounds.sums(self._p[train] * self._q[test] - now)
        sizes = sign * self._compounds.sizes
        found = _scaled(now.sum() + change, self._train.sum() - sizes, self._test.sum() + sizes)
        legal = (self._compounds.sizes > 0) & (self.in_test != to_test)
        if to_test:
            legal &= self._atoms.sums(self._in_train == 1) == 0
        asked: NDArray[np.float64] = np.where(legal, np.round(found, DECIMALS), -np.inf)
        return asked

    def may_be_tested(self, name: int) -> bool:
        """Whether training keeps each component of a name of its own when the name leaves."""
        return bool((self._in_train[self._atoms.of(name)] > 1).all())

    def move(self, name: int) -> None:
        """Puts a name on the other side."""
        sign = -1 if self.in_test[name] else 1
        held = self._compounds.of(name)
        self._train[held] -= sign
        self._test[held] += sign
        self._in_train[self._atoms.of(name)] -= sign
        self.in_test[name] = not self.in_test[name]

    def shared(self) -> "list[NDArray[np.int64]]":
        """The names that hold a compound which both sides have, one list for each compound.

        The compounds that take most from the divergence come first.
        """
        import numpy as np

        taken = np.round(self._p[self._train] * self._q[self._test], DECIMALS)
        order = np.argsort(-taken, kind="stable")
        return [self._compounds.holders(number) for number in order[: np.count_nonzero(taken)]]


class _Sums:
    """What each name holds, as numbers, one name behind the other."""

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
        """The things that a name holds; no two are equal."""
        end = self._ends[name]
        return self._flat[end - self.sizes[name] : end]

    def holders(self, thing: int) -> "NDArray[np.int64]":
        """The names that hold a thing, in their order."""
        found: NDArray[np.int64] = self._owner[self._flat == thing]
        return found

    def counts(self, names: "NDArray[np.bool_]") -> "NDArray[np.int64]":
        """In how many of these names each thing occurs."""
        import numpy as np

        return np.bincount(self._flat[np.repeat(names, self.sizes)], minlength=self._kinds)

    def sums(self, values: "NDArray[Any]") -> "NDArray[np.float64]":
        """The sum of the things' values, for each name."""
        import numpy as np

        weights: NDArray[np.float64] = values[self._flat].astype(float)
        return np.bincount(self._owner, weights, len(self.sizes)).astype(float)


def _scaled(
    total: "NDArray[np.float64]", train: "NDArray[np.int64]", test: "NDArray[np.int64]"
) -> "NDArray[np.float64]":
    """The divergence, where each side's total comes to the power that its counts have."""
    import numpy as np

    # Numbers of names on the other side, which nobody asks for, may be negative.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 1 - total / (train**COMPOUND_ALPHA * test ** (1 - COMPOUND_ALPHA))
    one_empty: NDArray[np.float64] = np.where((train == 0) | (test == 0), 1.0, found)
    return one_empty
