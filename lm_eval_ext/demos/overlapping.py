"""Demonstrations that have the most features in common with the sample."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_ext.demos.choices import Choices
from lm_eval_ext.demos.pool import Item, Pool
from lm_eval_ext.demos.ranked import ranked

if TYPE_CHECKING:
    from lm_eval_ext.demos.ranked import Row


def overlapping(pool: Pool, samples: Iterable[Item], k: int, seed: int) -> Choices:
    """Gives every sample the k demonstrations with which it shares the most features.

    All pairs are counted by one product of sparse matrices. Ties are broken by the seed; an
    item without a common feature is never picked.

    Args:
        pool: What may be shown; the samples may be in it.
        samples: Whom to choose for.
        k: Demonstrations per sample.
        seed: Another seed, another order of equal overlaps.

    Raises:
        OptionError: k is below 1.
    """
    return ranked(pool, _overlaps(pool, tuple(samples)), k, seed, _why)


def _why(sample: Item, item: Item, score: float) -> str:
    common = ", ".join(sorted(sample.features & item.features))
    return f"shares {score:g} of {len(sample.features)}: {common}"


def _overlaps(pool: Pool, samples: Sequence[Item]) -> "Iterator[tuple[Item, Row]]":
    import numpy as np

    names = sorted({name for item in pool for name in item.features})
    columns = {name: column for column, name in enumerate(names)}
    product: Any = _matrix(samples, columns) @ _matrix(pool.items, columns).T
    product.sum_duplicates()
    for row, sample in enumerate(samples):
        part = slice(product.indptr[row], product.indptr[row + 1])
        yield sample, (product.indices[part].astype(np.intp), product.data[part].astype(np.float64))


def _matrix(items: Sequence[Item], columns: dict[str, int]) -> Any:
    """One row per item, with a one in the column of each of its features."""
    import numpy as np
    from scipy.sparse import csr_array

    known = [[columns[name] for name in item.features if name in columns] for item in items]
    ends = np.cumsum([0, *map(len, known)])
    places = np.array([place for row in known for place in row], dtype=np.int64)
    ones = np.ones(len(places), dtype=np.int32)
    return csr_array((ones, places, ends), shape=(len(items), len(columns)))
