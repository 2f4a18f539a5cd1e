"""In-context demonstrations for a test recipe, chosen from the training set.

"instruction" retrieves by the instruction, which the model sees. "oracle" chooses by the gold name,
as in the paper (sections 4.2 and 5.2).
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
"""Number of best recipes that are first searched for k that are not copies."""


def choose(split: Split, samples: Collection[Recipe], how: str, k: int, seed: int) -> Choices:
    """Chooses k demonstrations for every sample, by one of :data:`SELECTIONS`.

    The choice for a sample depends on no other sample. No demonstration is a copy of the sample
    or of another demonstration. The seed decides between equally good ones.

    Raises:
        OptionError: k is below 1.
        DataError: The index cannot be built or saved.
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
    """The training set as a pool and as a BM25 index, in the same order."""

    def __init__(self, split: Split) -> None:
        self.pool = Pool(_item(recipe) for recipe in split.train)
        self.recipes = [split.by_id[item.id] for item in self.pool]
        self.index = index_of([recipe.instruction for recipe in self.recipes])

    def best(self, sample: Recipe, k: int) -> "tuple[NDArray[np.intp], NDArray[np.float64]]":
        """Positions and scores of the best recipes, at least k of which may be shown."""
        import numpy as np

        scores = self.index.scores(sample.instruction)
        look = _FIRST_LOOK + k
        while True:
            if look >= len(scores):
                return np.arange(len(scores)), scores.astype(np.float64)
            # Includes all recipes that tie with the last one: the seed decides between them.
            places = np.flatnonzero(scores >= np.partition(scores, -look)[-look])
            keys = {self.pool[int(place)].copy_key for place in places} - {sample.copy_key}
            if len(keys) >= k:
                return places, scores[places].astype(np.float64)
            look *= 8


class _Oracle:
    """The paper's choice: dishes of the training set that share components with the gold name."""

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
        """Demonstrations for a sample, of as many dishes, none of them the sample's own dish."""
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
        """Names and their F1 against components, best first; names without any are shuffled."""
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
        """Picks a dish's recipe that is most similar to the sample; False if all are copies."""
        places = self._places[name]
        drawn = [places[number] for number in shuffled(len(places), *key, name)]
        # The sort is stable: equal ones stay in the order drawn.
        for place in sorted(drawn, key=lambda place: -scores[place]):
            if picking.take(self._search.pool[place], f"{why}, BM25 {scores[place]:.2f}"):
                return True
        return False


def _item(recipe: Recipe) -> Item:
    return Item(recipe.id, recipe.copy_key)
