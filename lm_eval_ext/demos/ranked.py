"""Demonstrations in the order of a score: of overlap, of retrieval, of anything."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_ext.demos.choices import Choice, Choices, Picking, check_k, collected
from lm_eval_ext.demos.draws import shuffled
from lm_eval_ext.demos.pool import Item, Pool

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

    Equal scores are put into an order by the seed. This is the hook for retrieval: its index
    scores the pool for each sample, and nothing else needs to be written.

    Args:
        pool: What may be shown; the samples may be in it.
        rows: The samples, each with the places in the pool that may be shown to it and their
            scores; what is left out is never shown.
        k: Demonstrations per sample.
        seed: Another seed, another order of equal scores.
        why: Puts the reason into words.

    Raises:
        OptionError: k is below 1.
    """
    check_k(k)
    return collected((_choice(pool, row, k, seed, why) for row in rows), k)


def _choice(pool: Pool, row: "tuple[Item, Row]", k: int, seed: int, why: Why) -> Choice:
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
