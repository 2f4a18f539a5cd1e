"""BM25 over the instructions of the training set, by bm25s on jieba's words.

The paper (section 5.2) only names BM25. This is Robertson's variant with the usual k1 and b: a
word that occurs in more than half of the recipes has no weight. The index is kept in the cache.
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

METHOD, K1, B = "robertson", 1.5, 0.75

SUMS = "sha256.json"
"""File in an index's folder with the hashes of all others; written last."""


def check_installed() -> None:
    """Raises OptionError, before any model is loaded, if a library for retrieval is missing."""
    missing = [name for name in ("jieba", "bm25s") if importlib.util.find_spec(name) is None]
    if missing:
        raise OptionError(
            f"demonstrations from recipes need {' and '.join(missing)}: "
            "pip install 'lm-eval-ext[diner]'"
        )


@dataclass(frozen=True)
class Index:
    """A BM25 index of ``size`` texts."""

    size: int
    _bm25: Any

    def scores(self, text: str) -> "NDArray[np.float32]":
        """The BM25 score of every indexed text for this one; 0 if they share no word."""
        return self.scores_of_words(words_of(text))

    def scores_of_words(self, words: Sequence[str]) -> "NDArray[np.float32]":
        """The same for the words of a text."""
        import numpy as np

        ids = self._bm25.get_tokens_ids(words)
        if not ids:
            return np.zeros(self.size, dtype=np.float32)
        found: NDArray[np.float32] = self._bm25.get_scores_from_ids(ids)
        return found


def build(texts: Sequence[str]) -> Index:
    """Indexes texts; raises DataError if none of them has a word."""
    from tqdm import tqdm

    # disable=None: a bar on terminals only.
    bar = tqdm(texts, "Indexing recipes", unit="recipe", disable=None)
    return build_from_words(words_of(text) for text in bar)


def build_from_words(texts: Iterable[Sequence[str]]) -> Index:
    """The same for the words of texts."""
    import bm25s

    vocabulary: dict[str, int] = {}
    ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in words] for words in texts]
    if not vocabulary:
        raise DataError(
            "no training recipe has a word in its instruction; check the field instructions"
        )
    bm25 = bm25s.BM25(k1=K1, b=B, method=METHOD)
    bm25.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    return Index(len(ids), bm25)


def index_of(texts: Sequence[str]) -> Index:
    """Loads the index of these texts from the cache, or builds and saves it.

    The folder's name depends on the texts, the settings, and the versions of jieba and bm25s. A
    damaged index is built again.

    Raises:
        DataError: As :func:`build`, or the cache cannot be written.
    """
    import filelock

    folder = cache_dir() / "diner" / f"bm25-{_key(texts)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Ranks of one run and concurrent runs share the index.
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock")):
            kept = _load(folder)
            if kept is not None:
                return kept
            built = build(texts)
            _save(built, folder)
            return built
    except OSError as error:
        raise _unwritable("the recipe index", folder, error) from error


def _unwritable(what: str, folder: Path, error: OSError) -> DataError:
    return DataError(
        f"cannot write {what} to {folder}: {error.strerror}. Set LM_EVAL_EXT_CACHE to a writable "
        "folder."
    )


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
    """The index in a folder; None if it is missing or damaged."""
    import bm25s

    if not (folder / SUMS).is_file():
        return None
    try:
        sums = json.loads((folder / SUMS).read_text(encoding="utf-8"))
        whole = all(sha256_of(folder / name) == expected for name, expected in sums.items())
    except (OSError, ValueError, AttributeError):
        whole = False
    if not whole:
        _log.warning("the recipe index in %s is broken and is built again", folder)
        return None
    bm25 = bm25s.BM25.load(folder, show_progress=False)
    return Index(bm25.scores["num_docs"], bm25)


SEGMENT_VERSION = 1
"""To be raised when :func:`words_of` changes, so that indexes are built again."""

_LETTER_OR_DIGIT = re.compile(r"\w")


def words_of(text: str) -> list[str]:
    """The words of a text in lower case and in order, without punctuation and white space.

    Uses jieba's precise mode, with its model for words that are not in its dictionary.

    Raises:
        DataError: jieba's dictionary cannot be saved in the cache folder.
    """
    return [word for word in segmenter().cut(text.lower()) if _LETTER_OR_DIGIT.search(word)]


def segmenter_version() -> str:
    """Changes when :func:`words_of` may give other words."""
    from importlib import metadata

    return f"{SEGMENT_VERSION}-jieba-{metadata.version('jieba')}"


@cache
def segmenter() -> Any:
    """Our own segmenter: other packages may change settings of the library's shared one."""
    with warnings.catch_warnings():
        # jieba 0.42.1 imports pkg_resources, which setuptools warns about.
        warnings.simplefilter("ignore")
        import jieba

    folder = cache_dir() / "jieba"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable("jieba's dictionary", folder, error) from error
    own = jieba.Tokenizer()
    # By default jieba loads a file from the system's temporary folder, where any user may have
    # put one of that name.
    own.tmp_dir = str(folder)
    level = jieba.default_logger.level
    jieba.setLogLevel("WARNING")
    try:
        own.initialize()
    finally:
        jieba.setLogLevel(level)
    return own
