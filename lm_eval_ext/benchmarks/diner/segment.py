"""Chinese text as words, by jieba: what retrieval compares."""

import re
import warnings
from functools import cache
from typing import Any

from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError

SEGMENT_VERSION = 1
"""Raise it when :func:`words` gives other words, so that indexes are built anew."""

_LETTER_OR_DIGIT = re.compile(r"\w")


def words(text: str) -> list[str]:
    """The words of a text in their order, without those that are punctuation or space only.

    jieba's precise mode, with its model for words that its dictionary lacks, in lower case.

    Raises:
        DataError: jieba's dictionary cannot be kept in the cache folder.
    """
    return [word for word in segmenter().cut(text.lower()) if _LETTER_OR_DIGIT.search(word)]


def version() -> str:
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
