"""Demonstrations that have a feature in common with the sample."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from lm_eval_ext.demos.choices import Choice, Choices, Picking, check_k, collected
from lm_eval_ext.demos.draws import shuffled
from lm_eval_ext.demos.pool import Item, Pool


def sharing(pool: Pool, samples: Iterable[Item], k: int, seed: int) -> Choices:
    """Gives every sample k demonstrations that share at least one feature with it.

    Any one will do, and how many are shared does not matter: all that share are equally
    likely. For items with one feature each this is "the same concept".

    Args:
        pool: What may be shown; the samples may be in it.
        samples: Whom to choose for.
        k: Demonstrations per sample.
        seed: Another seed, another choice.

    Raises:
        OptionError: k is below 1.
    """
    check_k(k)
    owners: defaultdict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(pool):
        for feature in item.features:
            owners[feature].append(place)
    return collected((_choice(pool, owners, sample, k, seed) for sample in samples), k)


def _choice(
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
