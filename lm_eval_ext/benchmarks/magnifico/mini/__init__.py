"""magnifico_mini: our own small MAGNIFICo, embedded in the package.

It needs no download and is too small to measure real models. It has MAGNIFICo's design (paper,
section 3: interpretations of four categories and phrases, forms, base examples, combinations,
dialogues), but none of its meanings, words, questions, queries and databases.

It is read like a user's own corpus (:mod:`..own`); ``*.sql`` create the databases.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from lm_eval_ext.atomic import atomic_path, sha256_of_json
from lm_eval_ext.benchmarks.magnifico import own
from lm_eval_ext.benchmarks.magnifico.records import Corpus, Database
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import Place

SHIPPED = Path(__file__).parent
"""Holds seeds and rows of the test suites; see :data:`..corpora.SHIPPED`."""

_EMBEDDED_SUFFIXES = {".sql", ".tsv", ".txt"}


def corpus() -> Corpus:
    """Return the whole corpus; builds its databases in the cache if they are missing.

    Raises:
        DataError: The cache cannot be written.
    """
    return replace(content(), databases=databases())


def content() -> Corpus:
    """Return the corpus without databases."""
    return own.read(SHIPPED / "examples.tsv", None)


def embedded() -> Mapping[str, str]:
    """Return all scripts, examples and dialogues by name, sorted, with Unix line ends."""
    files = sorted(file for file in SHIPPED.rglob("*") if file.suffix in _EMBEDDED_SUFFIXES)
    return {file.name: file.read_text(encoding="utf-8") for file in files}


def digest() -> str:
    """Return the SHA-256 (hexadecimal) of the embedded files."""
    return sha256_of_json(embedded())


_VERSION_OF_SQLITE = 96
"""The offset of four bytes that nothing reads: the version that wrote a SQLite file last."""

_BUILD_VERSION = 2
"""Raised when the same script gives another file."""

_KEY_DIGITS = 12


def databases() -> Mapping[str, Database]:
    """Return the databases by id; builds them in the cache from their scripts if they are missing.

    The folder's name has a hash of all scripts, so that changed scripts are noticed. Files get
    their names when they are complete, so processes may build at the same time.

    Raises:
        DataError: The cache cannot be written.
    """
    scripts = {}
    for file_name, text in embedded().items():
        if file_name.endswith(".sql"):
            scripts[Path(file_name).stem] = text
    key = sha256_of_json([_BUILD_VERSION, scripts])[:_KEY_DIGITS]
    folder = cache_dir() / "embedded" / f"magnifico_mini-{key}"
    by_id = {}
    for db_id, script in scripts.items():
        path = folder / db_id / f"{db_id}.sqlite"
        by_id[db_id] = Database(Place("sqlite", str(path)), SHIPPED / f"{db_id}.sql")
        try:
            if not path.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                _build(script, path)
        except (OSError, sqlite3.Error) as error:
            raise DataError(
                f"cannot build the database {db_id} in {path.parent} ({error}). Set "
                "LM_EVAL_EXT_CACHE to a writable folder."
            ) from None
    return by_id


def _build(script: str, path: Path) -> None:
    with atomic_path(path) as unfinished:
        with closing(sqlite3.connect(unfinished)) as connection:
            connection.executescript(f"BEGIN;\n{script}\nCOMMIT;")
        # The rows that ship belong to these bytes, whichever SQLite has written them.
        with unfinished.open("r+b") as file:
            file.seek(_VERSION_OF_SQLITE)
            file.write(bytes(4))
