"""From token sequences to what is computed together: prefix tree, groups, packs.

The tree is held as a sorted list. Sequences that share a beginning are neighbours in it, and
walking down the list is walking the tree depth first: a sequence adds to the tree what it does
not share with the sequence before it. :func:`cut` divides the leaves into groups that fit into
memory, and :func:`lay_out` makes a group one sequence of slots in which every token occurs once.
There a token sees its ancestors in the tree and nothing else, and its position is its depth:
to the model it looks as if its sequence stood alone.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

Tokens = tuple[int, ...]
Key = TypeVar("Key", bound=Hashable)


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Returns how many tokens two sequences have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        # Slices are compared in C; a loop over the tokens of long prompts is not.
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True)
class Leaf(Generic[Key]):
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
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Tree(Generic[Key]):
    """The leaves in depth-first order."""

    leaves: tuple[Leaf[Key], ...]

    @property
    def total(self) -> int:
        """Tokens that one forward pass per distinct sequence would compute."""
        return sum(len(leaf.tokens) for leaf in self.leaves)

    @property
    def distinct(self) -> int:
        """Tokens of the tree."""
        return sum(len(leaf.tokens) - leaf.common for leaf in self.leaves)

    def sharing(self, generated: int = 0) -> float:
        """Tokens for each distinct one, with those that each leaf may generate; 1.0 is none."""
        own = generated * len(self.leaves)
        return (self.total + own) / (self.distinct + own) if self.leaves else 1.0


def grow(requests: Iterable[tuple[Key, Sequence[int], int]]) -> Tree[Key]:
    """Builds the tree of ``(key, tokens, first needed position)``; equal sequences are one leaf."""
    wanted: dict[Tokens, tuple[int, list[Key]]] = {}
    for key, tokens, first in requests:
        so_far, keys = wanted.setdefault(tuple(tokens), (first, []))
        keys.append(key)
        wanted[tuple(tokens)] = (min(so_far, first), keys)
    leaves: list[Leaf[Key]] = []
    for tokens in sorted(wanted):
        first, keys = wanted[tokens]
        common = shared(leaves[-1].tokens, tokens) if leaves else 0
        leaves.append(Leaf(tokens, common, first, tuple(keys)))
    return Tree(tuple(leaves))


@dataclass(frozen=True)
class Limits:
    """What a group may hold; one leaf is always a group, however long.

    Attributes:
        new_tokens: Tokens that are computed for the group.
        slots: Tokens whose keys and values are held at a time: kept, new and generated.
        generated: Tokens that each leaf may generate.
        generated_slots: Slots that the generated tokens of a group may take together.
        beside: Groups that keep nothing of each other and are computed side by side; 0 for groups
            that follow each other.
        copies: Slots that branches may copy, beside these.
    """

    new_tokens: int
    slots: int
    generated: int = 0
    generated_slots: int = 8192
    beside: int = 0
    copies: int = 0


@dataclass(frozen=True)
class Group(Generic[Key]):
    """Neighbouring leaves, and how much of the previous group's last leaf they start from."""

    kept: int
    leaves: tuple[Leaf[Key], ...]


def cut(tree: Tree[Key], limits: Limits) -> Iterator[Group[Key]]:
    """Yields the groups in order; every leaf is in one."""
    members: list[Leaf[Key]] = []
    kept = lowest = 0
    end = 0  # the group's tokens from its first leaf's beginning on, each once
    for leaf in tree.leaves:
        added = len(leaf.tokens) - leaf.common
        if members:
            joint = min(lowest, leaf.common)
            start = _start(kept, joint, leaf)
            if _fits(start, end - start + added, len(members) + 1, limits):
                kept, lowest = start, joint
                end += added
                members.append(leaf)
                continue
            yield Group(kept, tuple(members))
        members = [leaf]
        end = len(leaf.tokens)
        # The prediction after the last kept token is gone with the group before.
        kept = 0 if limits.beside else min(leaf.common, leaf.first)
        lowest = leaf.common
    if members:
        yield Group(kept, tuple(members))


def _start(kept: int, joint: int, leaf: Leaf[Key]) -> int:
    """What may still be kept with this leaf: a prediction it needs has to be computed anew."""
    return leaf.first if leaf.first < min(kept, joint) else kept


def _fits(kept: int, new: int, leaves: int, limits: Limits) -> bool:
    generated = leaves * limits.generated
    return (
        new <= limits.new_tokens
        and generated <= limits.generated_slots
        and kept + new + generated <= limits.slots
    )


Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Pack:
    """A group's new tokens in order of slots; slot ``kept`` holds the first of them.

    Attributes:
        kept: Slots that are there already: the beginning of the first leaf.
        tokens: The new tokens.
        positions: Their depths.
        paths: For each leaf, the slots of its tokens.
        starts: For each leaf, the first slot that was added for it; the last one ends the list.
    """

    kept: int
    tokens: Array
    positions: Array
    paths: list[Array]
    starts: list[int]

    def visible(self, begin: int, end: int) -> Array:
        """Returns which of the slots before ``end`` each slot from ``begin`` on sees."""
        seen = np.zeros((end - begin, end), dtype=bool)
        for path, low, high in zip(self.paths, self.starts, self.starts[1:], strict=False):
            first, last = max(low, begin), min(high, end)
            if first < last:
                before = path[path < low]
                rows = slice(first - begin, last - begin)
                seen[rows, before] = True
                seen[rows, low:last] = np.tri(last - first, last - low, first - low, dtype=bool)
        return seen


def lay_out(group: Group[Any]) -> Pack:
    """Gives every token of the group a slot."""
    path = np.arange(group.kept)
    tokens: list[int] = []
    positions: list[Array] = []
    paths: list[Array] = []
    starts = [group.kept]
    for number, leaf in enumerate(group.leaves):
        common = leaf.common if number else group.kept
        added = leaf.tokens[common:]
        end = starts[-1] + len(added)
        path = np.concatenate([path[:common], np.arange(starts[-1], end)])
        tokens.extend(added)
        positions.append(np.arange(common, len(leaf.tokens)))
        paths.append(path)
        starts.append(end)
    return Pack(group.kept, np.array(tokens), np.concatenate(positions), paths, starts)
