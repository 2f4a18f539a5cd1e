"""In-context demonstrations for a test recipe, chosen from the training set by BM25.

"instruction" retrieves by the instruction, which the model sees. "oracle" chooses by the gold name,
as in the paper (sections 4.2 and 5.2).

The paper (section 5.2) only names BM25. This is bm25s's on jieba's words, in Robertson's variant
with the usual k1 and b: a word that occurs in more than half of the recipes has no weight. The
index is kept in the cache.
"""

import re
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.atomic import atomic_folder, sha256_of_json
from lm_eval_ext.benchmarks.diner.glossary import Component
from lm_eval_ext.benchmarks.diner.records import Recipe, Split
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError
from lm_eval_ext.fewshot import Choices, Item, Pool, Stream, ranked, selected, shuffled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lm_eval_ext.fewshot import Row

INSTRUCTION, ORACLE = "instruction", "oracle"

METHOD, K1, B = "robertson", 1.5, 0.75


# Choosing.


def choose(split: Split, samples: Collection[Recipe], how: str, k: int, seed: int) -> Choices:
    """Choose k demonstrations for every sample, by ``instruction`` or as an ``oracle``.

    The choice for a sample depends on no other sample. No demonstration is a copy of the sample
    or of another demonstration. The seed decides between equally good ones.

    Raises:
        DataError: The index cannot be built or saved.
    """
    from tqdm import tqdm

    pool = Pool(_item(recipe) for recipe in split.train)
    index = index_of([split.by_id[item.id].instruction for item in pool])
    # disable=None: a bar on terminals only.
    bar = tqdm(samples, "Choosing demonstrations", disable=None)
    if how == ORACLE:
        return selected(_oracle_streams(split, pool, index, bar, seed), k)
    return ranked(pool, _bm25_rows(pool, index, bar), k, seed, _bm25_reason)


def _bm25_rows(pool: Pool, index: Any, samples: Iterable[Recipe]) -> "Iterator[tuple[Item, Row]]":
    import numpy as np

    positions = np.arange(len(pool))
    for sample in samples:
        yield _item(sample), (positions, scores(index, sample.instruction))


def _bm25_reason(sample: Item, demonstration: Item, score: float) -> str:
    del sample, demonstration
    return f"BM25 {score:.2f}"


def _oracle_streams(
    split: Split, pool: Pool, index: Any, samples: Iterable[Recipe], seed: int
) -> Iterator[tuple[Item, Iterator[Stream]]]:
    dishes = _Dishes(split, pool)
    for sample in samples:
        gold = frozenset(split.glossary.parse(sample.name) or ())
        sample_scores = scores(index, sample.instruction)
        yield _item(sample), _OracleChoice(dishes, sample, gold, sample_scores, seed).streams()


class _Dishes:
    """The dishes of the training set whose names parse.

    Attributes:
        pool: All recipes of the training set.
        components: The components of each dish.
        known: The components of all dishes together.
        positions: For each dish, the positions of its recipes in the pool.
    """

    def __init__(self, split: Split, pool: Pool) -> None:
        self.pool = pool
        self.components = {name: frozenset(parsed) for name, parsed in split.train_names.items()}
        self.known = frozenset().union(*self.components.values())
        self.positions: defaultdict[str, list[int]] = defaultdict(list)
        for position, item in enumerate(pool):
            self.positions[split.by_id[item.id].name].append(position)

    def by_similarity(
        self, target: frozenset[Component], excluded: Collection[str], key: Sequence[object]
    ) -> Iterator[tuple[str, float]]:
        """Yield dishes and their F1 against components, best first.

        Args:
            target: The components that dishes are compared with.
            excluded: Dishes that are left out.
            key: Orders equal dishes.
        """
        by_f1: defaultdict[float, list[str]] = defaultdict(list)
        for name, components in self.components.items():
            if name not in excluded:
                f1 = 2 * len(target & components) / (len(target) + len(components))
                by_f1[f1].append(name)
        for f1, names in sorted(by_f1.items(), reverse=True):
            for number in shuffled(len(names), *key, f1 or "others"):
                yield names[number], f1


class _OracleChoice:
    """The paper's choice for one sample: dishes that share components with its gold name.

    Each demonstration is of another dish, which is compared with the components that the dishes
    before it do not have.
    """

    def __init__(
        self,
        dishes: _Dishes,
        sample: Recipe,
        gold: frozenset[Component],
        scores: "NDArray[np.float64]",
        seed: int,
    ) -> None:
        self._dishes = dishes
        self._sample = sample
        self._gold = gold
        self._scores = scores
        self._seed = seed
        self._excluded = {sample.name}
        self._last_dish = ""

    def streams(self) -> Iterator[Stream]:
        """Yield the recipes for each demonstration, best first; each goes on from the last."""
        uncovered = self._gold
        for number in count():
            # Components that no training name has cannot be covered.
            target = uncovered & self._dishes.known or self._gold
            yield self._recipes(target, number)
            uncovered -= self._dishes.components[self._last_dish]

    def _recipes(self, target: frozenset[Component], number: int) -> Stream:
        key = (self._seed, ORACLE, self._sample.id, number)
        names = "+".join(sorted(component.name for component in target))
        for dish, f1 in self._dishes.by_similarity(target, self._excluded, key):
            self._last_dish = dish
            self._excluded.add(dish)
            for position in self._by_score(dish, key):
                score = self._scores[position]
                yield self._dishes.pool[position], f"F1 {f1:.2f} to {names}, BM25 {score:.2f}"

    def _by_score(self, dish: str, key: Sequence[object]) -> list[int]:
        """Return the positions of a dish's recipes, the highest BM25 score first."""
        positions = self._dishes.positions[dish]
        drawn_positions = [positions[number] for number in shuffled(len(positions), *key, dish)]
        # The sort is stable: equal ones stay in the order drawn.
        return sorted(drawn_positions, key=lambda position: -self._scores[position])


def _item(recipe: Recipe) -> Item:
    return Item(recipe.id, recipe.copy_key)


# BM25.


def index_of(texts: Sequence[str]) -> Any:
    """Load the bm25s index of these texts from the cache, or build and save it.

    The folder's name depends on the texts, the settings, and the versions of jieba and bm25s.

    Raises:
        DataError: No text has a word, or the cache cannot be written.
    """
    import bm25s
    import filelock

    folder = cache_dir() / "diner" / f"bm25-{_key(texts)}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Ranks of one run and concurrent runs share the index.
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock")):
            if not folder.is_dir():
                _build_index(texts, folder)
            return bm25s.BM25.load(folder, show_progress=False)
    except OSError as error:
        raise DataError(
            f"cannot write the recipe index to {error.filename}: {error.strerror}. Set "
            "LM_EVAL_EXT_CACHE to a writable folder."
        ) from error


def _build_index(texts: Sequence[str], folder: Path) -> None:
    import bm25s
    from tqdm import tqdm

    bar = tqdm(texts, "Indexing recipes", unit="recipe", disable=None)
    words = list(map(words_of, bar))
    if not any(words):
        raise DataError(
            "no training recipe has a word in its instruction; check the field instructions"
        )
    index = bm25s.BM25(k1=K1, b=B, method=METHOD)
    index.index(words, create_empty_token=False, show_progress=False)
    with atomic_folder(folder) as unfinished:
        index.save(unfinished, show_progress=False)


def _key(texts: Sequence[str]) -> str:
    from importlib.metadata import version

    settings = [VERSION, version("jieba"), version("bm25s"), METHOD, K1, B]
    return sha256_of_json([settings, texts])[:16]


def scores(index: Any, text: str) -> "NDArray[np.float64]":
    """Return the BM25 score of every indexed text for this one; 0 if they share no word."""
    import numpy as np

    ids = index.get_tokens_ids(words_of(text))
    if not ids:
        return np.zeros(index.scores["num_docs"])
    scores: NDArray[np.float64] = index.get_scores_from_ids(ids).astype(np.float64)
    return scores


VERSION = 1
"""To be raised when :func:`words_of` changes, so that indexes are built again."""

_LETTER_OR_DIGIT = re.compile(r"\w")


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case and in order, without punctuation and white space.

    Uses jieba's precise mode, with its model for words that are not in its dictionary.
    """
    return [word for word in segmenter().cut(text.lower()) if _LETTER_OR_DIGIT.search(word)]


@cache
def segmenter() -> Any:
    """Return a segmenter of our own: other packages may change settings of the shared one."""
    with warnings.catch_warnings():
        # jieba 0.42.1 imports pkg_resources, which setuptools warns about.
        warnings.simplefilter("ignore")
        import jieba

    folder = cache_dir() / "jieba"
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = jieba.Tokenizer()
    # By default jieba loads a file from the system's temporary folder, where any user may have
    # put one of that name.
    tokenizer.tmp_dir = str(folder)
    jieba.setLogLevel("WARNING")
    tokenizer.initialize()
    return tokenizer
