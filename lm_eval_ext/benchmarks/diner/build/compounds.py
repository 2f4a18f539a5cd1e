"""Compounds of dish names, and how far two sets of names diverge in them.

The paper (section 3.3) calls subsets of a name's component set compounds, and splits by the
target maximum compound divergence of Shaw et al. (2021), after Keysers et al. (2020).
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from typing import TypeVar

from lm_eval_ext.benchmarks.diner.glossary import Component

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
