"""Compounds, divergence and the TMCD split, compared with independent computations."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_corpus import GLOSSARY
from small_corpus import names as small_names

from lm_eval_ext.benchmarks.diner.build import MIX
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Components, Glossary, clean_name
from lm_eval_ext.benchmarks.diner.records import Categories
from lm_eval_ext.benchmarks.diner.tmcd import compounds, search

pytestmark = pytest.mark.slow

Names = Mapping[str, Components]
WHICH = ("whole", "subsets")


def drawn(rng: random.Random, count: int, kinds: int) -> Names:
    """Names of one to five components, some of them twice in a name."""
    parts = [Component(rng.choice(KINDS), str(number)) for number in range(kinds)]
    return {f"n{n}": tuple(rng.choices(parts, k=rng.randint(1, 5))) for n in range(count)}


def plainly(train: list[set[Component]], test: list[set[Component]], which: str) -> float:
    """The divergence by the definition, from sets and fractions."""
    counts = [
        Counter(
            frozenset(subset)
            for name in side
            for size in range(2, len(name) + 1)
            for subset in itertools.combinations(name, size)
            if which == "subsets" or size == len(name)
        )
        for side in (train, test)
    ]
    totals = [sum(side.values()) for side in counts]
    if not all(totals):
        return 1.0
    terms = [
        math.exp(
            0.1 * math.log(Fraction(counts[0][compound], totals[0]))
            + 0.9 * math.log(Fraction(counts[1][compound], totals[1]))
        )
        for compound in counts[0].keys() & counts[1].keys()
    ]
    return 1 - math.fsum(terms)


def check(names: Names, tested: list[str], course: list[float], target: float, which: str) -> None:
    """What must hold of every split."""
    test = [set(names[name]) for name in tested]
    train = [set(found) for name, found in names.items() if name not in set(tested)]
    assert tested == sorted(set(tested))
    assert set().union(*test) <= set().union(*train)
    assert all(len(name) > 1 for name in test)
    assert len(test) <= round(len(names) / 5.5)
    assert course == sorted(set(course))
    assert course[-1] == pytest.approx(plainly(train, test, which), abs=1e-12, rel=0)
    assert all(before < target for before in course[:-1])


def test_compounds_of_three_components() -> None:
    assert compounds("cabc", "whole") == [tuple("abc")]
    assert compounds("cabc", "subsets") == [tuple(one) for one in ("ab", "ac", "bc", "abc")]
    for which in WHICH:
        assert compounds("bb", which) == []
        assert compounds("ba", which) == [("a", "b")]


@settings(max_examples=12)
@given(
    st.integers(0, 10**6),
    st.integers(20, 80),
    st.sampled_from([0.6, 0.8, 0.98, 1.0]),
    st.sampled_from(WHICH),
)
def test_any_names_are_split_as_they_should(
    seed: int, count: int, target: float, which: str
) -> None:
    names = drawn(random.Random(seed), count, 20)
    found = search(names, target=target, compounds=which, seed=seed)
    check(names, *found, target, which)
    backwards = dict(reversed(names.items()))
    assert search(backwards, target=target, compounds=which, seed=seed) == found


def test_whole_sets_come_nearest_to_the_papers_figures(
    diner_names: list[str], published: Glossary
) -> None:
    """The reason for the default: the mix of categories (table 2)."""
    titles = map(clean_name, diner_names)
    names = {name: found for name in titles if (found := published.parse(name))}
    for which, distance in (("whole", 0.39), ("subsets", 0.53)):
        tested, course = search(names, target=0.98, compounds=which, seed=0)
        check(names, tested, course, 0.98, which)
        assert course[-1] >= 0.98 and len(tested) == round(len(names) / 5.5)
        known = Categories(found for name, found in names.items() if name not in tested)
        mix = Counter(known.of(names[name]) or "none" for name in tested)
        found = sum(abs(mix[one] / len(tested) - count / 694) for one, count in MIX.items()) / 2
        assert round(found, 2) == distance


def test_a_lower_target_is_a_part_of_the_way() -> None:
    glossary = Glossary(GLOSSARY)
    names = {name: glossary.parse(name) or () for name in small_names(600)}
    early, late = (search(names, target=one, compounds="subsets", seed=2) for one in (0.8, 0.98))
    check(names, *early, 0.8, "subsets")
    assert late[1][: len(early[1])] == early[1]
    assert early[1][-1] >= 0.8 and late[1][-1] >= 0.98
    # A divergence that is met exactly is reached.
    assert search(names, target=early[1][-1], compounds="subsets", seed=2) == early
