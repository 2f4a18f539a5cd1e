"""Token sequences as a prefix tree, and the slots in which its tokens are computed.

The tree is a sorted list. Sequences that begin alike are neighbours, and the list is the tree in
depth-first order: each sequence adds the tokens that it does not share with the one before it.
:func:`cut` divides the leaves into groups that fit into memory; :func:`lay_out` gives every token
of a group one slot, in the same order. So the descendants of a slot are the slots that follow it,
up to some end, and a token attends to exactly those slots before it whose descendants it is among.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import and_, eq
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Leaf:
    """A distinct sequence.

    Attributes:
        tokens: The sequence, not empty.
        common: How many tokens it shares with the leaf before it, 0 for the first.
        first: The first position whose prediction is needed.
        keys: Of the requests that have this sequence, in their order.
    """

    tokens: Tokens
    common: int
    first: int
    keys: tuple[int, ...]


def grow(requests: Iterable[tuple[int, Sequence[int], int]]) -> list[Leaf]:
    """Builds the tree of ``(key, tokens, first needed position)``; equal sequences are one leaf."""
    wanted: dict[Tokens, tuple[int, list[int]]] = {}
    for key, tokens, first in requests:
        so_far, keys = wanted.setdefault(tuple(tokens), (first, []))
        keys.append(key)
        wanted[tuple(tokens)] = (min(so_far, first), keys)
    leaves: list[Leaf] = []
    before: Tokens = ()
    for tokens in sorted(wanted):
        first, keys = wanted[tokens]
        common = sum(accumulate(map(eq, before, tokens), and_))
        leaves.append(Leaf(tokens, common, first, tuple(keys)))
        before = tokens
    return leaves


def ratio(leaves: Sequence[Leaf], generated: int = 0) -> float:
    """Returns the tokens for each distinct one, with those that each leaf may generate.

    Equal sequences count only then: ``hf`` scores them once, too.
    """
    every = sum(
        (len(leaf.keys) if generated else 1) * (len(leaf.tokens) + generated) for leaf in leaves
    )
    return every / sum(len(leaf.tokens) - leaf.common + generated for leaf in leaves)


def cut(leaves: Sequence[Leaf], most: int, generated: int = 0) -> Iterator[list[Leaf]]:
    """Yields neighbouring leaves that add, and may generate, at most so many tokens together.

    One leaf is always a group, however long.
    """
    group: list[Leaf] = []
    size = 0
    for leaf in leaves:
        added = len(leaf.tokens) - leaf.common + generated
        if group and size + added > most:
            yield group
            group, size = [], 0
        group.append(leaf)
        size += added
    if group:
        yield group


@dataclass(frozen=True)
class Pack:
    """The slots of a group.

    Attributes:
        kept: How many are there already: the beginning of the first leaf.
        tokens: The token in each slot.
        positions: Its depth in the tree.
        ends: The slot after its last descendant.
        paths: For each leaf, the slots of its tokens.
        starts: For each leaf, the first slot that was added for it; the last one ends the list.
    """

    kept: int
    tokens: Array
    positions: Array
    ends: Array
    paths: list[Array]
    starts: list[int]

    def attended(self, begin: int, end: int) -> Array:
        """Returns the slots that those from ``begin`` to ``end`` attend to, in ascending order."""
        before = np.flatnonzero(self.ends[:begin] > begin)
        return np.concatenate([before, np.arange(begin, end)])

    def mask(self, queries: Array, slots: Array) -> Array:
        """Returns which of some slots (columns) each query (rows, slots too) attends to."""
        row, column = queries[..., None], slots[..., None, :]
        found: Array = (column <= row) & (row < self.ends[column])
        return found


def lay_out(leaves: Sequence[Leaf], kept: int = 0) -> Pack:
    """Gives every token of a group a slot; the first ``kept`` of them are the first leaf's."""
    path = np.arange(kept)
    tokens = list(leaves[0].tokens[:kept])
    positions = [path]
    paths: list[Array] = []
    starts = [kept]
    ends = np.zeros(kept + sum(len(leaf.tokens) for leaf in leaves), dtype=np.int64)
    for number, leaf in enumerate(leaves):
        common = leaf.common if number else kept
        begin, end = starts[-1], starts[-1] + len(leaf.tokens) - common
        ends[path[common:]] = begin
        path = np.concatenate([path[:common], np.arange(begin, end)])
        tokens.extend(leaf.tokens[common:])
        positions.append(np.arange(common, len(leaf.tokens)))
        paths.append(path)
        starts.append(end)
    ends[path] = starts[-1]
    return Pack(
        kept, np.array(tokens), np.concatenate(positions), ends[: starts[-1]], paths, starts
    )
