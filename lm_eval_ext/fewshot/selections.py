"""Demonstrations at random, by rule, with a common feature, by score or by overlap."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

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

WHY = "at random"


def at_random(pool: Pool, samples: Iterable[Item], k: int, seed: int) -> Choices:
    """Gives every sample k demonstrations of the pool, each as likely as any other.

    Features play no part: whether a demonstration shares one with the sample is left to
    chance.
    """
    check_k(k)
    return collected((_random_choice(pool, sample, k, seed) for sample in samples), k)


def _random_choice(pool: Pool, sample: Item, k: int, seed: int) -> Choice:
    picking = Picking(sample, k)
    for place in shuffled(len(pool), seed, "random", sample.id):
        picking.take(pool[place], WHY)
        if picking.full:
            break
    return picking.choice()


def sharing(pool: Pool, samples: Iterable[Item], k: int, seed: int) -> Choices:
    """Gives every sample k demonstrations that share at least one feature with it.

    How many are shared does not matter: all that share one are equally likely. For items with
    one feature each this is "the same concept".
    """
    check_k(k)
    owners: defaultdict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(pool):
        for feature in item.features:
            owners[feature].append(place)
    return collected((_sharing_choice(pool, owners, sample, k, seed) for sample in samples), k)


def _sharing_choice(
    pool: Pool, owners: Mapping[str, Sequence[int]], sample: Item, k: int, seed: int
) -> Choice:
    places = sorted({place for name in sample.features for place in owners.get(name, ())})
    picking = Picking(sample, k)
    for number in shuffled(len(places), seed, "sharing", sample.id):
        item = pool[places[number]]
        common = ", ".join(sorted(sample.features & item.features))
        picking.take(item, f"shares: {common}")
        if picking.full:
            break
    return picking.choice()


Rule: TypeAlias = Callable[[Item, int, Item], str | None]
"""From a sample, a place among its demonstrations and an item: why it may stand there, or None."""


def fitting(pool: Pool, samples: Iterable[Item], k: int, seed: int, rule: Rule) -> Choices:
    """Gives every sample k demonstrations: for each place, one at random of those that fit."""
    check_k(k)
    return collected((_fitting_choice(pool, sample, k, seed, rule) for sample in samples), k)


def _fitting_choice(pool: Pool, sample: Item, k: int, seed: int, rule: Rule) -> Choice:
    picking = Picking(sample, k)
    for number in range(k):
        for place in shuffled(len(pool), seed, "fitting", sample.id, number):
            why = rule(sample, number, pool[place])
            if why is not None and picking.take(pool[place], why):
                break
        else:
            break
    return picking.choice()


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row: TypeAlias = tuple[NDArray[np.intp], NDArray[np.float64]]
    """Places in the pool, without repeats and in any order, and the score of each."""

Why: TypeAlias = Callable[[Item, Item, float], str]
"""From a sample, a demonstration and its score: why it was picked."""


def ranked(
    pool: Pool,
    rows: "Iterable[tuple[Item, Row]]",
    k: int,
    seed: int,
    why: Why = lambda _sample, _item, score: f"scores {score:g}",
) -> Choices:
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
    check_k(k)
    return collected((_ranked_choice(pool, row, k, seed, why) for row in rows), k)


def _ranked_choice(pool: Pool, row: "tuple[Item, Row]", k: int, seed: int, why: Why) -> Choice:
    import numpy as np

    sample, (places, scores) = row
    picking = Picking(sample, k)
    for score in np.unique(scores)[::-1]:
        tied = np.sort(places[scores == score])
        for number in shuffled(len(tied), seed, "ranked", sample.id, float(score)):
            item = pool[int(tied[number])]
            picking.take(item, why(sample, item, float(score)))
            if picking.full:
                return picking.choice()
    return picking.choice()


def overlapping(pool: Pool, samples: Iterable[Item], k: int, seed: int, least: int = 1) -> Choices:
    """Gives every sample the k demonstrations with which it shares the most features.

    All pairs are counted by one product of sparse matrices. An item with fewer than ``least``
    common features (1 or more) is never picked.
    """
    return ranked(pool, _overlaps(pool, tuple(samples), least), k, seed, _why)


def _why(sample: Item, item: Item, score: float) -> str:
    common = ", ".join(sorted(sample.features & item.features))
    return f"shares {score:g} of {len(sample.features)}: {common}"


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
