"""Disjoint clusters of samples that are each other's demonstrations."""

from collections import defaultdict

from lm_eval_ext.fewshot.choices import Choices, Item, Picking, Pool, check_k, collected, shuffled


def clustered(pool: Pool, k: int, seed: int) -> Choices:
    """Divides the pool into clusters of k + 1; each member is shown the others.

    Greedily: the first item that is left opens a cluster and takes, one after the other, the k
    items that are left with the most features in common with the cluster so far, be it none at
    all. The seed orders the items, and with that breaks ties. Fewer than k + 1 items are left over
    in the end. No two items of a cluster are copies.
    """
    check_k(k)
    choices = []
    for cluster in _clusters([pool[place] for place in shuffled(len(pool), seed, "clustered")], k):
        for item in cluster:
            picking = Picking(item, k)
            for other in cluster:
                common = ", ".join(sorted(item.features & other.features)) or "nothing"
                picking.take(other, f"same cluster; shares: {common}")
            choices.append(picking.choice())
    return collected(choices, k)


def _clusters(items: list[Item], k: int) -> list[list[Item]]:
    """The clusters; the last ones may be too small."""
    import numpy as np

    owners, copies = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for number, item in enumerate(items):
        copies[item.copy_key].append(number)
        for feature in item.features:
            owners[feature].append(number)
    left = np.ones(len(items), dtype=bool)
    found = []
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
        found.append(cluster)
    return found
