"""Token sequences as a prefix tree, and the slots in which its tokens are computed.

The tree is a sorted list. Sequences that begin alike are neighbours, and the list is the tree in
depth-first order: each sequence adds the tokens that it does not share with the one before it.
:func:`group_leaves` divides the leaves into groups that fit into memory; :func:`lay_out` gives
every token of a group one slot, in the same order. So the descendants of a slot are the slots that
follow it, up to some end, and a token attends to exactly those slots before it whose descendants it
is among.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Tokens: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Leaf:
    """A distinct sequence.

    Attributes:
        tokens: The sequence, not empty.
        shared: How many tokens it shares with the leaf before it, 0 for the first.
        first_needed: The first position whose prediction is needed.
        keys: The keys of the requests that have this sequence, in their order.
    """

    tokens: Tokens
    shared: int
    first_needed: int
    keys: tuple[int, ...]

    @property
    def added(self) -> int:
        """The number of tokens that it adds to the tree."""
        return len(self.tokens) - self.shared


def build_tree(requests: Iterable[tuple[int, Sequence[int], int]]) -> list[Leaf]:
    """Build the tree of ``(key, tokens, first needed position)``; equal sequences are one leaf."""
    first_needed: dict[Tokens, int] = {}
    keys: dict[Tokens, list[int]] = {}
    for key, sequence, position in requests:
        tokens = tuple(sequence)
        first_needed[tokens] = min(position, first_needed.get(tokens, position))
        keys.setdefault(tokens, []).append(key)
    leaves: list[Leaf] = []
    previous_tokens: Tokens = ()
    for tokens in sorted(keys):
        shared = _shared_beginning(previous_tokens, tokens)
        leaves.append(Leaf(tokens, shared, first_needed[tokens], tuple(keys[tokens])))
        previous_tokens = tokens
    return leaves


def _shared_beginning(previous_tokens: Tokens, tokens: Tokens) -> int:
    """Return how many tokens two sequences share at their beginning."""
    for position, (token_before, token) in enumerate(zip(previous_tokens, tokens, strict=False)):
        if token_before != token:
            return position
    return min(len(previous_tokens), len(tokens))


def sharing_ratio(leaves: Sequence[Leaf], generated: int = 0) -> float:
    """Return the tokens for each distinct one, with those that each leaf may generate.

    Equal sequences count only then: ``hf`` scores them once, too.
    """
    all_tokens = 0
    distinct_tokens = 0
    for leaf in leaves:
        copies = len(leaf.keys) if generated else 1
        all_tokens += copies * (len(leaf.tokens) + generated)
        distinct_tokens += leaf.added + generated
    return all_tokens / distinct_tokens


def no_limit() -> float:
    """Return infinity."""
    return math.inf


def group_leaves(
    leaves: Sequence[Leaf],
    max_tokens: int,
    generated: int = 0,
    max_added: Callable[[], float] = no_limit,
) -> Iterator[list[Leaf]]:
    """Yield neighbouring leaves that add, and may generate, at most so many tokens together.

    One leaf is always a group, however long.

    Args:
        leaves: The leaves.
        max_tokens: The most tokens that a group adds and may generate.
        generated: The tokens that each leaf may generate.
        max_added: Returns the most tokens that the next group adds; it is called for each group,
            when the one before has been computed.
    """
    group: list[Leaf] = []
    added = 0
    limit = max_added()
    for leaf in leaves:
        group_added = added + leaf.added
        group_tokens = group_added + (len(group) + 1) * generated
        if group and (group_tokens > max_tokens or group_added > limit):
            yield group
            group, added = [], 0
            limit = max_added()
        group.append(leaf)
        added += leaf.added
    if group:
        yield group


@dataclass(frozen=True)
class Pack:
    """The slots of a group.

    Attributes:
        kept: How many are computed already: the beginning of the first leaf.
        tokens: The token in each slot.
        positions: Its depth in the tree.
        ends: The slot after its last descendant.
        paths: For each leaf, the slots of its tokens.
        starts: For each leaf, the first slot that was added for it; the last one ends the list.
    """

    kept: int
    tokens: IntArray
    positions: IntArray
    ends: IntArray
    paths: list[IntArray]
    starts: list[int]

    def attended(self, begin: int, end: int) -> IntArray:
        """Return the slots that those from ``begin`` to ``end`` attend to, in ascending order."""
        open_slots = np.flatnonzero(self.ends[:begin] > begin)
        return np.concatenate([open_slots, np.arange(begin, end)])

    def mask(self, queries: IntArray, slots: IntArray) -> BoolArray:
        """Return which of some slots (columns) each query (rows, slots too) attends to."""
        row, column = queries[..., None], slots[..., None, :]
        mask: BoolArray = (column <= row) & (row < self.ends[column])
        return mask


def lay_out(leaves: Sequence[Leaf], kept: int = 0) -> Pack:
    """Give every token of a group a slot; the first ``kept`` of them are the first leaf's."""
    path = np.arange(kept)
    tokens = list(leaves[0].tokens[:kept])
    positions = [path]
    paths: list[IntArray] = []
    starts = [kept]
    ends = np.zeros(kept + sum(len(leaf.tokens) for leaf in leaves), dtype=np.int64)
    for number, leaf in enumerate(leaves):
        shared = leaf.shared if number else kept
        begin = starts[-1]
        end = begin + len(leaf.tokens) - shared
        ends[path[shared:]] = begin
        path = np.concatenate([path[:shared], np.arange(begin, end)])
        tokens.extend(leaf.tokens[shared:])
        positions.append(np.arange(shared, len(leaf.tokens)))
        paths.append(path)
        starts.append(end)
    slot_count = starts[-1]
    ends[path] = slot_count
    return Pack(kept, np.array(tokens), np.concatenate(positions), ends[:slot_count], paths, starts)
