"""A prefix tree of token sequences, held as a sorted list.

In sorted order, sequences that share a beginning are neighbours, and walking down the list is
walking the tree depth first: what a sequence adds to the tree is what it does not share with
the sequence before it.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

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
        first: The first position whose prediction somebody needs.
        keys: Who asked for it, in the order of asking.
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
