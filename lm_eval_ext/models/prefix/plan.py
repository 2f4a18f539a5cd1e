"""Cuts a tree's leaves into groups that are computed together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

from lm_eval_ext.models.prefix.tree import Key, Leaf, Tree


@dataclass(frozen=True)
class Limits:
    """What a group may hold; one leaf is always a group, however long.

    Attributes:
        new_tokens: Tokens that are computed for the group.
        slots: Tokens whose keys and values are held at a time: kept, new and generated.
        generated: Tokens that each leaf may generate.
        generated_slots: Slots that the generated tokens of a group may take together.
    """

    new_tokens: int
    slots: int
    generated: int = 0
    generated_slots: int = 8192


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
        kept, lowest = min(leaf.common, leaf.first), leaf.common
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
