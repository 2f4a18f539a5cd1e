"""Chinese text as words, by jieba: what retrieval compares.

BM25 over the instructions of the training set, by bm25s; built once and kept in the cache.

The paper (section 5.2) names BM25 and no more. This is Robertson's form with the usual k1 and
b: a word that more than half of all recipes have counts nothing.
"""

import hashlib
import importlib.util
import json
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.log import get_logger

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_log = get_logger(__name__)


SEGMENT_VERSION = 1
"""Raise it when :func:`words` gives other words, so that indexes are built anew."""

_LETTER_OR_DIGIT = re.compile(r"\w")


def words_of(text: str) -> list[str]:
    """The words of a text in their order, without those that are punctuation or space only.

    jieba's precise mode, with its model for words that its dictionary lacks, in lower case.

    Raises:
        DataError: jieba's dictionary cannot be kept in the cache folder.
    """
    return [word for word in segmenter().cut(text.lower()) if _LETTER_OR_DIGIT.search(word)]


def segmenter_version() -> str:
    """What the words depend on."""
    from importlib import metadata

    return f"{SEGMENT_VERSION}-jieba-{metadata.version('jieba')}"


@cache
def segmenter() -> Any:
    """A segmenter of our own: settings of the library's shared one are other people's."""
    with warnings.catch_warnings():
        # jieba 0.42.1 imports what setuptools calls obsolete.
        warnings.simplefilter("ignore")
        import jieba

    folder = cache_dir() / "jieba"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot write jieba's dictionary to {folder}: {error.strerror}. Set "
            "LM_EVAL_EXT_CACHE to a writable folder."
        ) from error
    own = jieba.Tokenizer()
    # Its default is a file in the system's folder for temporary files, where anyone may have
    # put one of that name.
    own.tmp_dir = str(folder)
    level = jieba.default_logger.level
    jieba.setLogLevel("WARNING")
    try:
        own.initialize()
    finally:
        jieba.setLogLevel(level)
    return own


METHOD, K1, B = "robertson", 1.5, 0.75

SUMS = "sha256.json"
"""In an index's folder: the digest of every other file; written last."""


def check_installed() -> None:
    """Says before a model is loaded what its demonstrations need.

    Raises:
        OptionError: A library is not installed.
    """
    missing = [name for name in ("jieba", "bm25s") if importlib.util.find_spec(name) is None]
    if missing:
        raise OptionError(
            f"demonstrations from recipes need {' and '.join(missing)}: "
            "pip install 'lm-eval-ext[diner]'"
        )


@dataclass(frozen=True)
class Index:
    """Texts that can be searched.

    Attributes:
        size: How many.
    """

    size: int
    _bm25: Any

    def scores(self, text: str) -> "NDArray[np.float32]":
        """BM25 of every text of the index for this one; 0 where no word is common."""
        return self.scores_of_words(words_of(text))

    def scores_of_words(self, words: Sequence[str]) -> "NDArray[np.float32]":
        """The same for a text that is words already."""
        import numpy as np

        ids = self._bm25.get_tokens_ids(words)
        if not ids:
            return np.zeros(self.size, dtype=np.float32)
        found: NDArray[np.float32] = self._bm25.get_scores_from_ids(ids)
        return found


def build(texts: Sequence[str]) -> Index:
    """Indexes texts, with a progress bar on terminals.

    Raises:
        DataError: There is no word in any of them.
    """
    from tqdm import tqdm

    # disable=None: a bar on terminals only.
    bar = tqdm(texts, "Indexing recipes", unit="recipe", disable=None)
    return build_from_words(words_of(text) for text in bar)


def build_from_words(texts: Iterable[Sequence[str]]) -> Index:
    """Indexes texts that are words already.

    Raises:
        DataError: There is no word in any of them.
    """
    import bm25s

    vocabulary: dict[str, int] = {}
    ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in words] for words in texts]
    if not vocabulary:
        raise DataError("no recipe to search has a word; are these instructions?")
    bm25 = bm25s.BM25(k1=K1, b=B, method=METHOD)
    bm25.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    return Index(len(ids), bm25)


def index_of(texts: Sequence[str]) -> Index:
    """The index of these texts: from the cache, or built and put there.

    Its place is named after the texts, the settings, and the versions of jieba and bm25s. One
    that is not whole is built again.

    Raises:
        DataError: As :func:`build`, or the cache cannot be written.
    """
    import filelock

    folder = cache_dir() / "diner" / f"bm25-{_key(texts)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Ranks of one run, and runs side by side, want the same index.
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock")):
            kept = _load(folder)
            if kept is not None:
                return kept
            built = build(texts)
            _save(built, folder)
            return built
    except OSError as error:
        raise DataError(
            f"cannot write the index of recipes to {folder}: {error.strerror}. Set "
            "LM_EVAL_EXT_CACHE to a writable folder."
        ) from error


def _key(texts: Iterable[str]) -> str:
    from importlib import metadata

    settings = [segmenter_version(), metadata.version("bm25s"), METHOD, K1, B]
    digest = hashlib.sha256(json.dumps(settings).encode())
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()[:16]


def _save(index: Index, folder: Path) -> None:
    (folder / SUMS).unlink(missing_ok=True)
    index._bm25.save(folder, show_progress=False)
    sums = {path.name: sha256_of(path) for path in sorted(folder.iterdir()) if path.name[0] != "."}
    with atomic_text(folder / SUMS) as handle:
        json.dump(sums, handle)


def _load(folder: Path) -> Index | None:
    """The index in a folder; None where there is none that is whole."""
    import bm25s

    if not (folder / SUMS).is_file():
        return None
    try:
        sums = json.loads((folder / SUMS).read_text(encoding="utf-8"))
        whole = all(sha256_of(folder / name) == expected for name, expected in sums.items())
    except (OSError, ValueError, AttributeError):
        whole = False
    if not whole:
        _log.warning("the index of recipes in %s is broken; it is built again", folder)
        return None
    bm25 = bm25s.BM25.load(folder, show_progress=False)
    return Index(bm25.scores["num_docs"], bm25)
