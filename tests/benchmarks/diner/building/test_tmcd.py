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

from lm_eval_ext.benchmarks.diner import tmcd
from lm_eval_ext.benchmarks.diner.build import MIX
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Components, Glossary, clean_name
from lm_eval_ext.benchmarks.diner.records import Categories
from lm_eval_ext.benchmarks.diner.tmcd import Partition, compounds, search
from lm_eval_ext.errors import DataError

pytestmark = pytest.mark.slow

Names = Mapping[str, Components]
WHICH = ("whole", "subsets")


def parsed(titles: list[str], glossary: Glossary) -> Names:
    cleaned = sorted({clean_name(title) for title in titles})
    return {name: found for name in cleaned if (found := glossary.parse(name))}


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


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(12, 40), st.integers(3, 12), st.sampled_from(WHICH))
def test_a_move_does_what_was_foretold(seed: int, count: int, kinds: int, which: str) -> None:
    rng = random.Random(seed)
    names = list(drawn(rng, count, kinds).values())
    in_test = [rng.random() < 0.3 and len(set(name)) > 1 for name in names]
    partition = Partition(names, in_test, which)
    for _ in range(6):
        to_test = rng.random() < 0.5
        after = partition.after_moving(to_test=to_test)
        side = [set(n) for n, tested in zip(names, partition.in_test, strict=True) if not tested]
        for place, name in enumerate(names):
            lost = any(sum(part in other for other in side) < 2 for part in name)
            legal = len(set(name)) > 1 and bool(partition.in_test[place]) != to_test
            assert (after[place] > -math.inf) == (legal and not (to_test and lost))
        places = [place for place, value in enumerate(after) if value > -math.inf]
        if not places:
            continue
        chosen = rng.choice(places)
        partition.move(chosen)
        train, test = (
            [set(n) for n, tested in zip(names, partition.in_test, strict=True) if tested == side]
            for side in (False, True)
        )
        assert partition.divergence == pytest.approx(plainly(train, test, which), abs=1e-12, rel=0)
        assert after[chosen] == pytest.approx(partition.divergence, abs=1e-11, rel=0)


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
    """The reason for the default: the mix of categories, and compounds per dish (table 4)."""
    names = parsed(diner_names, published)
    mix, per_dish = {}, {}
    for which in WHICH:
        tested, course = search(names, target=0.98, compounds=which, seed=0)
        check(names, tested, course, 0.98, which)
        assert course[-1] >= 0.98
        # The contrast: names divided at random, which is where the search starts.
        assert course[0] < (0.98 if which == "whole" else 0.9)
        assert len(tested) == round(len(names) / 5.5)
        known = Categories(found for name, found in names.items() if name not in tested)
        counts = Counter(known.of(names[name]) or "none" for name in tested)
        mix[which] = sum(abs(counts[c] / len(tested) - n / 694) for c, n in MIX.items()) / 2
        sides = [
            {c for name in names if (name in tested) == side for c in compounds(names[name], which)}
            for side in (False, True)
        ]
        per_dish[which] = sum(map(len, sides)) / len(names)
    assert {key: round(value, 2) for key, value in mix.items()} == {"whole": 0.39, "subsets": 0.53}
    # The paper has 2,933 different compounds of 3,803 dishes at most.
    assert per_dish["whole"] < 1
    assert per_dish["subsets"] > 2


def test_the_paths_of_two_targets_and_seeds() -> None:
    names = parsed(small_names(600), Glossary(GLOSSARY))
    (few, early), (_, late) = (
        search(names, target=target, compounds="subsets", seed=2) for target in (0.8, 0.98)
    )
    check(names, few, early, 0.8, "subsets")
    # Stopped early, the search has come the same way: this seed's first attempt gets there.
    assert early[-1] >= 0.8 and late[-1] >= 0.98
    assert late[: len(early)] == early
    assert search(names, target=0.8, compounds="subsets", seed=1)[0] != few
    # A divergence that is met exactly is reached.
    assert search(names, target=early[-1], compounds="subsets", seed=2) == (few, early)


def test_names_that_nobody_can_test() -> None:
    lonely = {f"n{n}": (Component("food", str(n)), Component("action", str(n))) for n in range(30)}
    with pytest.raises(DataError, match="none of 30 dish names can be in test"):
        search(lonely, target=0.98, compounds="whole", seed=0)


@pytest.mark.parametrize("reached_at", [None, 0, 2])
def test_the_first_of_the_best_attempts_is_taken(
    monkeypatch: pytest.MonkeyPatch, reached_at: int | None
) -> None:
    courses: list[float] = []

    def divergence(_: Partition) -> float:
        number = len(courses)
        courses.append(0.9 if number == reached_at else 0.5 if number == 0 else 0.7)
        return courses[-1]

    monkeypatch.setattr(Partition, "divergence", property(divergence))
    monkeypatch.setattr(tmcd, "_improve", lambda *_: False)
    names = drawn(random.Random(0), 60, 20)
    _, course = search(names, target=0.9, compounds="whole", seed=0)
    # The search ends when the target is reached; of equal attempts, the first is taken.
    assert len(courses) == {None: 8, 0: 1, 2: 3}[reached_at]
    assert course == [0.7 if reached_at is None else 0.9]


def test_compounds_that_reduce_the_divergence_most_come_first() -> None:
    a, b, c, d = (Component("food", letter) for letter in "abcd")
    # In training and test: a+b once and once, c+d twice and three times; b+c only in test.
    names = [(a, b), (c, d), (c, d), (a, b), (c, d), (c, d), (c, d), (b, c)]
    partition = Partition(names, [False] * 3 + [True] * 5, "whole")
    assert [holders.tolist() for holders in partition.shared()] == [[1, 2, 4, 5, 6], [0, 3]]


def test_large_groups_are_not_swapped_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would cost a pass over all names."""
    pair = (Component("food", "a"), Component("action", "a"))
    names = [(*pair, Component("flavour", str(n // 4))) for n in range(88)]
    sizes = []
    monkeypatch.setattr(
        tmcd, "_exchange", lambda _partition, together, *_, **__: sizes.append(len(together))
    )
    partition = Partition(names, [n % 4 == 0 for n in range(88)], "subsets")
    assert not tmcd._improve(partition, partition.divergence)
    # 22 names with the pair are in test and 66 in training: both groups are too large.
    assert set(sizes) == {1, 3}
