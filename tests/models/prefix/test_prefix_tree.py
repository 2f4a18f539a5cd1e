"""Trees, groups and packs against their definitions, on random sequences."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.models.prefix.parts import LONGEST_OWN, blocks_of
from lm_eval_ext.models.prefix.plan import Limits, Tree, cut, grow, lay_out, shared

# Two tokens make many shared beginnings, duplicates and sequences that begin others.
sequences = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=9), min_size=1, max_size=14)
limits = st.builds(
    Limits,
    new_tokens=st.integers(1, 30),
    slots=st.integers(1, 60),
    generated=st.integers(0, 3),
    generated_slots=st.integers(1, 12),
)


def prefixes(tokens: list[list[int]]) -> set[tuple[int, ...]]:
    return {tuple(one[:end]) for one in tokens for end in range(1, len(one) + 1)}


@st.composite
def trees(draw: st.DrawFn) -> Tree[int]:
    requests = [
        (number, one, draw(st.integers(0, len(one) - 1)))
        for number, one in enumerate(draw(sequences))
    ]
    return grow(requests)


@given(st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1)))
def test_shared_beginning(one: list[int], other: list[int]) -> None:
    count = shared(one, other)
    assert one[:count] == other[:count]
    assert one[count : count + 1] != other[count : count + 1] or count == len(one) == len(other)


@given(sequences)
def test_tree_counts_every_prefix_once(tokens: list[list[int]]) -> None:
    tree = grow((number, one, len(one) - 1) for number, one in enumerate(tokens))
    assert tree.distinct == len(prefixes(tokens))
    assert tree.total == sum(len(one) for one in {tuple(one) for one in tokens})
    assert sorted(key for leaf in tree.leaves for key in leaf.keys) == list(range(len(tokens)))
    for leaf in tree.leaves:
        assert all(tuple(tokens[key]) == leaf.tokens for key in leaf.keys)


@given(trees(), limits)
def test_groups_hold_all_leaves_in_order_within_the_limits(tree: Tree[int], limits: Limits) -> None:
    groups = list(cut(tree, limits))
    assert tuple(leaf for group in groups for leaf in group.leaves) == tree.leaves
    for group in groups:
        new = len(lay_out(group).tokens)
        if len(group.leaves) > 1:
            generated = len(group.leaves) * limits.generated
            assert new <= limits.new_tokens
            assert generated <= limits.generated_slots
            assert group.kept + new + generated <= limits.slots
    assert groups[0].kept == 0
    for before, after in pairwise(groups):
        assert before.leaves[-1].tokens[: after.kept] == after.leaves[0].tokens[: after.kept]


@given(trees(), limits, st.integers(1, 40))
def test_a_token_sees_its_ancestors_only(tree: Tree[int], limits: Limits, step: int) -> None:
    """And every prediction that somebody needs is computed in the group where it is needed."""
    path = np.arange(0)
    names: dict[int, tuple[int, ...]] = {}
    for group in cut(tree, limits):
        names = {new: names[int(old)] for new, old in enumerate(path[: group.kept])}
        pack = lay_out(group)
        end = pack.kept + len(pack.tokens)
        for leaf, leaf_path in zip(group.leaves, pack.paths, strict=True):
            for depth, slot in enumerate(leaf_path):
                names[int(slot)] = leaf.tokens[: depth + 1]
            assert all(slot >= pack.kept for slot in leaf_path[leaf.first :])
        assert len(set(names.values())) == len(names) == end
        for slot in range(pack.kept, end):
            assert names[slot][-1] == pack.tokens[slot - pack.kept]
            assert len(names[slot]) - 1 == pack.positions[slot - pack.kept]
        for begin in range(pack.kept, end, step):
            stop = min(begin + step, end)
            seen = pack.visible(begin, stop)
            expected = [
                [
                    column <= row and names[row][: len(names[column])] == names[column]
                    for column in range(stop)
                ]
                for row in range(begin, stop)
            ]
            assert seen.tolist() == expected
        path = pack.paths[-1]


def test_nothing_is_computed_twice_where_only_ends_are_needed() -> None:
    """The last leaf's beginning is kept from group to group."""
    head = list(range(100, 150))
    tokens = [[*head, *(number % 7, number)] for number in range(60)]
    tree = grow((number, one, len(one) - 1) for number, one in enumerate(tokens))
    groups = list(cut(tree, Limits(new_tokens=20, slots=10_000)))
    assert len(groups) > 3
    assert sum(len(lay_out(group).tokens) for group in groups) == tree.distinct


@given(trees(), limits)
def test_groups_side_by_side_keep_nothing(tree: Tree[int], limits: Limits) -> None:
    groups = list(cut(tree, replace(limits, beside=3)))
    assert tuple(leaf for group in groups for leaf in group.leaves) == tree.leaves
    assert {group.kept for group in groups} <= {0}
    assert all(
        len(lay_out(group).tokens) <= limits.new_tokens for group in groups if len(group.leaves) > 1
    )


@given(trees(), st.sampled_from([1, 40, 200]))
def test_blocks_begin_with_slots_that_all_their_leaves_have(tree: Tree[int], times: int) -> None:
    paths = [
        path
        for group in cut(_stretched(tree, times), Limits(10**6, 10**6))
        for path in lay_out(group).paths
    ]
    blocks = blocks_of(paths)
    assert [n for block in blocks for n in range(block.first, block.end)] == list(range(len(paths)))
    for block in blocks:
        inside = paths[block.first : block.end]
        assert all((path[: block.trunk] == inside[0][: block.trunk]).all() for path in inside)
        assert all(0 <= len(path) - block.trunk <= LONGEST_OWN for path in inside)


def _stretched(tree: Tree[int], times: int) -> Tree[int]:
    return grow(
        (n, [token for token in leaf.tokens for _ in range(times)], 0)
        for n, leaf in enumerate(tree.leaves)
    )


def test_leaves_of_two_long_beginnings_are_two_blocks() -> None:
    tokens = [[first] * 300 + [n, n] for first in (0, 1) for n in range(5)]
    tree = grow((n, [7, *one], 0) for n, one in enumerate(tokens))
    (group,) = cut(tree, Limits(10**6, 10**6))
    blocks = blocks_of(lay_out(group).paths)
    assert [(block.first, block.end) for block in blocks] == [(0, 5), (5, 10)]
    assert all(block.trunk >= 300 for block in blocks)
