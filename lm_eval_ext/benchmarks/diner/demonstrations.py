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
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import count
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


INSTRUCTION, ORACLE = "instruction", "oracle"

METHOD, K1, B = "robertson", 1.5, 0.75


# Choosing.


def choose(split: Split, samples: Collection[Recipe], how: str, k: int, seed: int) -> Choices:
    """Chooses k demonstrations for every sample, by ``instruction`` or as an ``oracle``.

    The choice for a sample depends on no other sample. No demonstration is a copy of the sample
    or of another demonstration. The seed decides between equally good ones.

    Raises:
        DataError: The index cannot be built or saved.
    """
    import numpy as np
    from tqdm import tqdm

    pool = Pool(_item(recipe) for recipe in split.train)
    index = index_of([split.by_id[item.id].instruction for item in pool])
    # disable=None: a bar on terminals only.
    bar = tqdm(samples, "Choosing demonstrations", disable=None)
    scored = ((sample, scores(index, sample.instruction)) for sample in bar)
    if how == ORACLE:
        oracle = _Oracle(split, pool)
        rows = ((_item(sample), oracle.streams(sample, found, seed)) for sample, found in scored)
        return selected(rows, k)
    places = np.arange(len(pool))
    ranks = ((_item(sample), (places, found)) for sample, found in scored)
    return ranked(pool, ranks, k, seed, lambda _sample, _item, score: f"BM25 {score:.2f}")


class _Oracle:
    """The paper's choice: dishes of the training set that share components with the gold name."""

    def __init__(self, split: Split, pool: Pool) -> None:
        self._pool = pool
        self._parse = split.glossary.parse
        self._components = {name: frozenset(found) for name, found in split.train_names.items()}
        self._known = frozenset().union(*self._components.values())
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, item in enumerate(pool):
            self._places[split.by_id[item.id].name].append(place)

    def streams(self, sample: Recipe, scores: "NDArray[np.float64]", seed: int) -> Iterator[Stream]:
        """For each place the recipes of dishes that are left, none of them the sample's own."""
        gold = frozenset(self._parse(sample.name) or ())
        left, used, last = gold, {sample.name}, ""

        def recipes(wanted: frozenset[Component], key: tuple[object, ...]) -> Stream:
            nonlocal last
            for last, f1 in self._alike(wanted, used, key):
                used.add(last)
                why = f"F1 {f1:.2f} to {'+'.join(sorted(one.name for one in wanted))}"
                places = self._places[last]
                drawn = [places[number] for number in shuffled(len(places), *key, last)]
                # The sort is stable: equal ones stay in the order drawn.
                for place in sorted(drawn, key=lambda place: -scores[place]):
                    yield self._pool[place], f"{why}, BM25 {scores[place]:.2f}"

        for place in count():
            # Components that no training name has cannot be covered.
            yield recipes(left & self._known or gold, (seed, ORACLE, sample.id, place))
            left -= self._components[last]

    def _alike(
        self, wanted: frozenset[Component], used: Collection[str], key: tuple[object, ...]
    ) -> Iterator[tuple[str, float]]:
        """Names and their F1 against components, best first; the seed orders equal ones."""
        by_f1: defaultdict[float, list[str]] = defaultdict(list)
        for name, held in self._components.items():
            if name not in used:
                by_f1[2 * len(wanted & held) / (len(wanted) + len(held))].append(name)
        for f1, names in sorted(by_f1.items(), reverse=True):
            yield from (
                (names[number], f1) for number in shuffled(len(names), *key, f1 or "others")
            )


def _item(recipe: Recipe) -> Item:
    return Item(recipe.id, recipe.copy_key)


# BM25.


def index_of(texts: Sequence[str]) -> Any:
    """Loads the bm25s index of these texts from the cache, or builds and saves it.

    The folder's name depends on the texts, the settings, and the versions of jieba and bm25s.

    Raises:
        DataError: No text has a word, or the cache cannot be written.
    """
    import bm25s
    import filelock
    from tqdm import tqdm

    folder = cache_dir() / "diner" / f"bm25-{_key(texts)}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Ranks of one run and concurrent runs share the index.
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock")):
            if not folder.is_dir():
                bar = tqdm(texts, "Indexing recipes", unit="recipe", disable=None)
                words = list(map(words_of, bar))
                if not any(words):
                    raise DataError(
                        "no training recipe has a word in its instruction; check the field "
                        "instructions"
                    )
                built = bm25s.BM25(k1=K1, b=B, method=METHOD)
                built.index(words, create_empty_token=False, show_progress=False)
                with atomic_folder(folder) as part:
                    built.save(part, show_progress=False)
            return bm25s.BM25.load(folder, show_progress=False)
    except OSError as error:
        raise DataError(
            f"cannot write the recipe index to {error.filename}: {error.strerror}. Set "
            "LM_EVAL_EXT_CACHE to a writable folder."
        ) from error


def _key(texts: Sequence[str]) -> str:
    from importlib import metadata

    settings = [VERSION, *map(metadata.version, ("jieba", "bm25s")), METHOD, K1, B]
    return sha256_of_json([settings, texts])[:16]


def scores(index: Any, text: str) -> "NDArray[np.float64]":
    """The BM25 score of every indexed text for this one; 0 if they share no word."""
    import numpy as np

    ids = index.get_tokens_ids(words_of(text))
    if not ids:
        return np.zeros(index.scores["num_docs"])
    found: NDArray[np.float64] = index.get_scores_from_ids(ids).astype(np.float64)
    return found


VERSION = 1
"""To be raised when :func:`words_of` changes, so that indexes are built again."""

_LETTER_OR_DIGIT = re.compile(r"\w")


def words_of(text: str) -> list[str]:
    """The words of a text in lower case and in order, without punctuation and white space.

    Uses jieba's precise mode, with its model for words that are not in its dictionary.
    """
    return [word for word in segmenter().cut(text.lower()) if _LETTER_OR_DIGIT.search(word)]


@cache
def segmenter() -> Any:
    """Our own segmenter: other packages may change settings of the library's shared one."""
    with warnings.catch_warnings():
        # jieba 0.42.1 imports pkg_resources, which setuptools warns about.
        warnings.simplefilter("ignore")
        import jieba

    folder = cache_dir() / "jieba"
    folder.mkdir(parents=True, exist_ok=True)
    own = jieba.Tokenizer()
    # By default jieba loads a file from the system's temporary folder, where any user may have
    # put one of that name.
    own.tmp_dir = str(folder)
    jieba.setLogLevel("WARNING")
    own.initialize()
    return own
