"""Which documents ``--limit N`` takes: N that are spread over all, not the first ones.

The first documents of a file are often of one database or of one type. lm-eval takes them; a
trial of ours takes documents in turn from every cluster, and of these from every kind, as the
benchmark's card says (``trial``). Smaller trials are parts of larger ones. Without a limit
documents, their order and their ids are as ever.
"""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from lm_eval_ext.cards import Trial

_SEED = 0
"""Of the order of documents that differ in nothing else."""


def order(docs: Any, trial: Trial) -> Iterator[int]:
    """Yields the places of all documents, in the order in which trials take them.

    In every round it takes one of each cluster, and each time of the kind taken least so far.

    Args:
        docs: A data set.
        trial: The first of ``across`` is the cluster, the others are the kind.
    """
    units: dict[Any, list[int]] = {}
    together = docs[trial.together][:] if trial.together else range(len(docs))
    for place, unit in enumerate(together):
        units.setdefault(unit, []).append(place)
    drawn = list(units.values())
    random.Random(_SEED).shuffle(drawn)
    columns = [docs[name][:] for name in trial.across]
    waiting: dict[str, dict[tuple[str, ...], list[list[int]]]] = {}
    for unit in reversed(drawn):
        cluster, *others = (str(column[unit[0]]) for column in columns)
        waiting.setdefault(cluster, {}).setdefault(tuple(others), []).append(unit)
    taken: Counter[tuple[str, ...]] = Counter()
    while waiting:
        kinds = list(dict.fromkeys(kind for own in waiting.values() for kind in own))
        of_round = dict(waiting)
        while of_round:
            there = [kind for kind in kinds if any(kind in own for own in of_round.values())]
            kind = min(there, key=taken.__getitem__)
            cluster = next(name for name, own in of_round.items() if kind in own)
            left = of_round.pop(cluster)
            yield from left[kind].pop()
            taken[kind] += 1
            if not left[kind]:
                del left[kind]
            if not left:
                del waiting[cluster]
