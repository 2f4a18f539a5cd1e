"""Lays a group of leaves out as one sequence of slots in which every token occurs once.

A token sees its ancestors in the tree and nothing else, and its position is its depth there:
to the model it looks as if its sequence stood alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lm_eval_ext.models.prefix.plan import Group

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
