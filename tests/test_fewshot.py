"""Properties of every selection of demonstrations, for any pool."""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.errors import DataError
from lm_eval_ext.fewshot import (
    Choices,
    Item,
    Pool,
    at_random,
    clustered,
    fitting,
    overlapping,
    sharing,
    shuffled,
)

pytestmark = pytest.mark.slow

Selection: TypeAlias = Callable[..., Choices]


def most_features(sample: Item, position: int, item: Item) -> str | None:
    """A rule for ``fitting``: at every other place, all features of the sample but one at most."""
    return "fits" if position % 2 or len(sample.features - item.features) <= 1 else None


SELECTIONS: dict[str, Selection] = {
    "at_random": at_random,
    "sharing": sharing,
    "overlapping": overlapping,
    "fitting": lambda pool, samples, k, seed: fitting(pool, samples, k, seed, most_features),
}
every_selection = pytest.mark.parametrize("select", SELECTIONS.values(), ids=SELECTIONS)


@st.composite
def pools(draw: st.DrawFn) -> list[Item]:
    """Small pools with few concepts and many copies."""
    ids = draw(st.lists(st.text(max_size=4), min_size=1, max_size=14, unique=True))
    keys = st.sampled_from("uvwxyz")
    features = st.frozensets(st.sampled_from(["a", "b", "c", "d"]), max_size=3)
    return [Item(name, draw(keys), draw(features)) for name in ids]


@every_selection
@given(items=pools(), k=st.integers(1, 4), seed=st.integers(-1, 5))
def test_no_sample_meets_itself_or_a_copy(
    select: Selection, items: list[Item], k: int, seed: int
) -> None:
    by_id = {item.id: item for item in items}
    chosen = select(Pool(items), items, k, seed)
    assert chosen.by_sample.keys() | chosen.not_enough.keys() == by_id.keys()
    assert not chosen.by_sample.keys() & chosen.not_enough.keys()
    assert select(Pool(items), items, k, seed) == chosen
    assert all(candidates < k for candidates in chosen.not_enough.values())
    for name, choice in chosen.by_sample.items():
        shown = [by_id[name], *(by_id[demonstration] for demonstration in choice.ids)]
        assert len({item.copy_key for item in shown}) == len(shown) == k + 1
        assert all(pick.why for pick in choice.picked)


@every_selection
@given(items=pools(), k=st.integers(1, 3), data=st.data())
def test_neither_order_nor_limit_changes_a_choice(
    select: Selection, items: list[Item], k: int, data: st.DataObject
) -> None:
    chosen = select(Pool(items), items, k, 7)
    permuted = data.draw(st.permutations(items))
    assert select(Pool(permuted), permuted, k, 7) == chosen
    limited = select(Pool(permuted), permuted[: len(items) // 2], k, 7).by_sample
    assert limited.items() <= chosen.by_sample.items()


PROGRAM = """
from lm_eval_ext.fewshot import *
items = [Item(f"i{n}", f"k{n}", frozenset(["even" if n % 2 else "odd", f"m{n % 5}"]))
         for n in range(30)]
for select in (at_random, sharing, overlapping, lambda p, _, *how: clustered(p, *how)):
    print([c.picked for c in select(Pool(items), items, 3, 5).by_sample.values()])
"""


def test_hash_seeds_do_not_matter() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    (output,) = outputs
    assert output.count("Picked") == (3 * 30 + 28) * 3


def test_two_items_of_the_same_id_are_refused() -> None:
    with pytest.raises(DataError, match="'a'"):
        Pool([Item("a", "x"), Item("a", "y")])


@given(count=st.integers(0, 60), key=st.text())
def test_shuffling_gives_every_number_once(count: int, key: str) -> None:
    assert sorted(shuffled(count, key)) == list(range(count))


def test_random_ones_are_not_biased_towards_sharing() -> None:
    """The share of demonstrations with the sample's concept is what drawing blindly gives."""
    rng = random.Random(3)
    items = [Item(f"i{n}", f"k{n}", frozenset([rng.choice("abbbcc")])) for n in range(600)]
    features = {item.id: item.features for item in items}
    chosen = at_random(Pool(items), items, 3, 11)
    uses = Counter[str]()
    sharing = 0
    for sample, choice in chosen.by_sample.items():
        uses.update(choice.ids)
        for demonstration in choice.ids:
            sharing += not features[sample].isdisjoint(features[demonstration])
    sizes = Counter(next(iter(item.features)) for item in items)
    expected = sum(size * (size - 1) for size in sizes.values()) / (600 * 599)
    deviation = (expected * (1 - expected) / uses.total()) ** 0.5
    assert abs(sharing / uses.total() - expected) < 4 * deviation
    chi_squared = sum((uses[item.id] - 3) ** 2 / 3 for item in items)
    assert chi_squared < 745, "0.9999 of chi-squared, 599"


@given(items=pools(), k=st.integers(1, 3))
def test_sharing_demonstrations_have_a_feature_of_the_sample(items: list[Item], k: int) -> None:
    """The reason names the features; too few candidates are counted without copies."""
    by_id = {item.id: item for item in items}
    chosen = sharing(Pool(items), items, k, 1)
    for name, choice in chosen.by_sample.items():
        for pick in choice.picked:
            common = by_id[name].features & by_id[pick.id].features
            assert common
            assert pick.why == f"shares: {', '.join(sorted(common))}"
    for name, count in chosen.not_enough.items():
        sharing_keys = {key for key, overlap in overlaps_with(by_id[name], items) if overlap}
        assert count == len(sharing_keys)


@given(items=pools(), k=st.integers(1, 3))
def test_overlapping_demonstrations_have_the_most_features_of_the_sample(
    items: list[Item], k: int
) -> None:
    by_id = {item.id: item for item in items}
    for name, choice in overlapping(Pool(items), items, k, 1).by_sample.items():
        sample = by_id[name]
        best_by_key: dict[str, int] = {}
        for key, overlap in overlaps_with(sample, items):
            best_by_key[key] = max(overlap, best_by_key.get(key, 0))
        expected = sorted(best_by_key.values(), reverse=True)[:k]
        chosen_overlaps = [len(by_id[chosen].features & sample.features) for chosen in choice.ids]
        assert chosen_overlaps == expected
        assert min(chosen_overlaps) > 0


@given(items=pools(), k=st.integers(1, 3))
def test_fitting_demonstrations_follow_the_rule(items: list[Item], k: int) -> None:
    by_id = {item.id: item for item in items}
    for name, choice in SELECTIONS["fitting"](Pool(items), items, k, 1).by_sample.items():
        for position, demonstration in enumerate(choice.ids):
            assert most_features(by_id[name], position, by_id[demonstration])


def overlaps_with(sample: Item, items: list[Item]) -> list[tuple[str, int]]:
    """Return, for each item but copies of the sample, its copy key and its common features."""
    overlaps = []
    for item in items:
        if item.copy_key != sample.copy_key:
            overlaps.append((item.copy_key, len(item.features & sample.features)))
    return overlaps


@given(items=pools(), k=st.integers(1, 3), seed=st.integers(0, 5), data=st.data())
def test_clusters_are_disjoint_and_show_each_other(
    items: list[Item], k: int, seed: int, data: st.DataObject
) -> None:
    by_id = {item.id: item for item in items}
    chosen = clustered(Pool(items), k, seed)
    assert chosen == clustered(Pool(data.draw(st.permutations(items))), k, seed)
    assert chosen.by_sample.keys() | chosen.not_enough.keys() == by_id.keys()
    clusters = {name: frozenset((name, *choice.ids)) for name, choice in chosen.by_sample.items()}
    for cluster in clusters.values():
        assert len(cluster) == k + 1
        assert len({by_id[member].copy_key for member in cluster}) == k + 1
        assert {clusters[member] for member in cluster} == {cluster}
    if len({item.copy_key for item in items}) == len(items):
        assert len(chosen.not_enough) == len(items) % (k + 1)


def test_a_cluster_takes_what_has_most_in_common_with_all_of_it() -> None:
    items = [Item(name, name, frozenset(features))
             for name, features in (("a", "xy"), ("b", "yz"), ("c", "z"), ("d", "q"))]  # fmt: skip
    seed = next(seed for seed in range(99) if next(shuffled(4, seed, "clustered")) == 0)
    chosen = clustered(Pool(items), 2, seed)  # starts with a
    # c shares nothing with a, but z with b, which joins first.
    assert set(chosen.by_sample["a"].ids) == {"b", "c"}
    assert chosen.not_enough == {"d": 0}
