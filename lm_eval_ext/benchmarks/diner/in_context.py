"""Demonstrations for a test recipe, from the training set.

:func:`by_instruction` sees what the model sees. :func:`by_gold_name` is the paper's way
(sections 4.2 and 5.2) and looks at the gold name, so it is an oracle.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.diner.glossary import Component
from lm_eval_ext.benchmarks.diner.records import Recipe, Split
from lm_eval_ext.benchmarks.diner.retrieval import index_of
from lm_eval_ext.fewshot import Choice, Choices, Item, Pool, ranked, shuffled
from lm_eval_ext.fewshot.choices import Picking, check_k, collected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


INSTRUCTION, ORACLE = "instruction", "oracle"
SELECTIONS = (INSTRUCTION, ORACLE)

_FIRST_LOOK = 64
"""Of the best recipes, among which k that are no copies are looked for first."""


def choose(split: Split, samples: Collection[Recipe], how: str, k: int, seed: int) -> Choices:
    """Gives every sample k demonstrations.

    Neither the other samples nor their order matter to a sample's. None is a copy of the
    sample, nor are two of them copies of each other.

    Args:
        split: Whose training set is searched; the index of it is kept in the cache.
        samples: For whom.
        how: One of :data:`SELECTIONS`.
        k: Demonstrations per sample.
        seed: Another seed, another choice among equals.

    Raises:
        OptionError: k is below 1.
        DataError: The index cannot be made or kept.
    """
    from tqdm import tqdm

    check_k(k)
    search = _Search(split)
    # disable=None: a bar on terminals only.
    bar = tqdm(samples, "Choosing demonstrations", disable=None)
    if how == INSTRUCTION:
        return ranked(
            search.pool,
            ((_item(sample), search.best(sample, k)) for sample in bar),
            k,
            seed,
            lambda _sample, _item, score: f"BM25 {score:.2f}",
        )
    oracle = _Oracle(split, search)
    return collected((oracle.choice(sample, k, seed) for sample in bar), k)


class _Search:
    """The training set as a pool and as an index, in the same order."""

    def __init__(self, split: Split) -> None:
        self.pool = Pool(_item(recipe) for recipe in split.train)
        self.recipes = [split.by_id[item.id] for item in self.pool]
        self.index = index_of([recipe.instruction for recipe in self.recipes])

    def best(self, sample: Recipe, k: int) -> "tuple[NDArray[np.intp], NDArray[np.float64]]":
        """Places and scores of the best recipes, at least k of which may be shown."""
        import numpy as np

        scores = self.index.scores(sample.instruction)
        look = _FIRST_LOOK + k
        while True:
            if look >= len(scores):
                return np.arange(len(scores)), scores.astype(np.float64)
            # With all that are equal to the last, or chance would be no longer the seed's.
            places = np.flatnonzero(scores >= np.partition(scores, -look)[-look])
            keys = {self.pool[int(place)].copy_key for place in places} - {sample.copy_key}
            if len(keys) >= k:
                return places, scores[places].astype(np.float64)
            look *= 8


class _Oracle:
    """The dishes of the training set by their components."""

    def __init__(self, split: Split, search: _Search) -> None:
        self._search = search
        self._parse = split.glossary.parse
        self._components = {name: frozenset(found) for name, found in split.train_names.items()}
        self._having: defaultdict[Component, list[str]] = defaultdict(list)
        for name, components in self._components.items():
            for component in sorted(components):
                self._having[component].append(name)
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, recipe in enumerate(search.recipes):
            self._places[recipe.name].append(place)

    def choice(self, sample: Recipe, k: int, seed: int) -> Choice:
        """The demonstrations of a sample, each of another dish, none of the sample's own."""
        scores = self._search.index.scores(sample.instruction)
        picking = Picking(_item(sample), k)
        gold = frozenset(self._parse(sample.name) or ())
        left, used = gold, {sample.name}
        while not picking.full:
            key = (seed, ORACLE, sample.id, len(picking.picked))
            # Components that no training name has cannot be covered.
            wanted = frozenset(one for one in left if one in self._having) or gold
            for name, f1 in self._alike(wanted, used, key):
                used.add(name)
                why = f"F1 {f1:.2f} to {'+'.join(sorted(one.name for one in wanted))}"
                if self._take(picking, name, scores, why, key):
                    left = left - self._components[name]
                    break
            else:
                break
        return picking.choice(one.name for one in left)

    def _alike(
        self, wanted: frozenset[Component], used: Collection[str], key: tuple[object, ...]
    ) -> Iterator[tuple[str, float]]:
        """Names by their F1 to components, the highest first; then the others at random."""
        common: defaultdict[str, int] = defaultdict(int)
        for component in wanted:
            for name in self._having.get(component, ()):
                common[name] += 1
        by_f1: defaultdict[float, list[str]] = defaultdict(list)
        for name in sorted(common.keys() - set(used)):
            f1 = 2 * common[name] / (len(wanted) + len(self._components[name]))
            by_f1[f1].append(name)
        for f1 in sorted(by_f1, reverse=True):
            tied = by_f1[f1]
            yield from ((tied[number], f1) for number in shuffled(len(tied), *key, f1))
        others = [name for name in self._components if name not in used and name not in common]
        yield from ((others[number], 0.0) for number in shuffled(len(others), *key, "others"))

    def _take(
        self, picking: Picking, name: str, scores: Any, why: str, key: tuple[object, ...]
    ) -> bool:
        """Picks the recipe of a dish that is most like the sample; not if all are copies."""
        places = self._places[name]
        drawn = [places[number] for number in shuffled(len(places), *key, name)]
        # A stable sort leaves equal ones in the order drawn.
        for place in sorted(drawn, key=lambda place: -scores[place]):
            if picking.take(self._search.pool[place], f"{why}, BM25 {scores[place]:.2f}"):
                return True
        return False


def _item(recipe: Recipe) -> Item:
    return Item(recipe.id, recipe.copy_key)
