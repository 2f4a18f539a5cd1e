"""Demonstrations that together have the features of a sample."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.fewshot.choices import (
    Choice,
    Choices,
    Item,
    Picking,
    Pool,
    check_k,
    collected,
    shuffled,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KNOWN = 4096
"""Sets of wanted features whose ranking is cached; changes memory and time, never a choice."""


@dataclass(frozen=True)
class Group:
    """Items of the pool one of which must be shown.

    Attributes:
        why: What they are, such as "the exposure example of a word".
        ids: The ids of the items.
    """

    why: str
    ids: Collection[str]


def covering(
    pool: Pool,
    samples: Iterable[Item],
    k: int,
    seed: int,
    required: Callable[[Item], Sequence[Group]] = lambda _sample: (),
) -> Choices:
    """Gives every sample k demonstrations that cover its features.

    First one of each group that the sample requires, drawn by the seed; then, greedily, the item
    with the most features of the sample that no demonstration has yet, ties broken by the seed.
    Once all features are covered, they are covered again; where no item has any of them, the
    rest is drawn at random. The reason of each demonstration says which of these it was. A
    sample has too few if one of its groups holds only copies.

    It is meant for a pool whose items fall into few kinds (equal sets of features), such as
    constructions; the time grows with the number of kinds, not of items.

    Args:
        pool: The possible demonstrations.
        samples: The items to choose for.
        k: Demonstrations per sample.
        seed: Breaks ties.
        required: The groups of a sample.

    Raises:
        OptionError: k is below 1, or below the number of groups that a sample requires.
        DataError: A group is empty or names an id that the pool does not have.
    """
    check_k(k)
    kinds = _Kinds(pool)
    return collected((_choice(kinds, one, k, seed, required(one)) for one in samples), k)


class _Kinds:
    """The pool by kind: items with the same features."""

    def __init__(self, pool: Pool) -> None:
        import numpy as np

        self.pool = pool
        self.places = {item.id: place for place, item in enumerate(pool)}
        members: defaultdict[frozenset[str], list[int]] = defaultdict(list)
        for place, item in enumerate(pool):
            members[item.features].append(place)
        # In the order of their first items: that of a set of strings differs between processes.
        self.members = [np.array(places) for places in members.values()]
        self.sizes = np.array([len(places) for places in members.values()])
        having: defaultdict[str, list[int]] = defaultdict(list)
        for kind, features in enumerate(members):
            for name in features:
                having[name].append(kind)
        self.having = {name: np.array(rows) for name, rows in having.items()}
        # Samples with the same features want the same, so a few sets come again and again.
        self.known = lru_cache(KNOWN)(self.ranked)

    def ranked(self, wanted: frozenset[str]) -> "list[tuple[int, NDArray[np.int64], list[int]]]":
        """Returns the kinds by how many of the features they have, the most first.

        With each number of features come its kinds, and how many items they and those before
        them have.
        """
        import numpy as np

        counts = np.zeros(len(self.members), dtype=np.int64)
        for name in wanted:
            if name in self.having:
                counts[self.having[name]] += 1
        gains = np.unique(counts[counts > 0])[::-1]
        found = ((int(gain), np.flatnonzero(counts == gain)) for gain in gains)
        return [(gain, kinds, np.cumsum(self.sizes[kinds]).tolist()) for gain, kinds in found]

    def best_first(self, wanted: frozenset[str], *key: object) -> Iterator[Item]:
        """Yields items that have one of the features: those with the most first."""
        for gain, kinds, ends in self.known(wanted):
            for number in shuffled(ends[-1], *key, gain):
                row = bisect_right(ends, number)
                # Below zero, so counted from the kind's last item.
                yield self.pool[int(self.members[kinds[row]][number - ends[row]])]


def _choice(kinds: _Kinds, sample: Item, k: int, seed: int, groups: Sequence[Group]) -> Choice:
    if len(groups) > k:
        raise OptionError(
            f"{k} demonstrations per sample, but {sample.id} must be shown {len(groups)}; "
            f"use {len(groups)} or more"
        )
    picking = Picking(sample, k)
    shown: set[str] = set()
    for number, group in enumerate(groups):
        features = _take_required(kinds, picking, group, (seed, "required", sample.id, number))
        if features is None:
            return picking.choice(sample.features - shown)
        shown |= features
    to_cover = sample.features.intersection(kinds.having)
    left, how = to_cover - shown, "covers"
    while not picking.full:
        if not left:
            left, how = to_cover, "covers again"
        step = (seed, "covering", sample.id, len(picking.picked))
        features = _take_next(kinds, picking, ((left, how), (to_cover, "covers again")), step)
        if features is None:
            break
        left = left - features
        shown |= features
    return picking.choice(sample.features - shown)


def _take_next(
    kinds: _Kinds,
    picking: Picking,
    rounds: Iterable[tuple[frozenset[str], str]],
    key: tuple[object, ...],
) -> frozenset[str] | None:
    """Picks one more item and returns its features; None if there is none."""
    for wanted, how in rounds:
        for item in kinds.best_first(wanted, *key, how):
            if picking.take(item, f"{how} {', '.join(sorted(wanted & item.features))}"):
                return item.features
    for place in shuffled(len(kinds.pool), *key, "random"):
        if picking.take(kinds.pool[place], "at random: covers nothing"):
            return kinds.pool[place].features
    return None


def _take_required(
    kinds: _Kinds, picking: Picking, group: Group, key: tuple[object, ...]
) -> frozenset[str] | None:
    """Picks an item of a group and returns its features; None if it holds only copies."""
    ids = sorted(group.ids)
    if not ids or any(name not in kinds.places for name in ids):
        raise DataError(
            f"sample {picking.sample.id} requires {group.why}, which the possible "
            "demonstrations do not hold"
        )
    for number in shuffled(len(ids), *key):
        item = kinds.pool[kinds.places[ids[number]]]
        if picking.take(item, f"required: {group.why}") or item.id in picking.choice().ids:
            return item.features
    return None
