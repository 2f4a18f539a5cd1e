"""Choosing demonstrations for each sample, independent of benchmarks and of lm-eval.

A benchmark turns the possible demonstrations into a :class:`Pool` of items with an id, a key
that copies have in common, and features (concepts, facts, constructions). A selection gives
every sample its demonstrations, each with the reason why it was picked, and names the samples
that it has too few for. The same seed, sample and pool give the same demonstrations, whatever
the order and number of the samples and the number of workers.

Every selection takes these arguments:

- ``pool``: the possible demonstrations; the samples may be among them, but no copy of a sample
  is ever shown to it;
- ``samples``: the items to choose for;
- ``k``: demonstrations per sample, 1 or more;
- ``seed``: breaks ties, or draws; different seeds choose differently among equals.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise, repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from lm_eval_ext.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row: TypeAlias = tuple[NDArray[np.intp], NDArray[np.float64]]
    """Places in the pool, without repeats and in any order, and the score of each."""


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
        picked: In the order of picking; a prompt that shows them in this order shows the
            best first where a selection ranks.
    """

    picked: tuple[Picked, ...]

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


Stream: TypeAlias = Iterator[tuple[Item, str]]
"""Possible demonstrations, the best first, each with the reason why it is picked."""


def selected(rows: Iterable[tuple[Item, Iterable[Stream]]], k: int) -> Choices:
    """Gives every sample k demonstrations: at each place the first of a stream that is no copy.

    Args:
        rows: The samples, each with a stream for each place. Places may share one
            (:func:`itertools.repeat`): then each goes on where the last one ended.
        k: Demonstrations per sample.
    """
    full: dict[str, Choice] = {}
    short: dict[str, int] = {}
    for sample, streams in rows:
        picked, keys = list[Picked](), {sample.copy_key}
        for stream in islice(streams, k):
            item, why = next((one for one in stream if one[0].copy_key not in keys), (None, ""))
            if item is None:
                break
            keys.add(item.copy_key)
            picked.append(Picked(item.id, why))
        if len(picked) == k:
            full[sample.id] = Choice(tuple(picked))
        else:
            short[sample.id] = len(picked)
    return Choices(full, short)


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
        drawn = hashlib.blake2b(place.to_bytes(8, "big"), key=start, digest_size=8)
        other = place + int.from_bytes(drawn.digest(), "big") % (count - place)
        yield moved.get(other, other)
        moved[other] = moved.pop(place, place)


def _shared(sample: Item, item: Item) -> str:
    return ", ".join(sorted(sample.features & item.features))


def at_random(pool: Pool, samples: Iterable[Item], k: int, seed: int) -> Choices:
    """Gives every sample k demonstrations of the pool, each as likely as any other.

    Features play no part: whether a demonstration shares one with the sample is left to
    chance.
    """

    def drawn(sample: Item) -> Stream:
        order = shuffled(len(pool), seed, "random", sample.id)
        return ((pool[place], "at random") for place in order)

    return selected(((sample, repeat(drawn(sample))) for sample in samples), k)


def sharing(pool: Pool, samples: Iterable[Item], k: int, seed: int) -> Choices:
    """Gives every sample k demonstrations that share at least one feature with it.

    How many are shared does not matter: all that share one are equally likely. For items with
    one feature each this is "the same concept".
    """
    owners: defaultdict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(pool):
        for feature in item.features:
            owners[feature].append(place)

    def drawn(sample: Item) -> Stream:
        places = sorted({place for name in sample.features for place in owners.get(name, ())})
        for number in shuffled(len(places), seed, "sharing", sample.id):
            item = pool[places[number]]
            yield item, f"shares: {_shared(sample, item)}"

    return selected(((sample, repeat(drawn(sample))) for sample in samples), k)


Rule: TypeAlias = Callable[[Item, int, Item], str | None]
"""From a sample, a place among its demonstrations and an item: why it may stand there, or None."""


def fitting(pool: Pool, samples: Iterable[Item], k: int, seed: int, rule: Rule) -> Choices:
    """Gives every sample k demonstrations: for each place, one at random of those that fit."""

    def drawn(sample: Item, number: int) -> Stream:
        for place in shuffled(len(pool), seed, "fitting", sample.id, number):
            why = rule(sample, number, pool[place])
            if why is not None:
                yield pool[place], why

    return selected(((sample, map(partial(drawn, sample), range(k))) for sample in samples), k)


Why: TypeAlias = Callable[[Item, Item, float], str]
"""From a sample, a demonstration and its score: why it was picked."""


def ranked(pool: Pool, rows: "Iterable[tuple[Item, Row]]", k: int, seed: int, why: Why) -> Choices:
    """Gives every sample the k demonstrations with the highest scores.

    Equal scores are ordered by the seed. Retrieval uses this: its index scores the pool for each
    sample.

    Args:
        pool: The possible demonstrations.
        rows: The samples, each with the places in the pool that may be shown to it and their
            scores; other places are never shown.
        k: Demonstrations per sample.
        seed: Orders equal scores.
        why: Puts the reason into words.
    """
    import numpy as np

    def best(sample: Item, row: "Row") -> Stream:
        places, scores = row
        for score in map(float, np.unique(scores)[::-1]):
            tied = np.sort(places[scores == score])
            for number in shuffled(len(tied), seed, "ranked", sample.id, score):
                item = pool[int(tied[number])]
                yield item, why(sample, item, score)

    return selected(((sample, repeat(best(sample, row))) for sample, row in rows), k)


def overlapping(pool: Pool, samples: Iterable[Item], k: int, seed: int, least: int = 1) -> Choices:
    """Gives every sample the k demonstrations with which it shares the most features.

    All pairs are counted by one product of sparse matrices. An item with fewer than ``least``
    common features (1 or more) is never picked.
    """

    def why(sample: Item, item: Item, score: float) -> str:
        return f"shares {score:g} of {len(sample.features)}: {_shared(sample, item)}"

    return ranked(pool, _overlaps(pool, tuple(samples), least), k, seed, why)


def _overlaps(pool: Pool, samples: Sequence[Item], least: int) -> "Iterator[tuple[Item, Row]]":
    import numpy as np

    names = sorted({name for item in pool for name in item.features})
    columns = {name: column for column, name in enumerate(names)}
    product: Any = _matrix(samples, columns) @ _matrix(pool, columns).T
    product.sum_duplicates()
    for row, sample in enumerate(samples):
        part = slice(product.indptr[row], product.indptr[row + 1])
        enough = product.data[part] >= least
        places, counts = product.indices[part][enough], product.data[part][enough]
        yield sample, (places.astype(np.intp), counts.astype(np.float64))


def _matrix(items: Sequence[Item], columns: dict[str, int]) -> Any:
    """One row per item, with a one in the column of each of its features."""
    import numpy as np
    from scipy.sparse import csr_array

    known = [[columns[name] for name in item.features if name in columns] for item in items]
    ends = np.cumsum([0, *map(len, known)])
    places = np.array([place for row in known for place in row], dtype=np.int64)
    ones = np.ones(len(places), dtype=np.int32)
    return csr_array((ones, places, ends), shape=(len(items), len(columns)))


def clustered(pool: Pool, k: int, seed: int) -> Choices:
    """Divides the pool into clusters of k + 1; each member is shown the others.

    Greedily: the first item that is left opens a cluster and takes, one after the other, the k
    items that are left with the most features in common with the cluster so far, be it none at
    all. The seed orders the items, and with that breaks ties. Fewer than k + 1 items are left over
    in the end. No two items of a cluster are copies.
    """

    def others(item: Item, cluster: Sequence[Item]) -> Stream:
        for other in cluster:
            yield other, f"same cluster; shares: {_shared(item, other) or 'nothing'}"

    clusters = _clusters([pool[place] for place in shuffled(len(pool), seed, "clustered")], k)
    members = ((item, cluster) for cluster in clusters for item in cluster)
    return selected(((item, repeat(others(item, cluster))) for item, cluster in members), k)


def _clusters(items: list[Item], k: int) -> Iterator[list[Item]]:
    """The last ones may be too small."""
    import numpy as np

    owners, copies = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for number, item in enumerate(items):
        copies[item.copy_key].append(number)
        for feature in item.features:
            owners[feature].append(number)
    left = np.ones(len(items), dtype=bool)
    while left.any():
        cluster: list[Item] = []
        features: set[str] = set()
        free, common = left.copy(), np.zeros(len(items), dtype=np.int64)
        while len(cluster) <= k and free.any():
            number = int(np.argmax(np.where(free, common, -1)))
            item = items[number]
            cluster.append(item)
            left[number] = False
            free[copies[item.copy_key]] = False
            for feature in item.features - features:
                common[owners[feature]] += 1
            features |= item.features
        yield cluster
