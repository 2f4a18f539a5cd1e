"""Trees, groups and slots against their definitions, on random sequences."""

from collections.abc import Iterable, Iterator
from itertools import chain, combinations, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.models.prefix.runs import (
    OWN_SLOT_COST,
    RUN_START_COST,
    SHARED_READ_COST,
    divide_into_runs,
)
from lm_eval_ext.models.prefix.tree import Leaf, build_tree, group_leaves, lay_out, sharing_ratio

# Two tokens make many shared beginnings, duplicates and sequences that begin others.
sequences = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=9), min_size=1, max_size=14)


def prefixes(tokens: list[list[int]]) -> set[tuple[int, ...]]:
    """Return all different beginnings of some sequences."""
    beginnings = set()
    for sequence in tokens:
        for end in range(1, len(sequence) + 1):
            beginnings.add(tuple(sequence[:end]))
    return beginnings


def tree(tokens: list[list[int]]) -> list[Leaf]:
    """Build the tree of sequences whose last token is to be predicted."""
    return build_tree(
        (number, sequence, len(sequence) - 1) for number, sequence in enumerate(tokens)
    )


@given(sequences, st.integers(0, 3))
def test_a_tree_has_every_prefix_once(tokens: list[list[int]], generated: int) -> None:
    """The ratio of sharing is hf's work by ours, and each sequence is in one leaf."""
    leaves = tree(tokens)
    distinct = {tuple(sequence) for sequence in tokens}
    # hf scores equal sequences once, and generates texts for each.
    computed = tokens if generated else distinct
    work_of_hf = sum(len(sequence) + generated for sequence in computed)
    work = len(prefixes(tokens)) + generated * len(distinct)
    assert sharing_ratio(leaves, generated) == work_of_hf / work
    keys: list[int] = []
    for leaf in leaves:
        keys.extend(leaf.keys)
        assert {tuple(tokens[key]) for key in leaf.keys} == {leaf.tokens}
    assert sorted(keys) == list(range(len(tokens)))


@given(sequences, st.integers(1, 30), st.integers(0, 3))
def test_groups_hold_all_leaves_in_order(
    tokens: list[list[int]], limit: int, generated: int
) -> None:
    """A group exceeds the limit only if it is one leaf, and could not hold the next leaf."""
    leaves = tree(tokens)
    groups = list(group_leaves(leaves, limit, generated))
    assert list(chain.from_iterable(groups)) == leaves

    def size(leaf: Leaf) -> int:
        return len(leaf.tokens) - leaf.shared + generated

    for group in groups:
        assert len(group) == 1 or sum(map(size, group)) <= limit
    for group, next_group in pairwise(groups):
        assert sum(map(size, group)) + size(next_group[0]) > limit


@given(sequences, st.data())
def test_a_slot_attends_to_its_ancestors_only(tokens: list[list[int]], data: st.DataObject) -> None:
    """A slot sees exactly those of a range of slots whose texts begin its own."""
    leaves = tree(tokens)
    leaves = leaves[data.draw(st.integers(0, len(leaves) - 1)) :]
    kept = data.draw(st.integers(0, len(leaves[0].tokens) - 1))
    pack = lay_out(leaves, kept)
    count = len(pack.tokens)
    text_of: dict[int, tuple[int, ...]] = {}
    for leaf, path in zip(leaves, pack.paths, strict=True):
        for depth, slot in enumerate(path):
            text_of[int(slot)] = leaf.tokens[: depth + 1]
    assert sorted(text_of) == list(range(count))
    assert len(set(text_of.values())) == count
    texts = [text_of[slot] for slot in range(count)]
    assert [text[-1] for text in texts] == pack.tokens.tolist()
    assert [len(text) - 1 for text in texts] == pack.positions.tolist()

    begin = data.draw(st.integers(0, count - 1))
    end = data.draw(st.integers(begin + 1, count))
    slots = pack.attended(begin, end)
    mask = pack.mask(np.arange(begin, end), slots)
    all_seen = set()
    for slot, row in zip(range(begin, end), mask, strict=True):
        seen = set(slots[row].tolist())
        assert seen == {
            ancestor for ancestor in text_of if begins(text_of[ancestor], text_of[slot])
        }
        all_seen |= seen
    assert set(slots.tolist()) == all_seen


def begins(text: tuple[int, ...], longer: tuple[int, ...]) -> bool:
    """Return whether a text is the beginning of another, or equal to it."""
    return longer[: len(text)] == text


@given(sequences, st.integers(1, 60))
def test_no_other_runs_have_less_work(tokens: list[list[int]], max_slots: int) -> None:
    """The division into runs is the best of all divisions into runs for which there is room."""
    leaves = tree(tokens)[:7]
    length = 4

    def shared_tokens(begin: int, end: int) -> int:
        first, *later = [leaf.tokens for leaf in leaves[begin:end]]
        return max(
            count
            for count in range(len(first) + 1)
            if all(begins(first[:count], text) for text in later)
        )

    def width(begin: int, end: int) -> int:
        longest = max(len(leaf.tokens) for leaf in leaves[begin:end])
        return longest - shared_tokens(begin, end) + length

    def has_room(begin: int, end: int) -> bool:
        count = end - begin
        slots = shared_tokens(begin, end) + count * width(begin, end)
        return count == 1 or slots <= max_slots

    def work(runs: Iterable[tuple[int, int]]) -> int:
        total = 0
        for begin, end in runs:
            count = end - begin
            shared_work = shared_tokens(begin, end) * (count + SHARED_READ_COST)
            own_work = OWN_SLOT_COST * count * width(begin, end)
            total += RUN_START_COST + shared_work + own_work
        return total

    possible_works = []
    for division in all_divisions(len(leaves)):
        runs = list(division)
        if all(has_room(begin, end) for begin, end in runs):
            possible_works.append(work(runs))
    layouts = divide_into_runs(lay_out(leaves).paths, length, max_slots)
    assert work((layout.first, layout.end) for layout in layouts) == min(possible_works)
    for layout in layouts:
        begin, end = layout.first, layout.end
        assert layout.shared_length == shared_tokens(begin, end)
        assert layout.width == width(begin, end)


def all_divisions(last: int) -> Iterator[Iterable[tuple[int, int]]]:
    """Yield all ways to divide the range from 0 to ``last`` into runs."""
    for count in range(last + 1):
        for borders in combinations(range(1, last), count):
            yield pairwise((0, *borders, last))
