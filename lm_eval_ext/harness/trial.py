"""Which documents ``--limit N`` takes: N that are spread over all, not the first ones.

The first documents of a file are often of one database or of one type. lm-eval takes them; a
trial of ours takes documents in turn from every cluster, and of these from every kind, as the
benchmark's card says (``trial``). Smaller trials are parts of larger ones. Without a limit
documents, their order and their ids are as ever.
"""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lm_eval_ext.cards import Card
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS

_SEED = 0
"""Of the order of documents that nothing else tells apart."""


class Trials:
    """The trials of one task."""

    def __init__(self, card: Card | None, task: str) -> None:
        """Takes the card of the benchmark that the documents are loaded by."""
        self._card, self._own = card, card is not None and card.asks_own(task)
        self._ordered: tuple[Any, list[int]] | None = None

    def chosen(self, docs: Any, limit: int | None) -> list[int] | None:
        """The places of the documents of a trial.

        Returns:
            None for all documents, or where they are lm-eval's first ones.
        """
        if not limit or limit >= len(docs):
            return None
        places = self._places(docs)
        return sorted(places[: int(limit)]) if places else None

    def note(self, docs: Any) -> dict[str, int | None]:
        """What the results file says about a trial."""
        places = self._places(docs)
        found = enough(docs, places, self._card, own=self._own) if self._card and places else None
        return {"enough": found}

    def _places(self, docs: Any) -> list[int]:
        if self._ordered is None or self._ordered[0] is not docs:
            self._ordered = (docs, order(docs, self._card) or [])
        return self._ordered[1]


def order(docs: Any, card: Card | None) -> list[int] | None:
    """Places of all documents, in the order in which trials take them.

    Args:
        docs: A data set, or a list of mappings.
        card: The benchmark's.

    Returns:
        None if the card does not say, or the documents lack a column.
    """
    if card is None or card.trial is None:
        return None
    names = [*card.trial.across, *filter(None, [card.trial.together])]
    columns = _columns(docs, names)
    if len(columns) < len(names):
        return None
    units: dict[Any, list[int]] = {}
    together = columns.get(card.trial.together, range(len(docs)))
    for place, unit in enumerate(together):
        units.setdefault(unit, []).append(place)
    drawn = list(units.values())
    random.Random(_SEED).shuffle(drawn)
    first, *others = card.trial.across
    kinds = [
        (str(columns[first][unit[0]]), tuple(str(columns[name][unit[0]]) for name in others))
        for unit in drawn
    ]
    return [place for number in _in_turn(kinds) for place in drawn[number]]


def enough(docs: Any, places: Sequence[int], card: Card, *, own: bool) -> int | None:
    """The smallest trial with intervals: its documents come from enough clusters.

    Args:
        docs: As for :func:`order`.
        places: From there.
        card: The benchmark's.
        own: Whether the documents are a user's own.

    Returns:
        None if all documents together come from too few.
    """
    together = card.trial.together if card.trial else ""
    names = [card.cluster.column, together, *(one.column for one in card.cluster.own_within)]
    columns = _columns(docs, names)
    if card.cluster.column not in columns:
        return None
    clusters = card.cluster.of(columns, own=own)
    unit = columns.get(together)
    seen: set[str] = set()
    for taken, place in enumerate(places):
        within = taken and unit is not None and unit[place] == unit[places[taken - 1]]
        if len(seen) >= LEAST_CLUSTERS and not within:
            return taken
        seen.add(clusters[place])
    return len(places) if len(seen) >= LEAST_CLUSTERS else None


def _columns(docs: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Those of the columns that the documents have."""
    there = getattr(docs, "column_names", None)
    if there is not None:
        return {name: docs[name][:] for name in names if name in there}
    return {name: [doc[name] for doc in docs] for name in names if all(name in doc for doc in docs)}


def _in_turn(kinds: Sequence[tuple[str, tuple[str, ...]]]) -> list[int]:
    """Takes one of each cluster in every round, and each time of the kind taken least so far.

    Args:
        kinds: By unit, its cluster, and what else a trial is spread over.
    """
    waiting: dict[str, dict[tuple[str, ...], list[int]]] = {}
    for number, (cluster, kind) in reversed(list(enumerate(kinds))):
        waiting.setdefault(cluster, {}).setdefault(kind, []).append(number)
    taken: Counter[tuple[str, ...]] = Counter()
    found: list[int] = []
    while waiting:
        in_order = dict.fromkeys(kind for of_cluster in waiting.values() for kind in of_cluster)
        of_round = dict(waiting)
        while of_round:
            there = [kind for kind in in_order if any(kind in one for one in of_round.values())]
            kind = min(there, key=taken.__getitem__)
            cluster = next(name for name, one in of_round.items() if kind in one)
            numbers = of_round.pop(cluster)
            found.append(numbers[kind].pop())
            taken[kind] += 1
            if not numbers[kind]:
                del numbers[kind]
            if not numbers:
                del waiting[cluster]
    return found
