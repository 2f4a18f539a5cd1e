"""Demonstrations at random."""

from collections.abc import Iterable

from lm_eval_ext.demos.choices import Choice, Choices, Picking, check_k, collected
from lm_eval_ext.demos.draws import shuffled
from lm_eval_ext.demos.pool import Item, Pool

WHY = "at random"


def at_random(pool: Pool, samples: Iterable[Item], k: int, seed: int) -> Choices:
    """Gives every sample k demonstrations of the pool, each as likely as any other.

    Features play no part: whether a demonstration shares one with the sample is left to
    chance. The sample itself and copies are never shown.

    Args:
        pool: What may be shown; the samples may be in it.
        samples: Whom to choose for.
        k: Demonstrations per sample.
        seed: Another seed, another choice.

    Raises:
        OptionError: k is below 1.
    """
    check_k(k)
    return collected((_choice(pool, sample, k, seed) for sample in samples), k)


def _choice(pool: Pool, sample: Item, k: int, seed: int) -> Choice:
    picking = Picking(sample, k)
    for place in shuffled(len(pool), seed, "random", sample.id):
        picking.take(pool[place], WHY)
        if picking.full:
            break
    return picking.choice()
