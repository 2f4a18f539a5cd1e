"""Trees, groups and slots against their definitions, on random sequences."""

from collections.abc import Iterable
from itertools import combinations, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.models.prefix.passes import READ, divide_into_runs
from lm_eval_ext.models.prefix.tree import Leaf, build_tree, group_leaves, lay_out, sharing_ratio

# Two tokens make many shared beginnings, duplicates and sequences that begin others.
sequences = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=9), min_size=1, max_size=14)


def prefixes(tokens: list[list[int]]) -> set[tuple[int, ...]]:
    return {tuple(one[:end]) for one in tokens for end in range(1, len(one) + 1)}


def tree(tokens: list[list[int]]) -> list[Leaf]:
    return build_tree((number, one, len(one) - 1) for number, one in enumerate(tokens))


@given(sequences, st.integers(0, 3))
def test_tree_has_every_prefix_once(tokens: list[list[int]], generated: int) -> None:
    leaves = tree(tokens)
    distinct = {tuple(one) for one in tokens}
    counted = tokens if generated else distinct  # hf scores equal ones once
    every = sum(len(one) + generated for one in counted)
    expected = every / (len(prefixes(tokens)) + generated * len(distinct))
    assert sharing_ratio(leaves, generated) == expected
    assert sorted(key for leaf in leaves for key in leaf.keys) == list(range(len(tokens)))
    for leaf in leaves:
        assert all(tuple(tokens[key]) == leaf.tokens for key in leaf.keys)


@given(sequences, st.integers(1, 30), st.integers(0, 3))
def test_groups_hold_all_leaves_in_order(
    tokens: list[list[int]], most: int, generated: int
) -> None:
    leaves = tree(tokens)
    groups = list(group_leaves(leaves, most, generated))
    assert [leaf for group in groups for leaf in group] == leaves
    sizes = [[len(leaf.tokens) - leaf.shared + generated for leaf in group] for group in groups]
    assert all(sum(group) <= most or len(group) == 1 for group in sizes)
    assert all(sum(one) + other[0] > most for one, other in pairwise(sizes))


@given(sequences, st.data())
def test_a_slot_attends_to_its_ancestors_only(tokens: list[list[int]], data: st.DataObject) -> None:
    leaves = tree(tokens)
    leaves = leaves[data.draw(st.integers(0, len(leaves) - 1)) :]
    kept = data.draw(st.integers(0, len(leaves[0].tokens) - 1))
    pack = lay_out(leaves, kept)
    count = len(pack.tokens)
    names: dict[int, tuple[int, ...]] = {}
    for leaf, path in zip(leaves, pack.paths, strict=True):
        names |= {int(slot): leaf.tokens[: depth + 1] for depth, slot in enumerate(path)}
    assert sorted(names) == list(range(count))
    assert len(set(names.values())) == count
    assert [name[-1] for _, name in sorted(names.items())] == pack.tokens.tolist()
    assert [len(name) - 1 for _, name in sorted(names.items())] == pack.positions.tolist()
    begin = data.draw(st.integers(0, count - 1))
    end = data.draw(st.integers(begin + 1, count))
    slots = pack.attended(begin, end)
    mask = pack.mask(np.arange(begin, end), slots)
    seen = [{int(slot) for slot in slots[row]} for row in mask]
    assert seen == [
        {slot for slot in names if names[row][: len(names[slot])] == names[slot]}
        for row in range(begin, end)
    ]
    assert set(slots.tolist()) == set().union(*seen)


@given(sequences)
def test_no_other_runs_have_less_work(tokens: list[list[int]]) -> None:
    pack = lay_out(tree(tokens)[:7])
    places = range(len(pack.starts))

    def work(runs: Iterable[tuple[int, int]]) -> int:
        return sum(
            (len(pack.attended(pack.starts[first], pack.starts[end])) + 4 * (end - first))
            * (end - first + READ)
            for first, end in runs
        )

    assert work(divide_into_runs(pack, 4, 999)) == min(
        work(pairwise((0, *some, places[-1])))
        for size in places
        for some in combinations(places[1:-1], size)
    )
