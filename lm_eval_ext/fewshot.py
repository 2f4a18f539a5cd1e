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
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from lm_eval_ext.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row: TypeAlias = tuple[NDArray[np.intp], NDArray[np.float64]]
    """Positions in the pool, without repeats and in any order, and the score of each."""


@dataclass(frozen=True)
class Item:
    """A sample, a possible demonstration, or both.

    Attributes:
        id: Unique in its pool.
        copy_key: Equal for items that are copies of each other, such as the question in
            lower case without punctuation. No sample is shown a copy of itself, nor two
            demonstrations that are copies of each other.
        features: The features that it may have in common with other items.
    """

    id: str
    copy_key: str
    features: frozenset[str] = frozenset()


class Pool(tuple[Item, ...]):
    """Possible demonstrations, sorted by id: the order in which they come changes nothing."""

    __slots__ = ()

    def __new__(cls, items: Iterable[Item]) -> "Pool":
        """Sort the items.

        Raises:
            DataError: Two items have the same id.
        """
        ordered = sorted(items, key=attrgetter("id"))
        for item, next_item in pairwise(ordered):
            if item.id == next_item.id:
                raise DataError(f"two possible demonstrations have the id {item.id!r}; rename one")
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
        picked: The demonstrations in the order of picking; a prompt that shows them in this order
            shows the best first where a selection ranks.
    """

    picked: tuple[Picked, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the demonstrations."""
        return tuple(demonstration.id for demonstration in self.picked)


@dataclass(frozen=True)
class Choices:
    """A selection for many samples.

    Attributes:
        by_sample: The choices, by id of the sample: k demonstrations each.
        not_enough: Samples without k demonstrations: the number that was found.
    """

    by_sample: Mapping[str, Choice]
    not_enough: Mapping[str, int]


Stream: TypeAlias = Iterator[tuple[Item, str]]
"""Possible demonstrations, the best first, each with the reason why it is picked."""


def selected(rows: Iterable[tuple[Item, Iterable[Stream]]], k: int) -> Choices:
    """Give every sample k demonstrations: at each position the first of a stream that is no copy.

    Args:
        rows: The samples, each with a stream for each position. Positions may share a stream
            (:func:`itertools.repeat`): then each goes on where the last one ended.
        k: Demonstrations per sample.
    """
    by_sample: dict[str, Choice] = {}
    not_enough: dict[str, int] = {}
    for sample, streams in rows:
        picked = _pick(sample, islice(streams, k))
        if len(picked) == k:
            by_sample[sample.id] = Choice(tuple(picked))
        else:
            not_enough[sample.id] = len(picked)
    return Choices(by_sample, not_enough)


def _pick(sample: Item, streams: Iterable[Stream]) -> list[Picked]:
    """Pick from each stream, up to the first that has nothing left."""
    picked: list[Picked] = []
    copy_keys = {sample.copy_key}
    for stream in streams:
        for item, why in stream:
            if item.copy_key not in copy_keys:
                copy_keys.add(item.copy_key)
                picked.append(Picked(item.id, why))
                break
        else:
            return picked
    return picked


def shuffled(count: int, *key: object) -> Iterator[int]:
    """Yield the numbers below ``count`` in an order drawn from the key.

    They are drawn lazily, by swaps as in the Fisher-Yates shuffle: the first few of a million cost
    a few steps.
    Every order is equally likely up to 2**-64 times ``count``. The draws are BLAKE2 of the key,
    so that they are the same on every machine: Python's generator promises the same floats for
    a seed, not the same samples, and its ``hash`` differs between processes.

    Args:
        count: The number of numbers.
        key: All that the order depends on, such as seed, name of the selection and sample id.
    """
    key_text = "\x1f".join(map(str, key))
    key_digest = hashlib.blake2b(key_text.encode("utf-8", "surrogatepass")).digest()
    swapped: dict[int, int] = {}  # the numbers at positions that are not their own
    for position in range(count):
        draw = hashlib.blake2b(position.to_bytes(8, "big"), key=key_digest, digest_size=8)
        partner = position + int.from_bytes(draw.digest(), "big") % (count - position)
        yield swapped.get(partner, partner)
        swapped[partner] = swapped.pop(position, position)


def _shared(sample: Item, item: Item) -> str:
    return ", ".join(sorted(sample.features & item.features))


def at_random(pool: Pool, samples: Iterable[Item], k: int, seed: int) -> Choices:
    """Give every sample k demonstrations of the pool, each as likely as any other.

    Features play no part: whether a demonstration shares one with the sample is left to
    chance.
    """

    def drawn(sample: Item) -> Stream:
        for position in shuffled(len(pool), seed, "random", sample.id):
            yield pool[position], "at random"

    return selected(((sample, repeat(drawn(sample))) for sample in samples), k)


def sharing(pool: Pool, samples: Iterable[Item], k: int, seed: int) -> Choices:
    """Give every sample k demonstrations that share at least one feature with it.

    How many are shared does not matter: all that share one are equally likely. For items with
    one feature each this is "the same concept".
    """
    positions_of = _positions_by_feature(pool)

    def drawn(sample: Item) -> Stream:
        sharing_positions: set[int] = set()
        for feature in sample.features:
            sharing_positions.update(positions_of.get(feature, ()))
        positions = sorted(sharing_positions)
        for number in shuffled(len(positions), seed, "sharing", sample.id):
            item = pool[positions[number]]
            yield item, f"shares: {_shared(sample, item)}"

    return selected(((sample, repeat(drawn(sample))) for sample in samples), k)


def _positions_by_feature(items: Sequence[Item]) -> dict[str, list[int]]:
    """Return the positions of the items that have each feature."""
    positions_of = defaultdict[str, list[int]](list)
    for position, item in enumerate(items):
        for feature in item.features:
            positions_of[feature].append(position)
    return dict(positions_of)


Rule: TypeAlias = Callable[[Item, int, Item], str | None]
"""Says why an item may be a demonstration, or None.

It is given the sample, the position among its demonstrations, and the item.
"""


def fitting(pool: Pool, samples: Iterable[Item], k: int, seed: int, rule: Rule) -> Choices:
    """Give every sample k demonstrations: for each position, an item at random that fits."""

    def drawn(sample: Item, number: int) -> Stream:
        for position in shuffled(len(pool), seed, "fitting", sample.id, number):
            why = rule(sample, number, pool[position])
            if why is not None:
                yield pool[position], why

    return selected(((sample, map(partial(drawn, sample), range(k))) for sample in samples), k)


Why: TypeAlias = Callable[[Item, Item, float], str]
"""Says why a demonstration was picked, given the sample, the demonstration and its score."""


def ranked(pool: Pool, rows: "Iterable[tuple[Item, Row]]", k: int, seed: int, why: Why) -> Choices:
    """Give every sample the k demonstrations with the highest scores.

    Equal scores are ordered by the seed. Retrieval uses this: its index scores the pool for each
    sample.

    Args:
        pool: The possible demonstrations.
        rows: The samples, each with the positions in the pool that may be shown to it and their
            scores; other positions are never shown.
        k: Demonstrations per sample.
        seed: Orders equal scores.
        why: Puts the reason into words.
    """
    import numpy as np

    def best(sample: Item, row: "Row") -> Stream:
        positions, scores = row
        for score in map(float, np.unique(scores)[::-1]):
            has_score = scores == score
            tied = np.sort(positions[has_score])
            for number in shuffled(len(tied), seed, "ranked", sample.id, score):
                item = pool[int(tied[number])]
                yield item, why(sample, item, score)

    return selected(((sample, repeat(best(sample, row))) for sample, row in rows), k)


def overlapping(
    pool: Pool, samples: Iterable[Item], k: int, seed: int, min_shared: int = 1
) -> Choices:
    """Give every sample the k demonstrations with which it shares the most features.

    All pairs are counted by one product of sparse matrices. An item with fewer than ``min_shared``
    common features (1 or more) is never picked.
    """

    def why(sample: Item, item: Item, score: float) -> str:
        return f"shares {score:g} of {len(sample.features)}: {_shared(sample, item)}"

    return ranked(pool, _overlaps(pool, tuple(samples), min_shared), k, seed, why)


def _overlaps(pool: Pool, samples: Sequence[Item], min_shared: int) -> "Iterator[tuple[Item, Row]]":
    import numpy as np

    features: set[str] = set()
    for item in pool:
        features |= item.features
    column_of = {feature: column for column, feature in enumerate(sorted(features))}
    product: Any = _matrix(samples, column_of) @ _matrix(pool, column_of).T
    product.sum_duplicates()
    for row, sample in enumerate(samples):
        entries = slice(product.indptr[row], product.indptr[row + 1])
        positions = product.indices[entries]
        counts = product.data[entries]
        is_enough = counts >= min_shared
        yield (
            sample,
            (positions[is_enough].astype(np.intp), counts[is_enough].astype(np.float64)),
        )


def _matrix(items: Sequence[Item], column_of: Mapping[str, int]) -> Any:
    """Return a row for each item, with a one in the column of each of its features."""
    import numpy as np
    from scipy.sparse import csr_array

    columns: list[int] = []
    ends = [0]
    for item in items:
        columns += [column_of[feature] for feature in item.features if feature in column_of]
        ends.append(len(columns))
    entries = np.ones(len(columns), dtype=np.int32)
    content = (entries, np.array(columns, dtype=np.int64), np.array(ends))
    return csr_array(content, shape=(len(items), len(column_of)))


def clustered(pool: Pool, k: int, seed: int) -> Choices:
    """Divide the pool into clusters of k + 1; each member is shown the others.

    It is done greedily: the first remaining item opens a cluster and takes, one after the other,
    the k remaining items with the most features in common with the cluster so far, even if that is
    none. The seed orders the items, and so breaks ties. Fewer than k + 1 items remain in the end.
    No two items of a cluster are copies.
    """

    def members(item: Item, cluster: Sequence[Item]) -> Stream:
        for member in cluster:
            yield member, f"same cluster; shares: {_shared(item, member) or 'nothing'}"

    items = [pool[position] for position in shuffled(len(pool), seed, "clustered")]
    rows = []
    for cluster in _clusters(items, k):
        for item in cluster:
            rows.append((item, repeat(members(item, cluster))))
    return selected(rows, k)


def _clusters(items: list[Item], k: int) -> Iterator[list[Item]]:
    """Yield the clusters; the last ones may be too small."""
    import numpy as np

    positions_of = _positions_by_feature(items)
    copies = defaultdict[str, list[int]](list)
    for position, item in enumerate(items):
        copies[item.copy_key].append(position)
    is_remaining = np.ones(len(items), dtype=bool)
    while is_remaining.any():
        cluster: list[Item] = []
        features: set[str] = set()
        is_candidate = is_remaining.copy()
        common_features = np.zeros(len(items), dtype=np.int64)
        while len(cluster) <= k and is_candidate.any():
            position = int(np.argmax(np.where(is_candidate, common_features, -1)))
            item = items[position]
            cluster.append(item)
            is_remaining[position] = False
            is_candidate[copies[item.copy_key]] = False
            for feature in item.features - features:
                common_features[positions_of[feature]] += 1
            features |= item.features
        yield cluster
