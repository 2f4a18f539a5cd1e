"""The databases that answers are executed on, and where their populated copies come from."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import Executor, Place, QueryError
from lm_eval_ext.sql.distill import POPULATE_VERSION, Report

Golds = Mapping[str, Sequence[str]]
"""Gold queries by the database's id in lower case."""


@dataclass(frozen=True)
class ScoringDatabases:
    """The databases that answers are executed on.

    Attributes:
        original: By database id in lower case.
        populated: The populated copies, by the same ids; none on other engines than SQLite.
        reports: The reports on populating them, by the same ids.
        broken: The errors of gold queries that fail, by database id and query.
        engine: What signatures say of another engine than SQLite.
    """

    original: Mapping[str, Place]
    populated: Mapping[str, Path]
    reports: Mapping[str, Report]
    broken: Mapping[tuple[str, str], str]
    engine: str | None = None


@contextmanager
def cached_copies(name: str, key: object) -> Iterator[Path]:
    """The cache's folder for the populated copies of a corpus, for one process at a time.

    Args:
        name: Of the corpus.
        key: JSON that decides about the copies.

    Raises:
        DataError: It cannot be written.
    """
    import filelock

    total = hashlib.sha256(json.dumps([POPULATE_VERSION, key]).encode()).hexdigest()
    folder = cache_dir() / "populated" / f"{name}-v{POPULATE_VERSION}-{total[:12]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Ranks of one run and concurrent runs share the copies.
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock")):
            yield folder
    except OSError as error:
        raise DataError(
            f"cannot write the populated databases to {folder}: {error.strerror}. Set "
            "LM_EVAL_EXT_CACHE to a writable folder."
        ) from error


def on_engine(places: Mapping[str, Place], golds: Golds) -> ScoringDatabases:
    """Databases of DuckDB or PostgreSQL, which have no populated copies.

    Args:
        places: The databases.
        golds: All gold queries, which are tried.

    Raises:
        DataError: A database cannot be used.
    """
    broken = {}
    with Executor(workers=1) as executor:
        engine = executor.engine_at(next(iter(places.values())))
        for db_id, queries in golds.items():
            for query in queries:
                try:
                    executor.query(places[db_id], query)
                except QueryError as error:
                    broken[db_id, query] = str(error)
    return ScoringDatabases(
        MappingProxyType(dict(places)), MappingProxyType({}), {}, MappingProxyType(broken), engine
    )
