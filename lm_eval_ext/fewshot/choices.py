"""The pool of demonstrations, the result of a selection, and reproducible random order."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from lm_eval_ext.errors import DataError, OptionError


@dataclass(frozen=True)
class Item:
    """A sample, a possible demonstration, or both.

    Attributes:
        id: Unique in its pool.
        copy_key: Equal for items that are copies of each other, such as the question in
            lower case without punctuation. No sample is shown a copy of itself, nor two
            demonstrations that are copies of each other.
        features: What it may have in common with others.
    """

    id: str
    copy_key: str
    features: frozenset[str] = frozenset()


class Pool(tuple[Item, ...]):
    """Possible demonstrations, sorted by id: the order in which they come changes nothing."""

    __slots__ = ()

    def __new__(cls, items: Iterable[Item]) -> "Pool":
        """Sorts the items; raises a DataError if two have the same id."""
        ordered = sorted(items, key=lambda item: item.id)
        for one, other in pairwise(ordered):
            if one.id == other.id:
                raise DataError(f"two possible demonstrations have the id {one.id!r}; rename one")
        return super().__new__(cls, ordered)


@dataclass(frozen=True)
class Picked:
    """One demonstration: its id, and in words why it was picked."""

    id: str
    why: str


@dataclass(frozen=True)
class Choice:
    """The demonstrations of one sample.

    Attributes:
        sample: Its id.
        picked: In the order of picking; a prompt that shows them in this order shows the
            best first where a selection ranks.
        uncovered: Features of the sample that none of them has, where a benchmark covers them.
    """

    sample: str
    picked: tuple[Picked, ...]
    uncovered: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the demonstrations."""
        return tuple(one.id for one in self.picked)


@dataclass(frozen=True)
class Choices:
    """A selection for many samples.

    Attributes:
        by_sample: The choices, by id of the sample: k demonstrations each.
        not_enough: Samples without k demonstrations: how many there would have been.
    """

    by_sample: Mapping[str, Choice]
    not_enough: Mapping[str, int]


def collected(choices: Iterable[Choice], k: int) -> Choices:
    """Separates the complete choices from the others."""
    full: dict[str, Choice] = {}
    short: dict[str, int] = {}
    for choice in choices:
        if len(choice.picked) == k:
            full[choice.sample] = choice
        else:
            short[choice.sample] = len(choice.picked)
    return Choices(full, short)


def check_k(k: int) -> None:
    """Raises an OptionError if k is below 1."""
    if k < 1:
        raise OptionError(f"{k} demonstrations per sample; use 1 or more")


class Picking:
    """The demonstrations of one sample as they are picked: k at most, and no copies."""

    def __init__(self, sample: Item, k: int) -> None:
        self.sample = sample
        self.picked: list[Picked] = []
        self._k = k
        self._ids = {sample.id}
        self._keys = {sample.copy_key}

    @property
    def full(self) -> bool:
        """Whether k are picked."""
        return len(self.picked) == self._k

    def take(self, item: Item, why: str) -> bool:
        """Picks an item, unless it is a copy of the sample or of one picked before."""
        if self.full or item.id in self._ids or item.copy_key in self._keys:
            return False
        self._ids.add(item.id)
        self._keys.add(item.copy_key)
        self.picked.append(Picked(item.id, why))
        return True

    def choice(self, uncovered: Iterable[str] = ()) -> Choice:
        """Returns what has been picked."""
        return Choice(self.sample.id, tuple(self.picked), tuple(sorted(uncovered)))


_BYTES = 8


def shuffled(count: int, *key: object) -> Iterator[int]:
    """Yields the numbers below ``count`` in an order drawn from the key.

    Lazily, by swaps as in the Fisher-Yates shuffle: the first few of a million cost a few steps.
    Every order is equally likely up to 2**-64 times ``count``. The draws are BLAKE2 of the key,
    so that they are the same on every machine: Python's generator promises the same floats for
    a seed, not the same samples, and its ``hash`` differs between processes.

    Args:
        count: How many numbers.
        key: What the order depends on, such as seed, name of the selection and sample id.
    """
    start = hashlib.blake2b("\x1f".join(map(str, key)).encode("utf-8", "surrogatepass")).digest()
    moved: dict[int, int] = {}
    for place in range(count):
        drawn = hashlib.blake2b(place.to_bytes(_BYTES, "big"), key=start, digest_size=_BYTES)
        other = place + int.from_bytes(drawn.digest(), "big") % (count - place)
        yield moved.get(other, other)
        moved[other] = moved.pop(place, place)
