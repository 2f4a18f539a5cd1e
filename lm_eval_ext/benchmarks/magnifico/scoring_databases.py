"""The databases that answers are executed on: the originals, and the test suites made for them."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import Executor, Place, QueryError, Semantics
from lm_eval_ext.sql.suite import SUITE_VERSION, Suite

Golds = Mapping[str, Sequence[str]]
"""Gold queries by the database's id in lower case."""

Rows = Literal["v3", "v2"]
"""What ``populated/...`` metrics rest on: v3, the whole suite; v2, only the populated copy that was
published with version 2."""

V3: Rows = "v3"


@dataclass(frozen=True)
class ScoringDatabases:
    """The databases that answers are executed on.

    Attributes:
        original: By database id in lower case.
        suites: By the same ids; none on other engines than SQLite.
        broken: The errors of gold queries that fail, by database id and query.
        engine: What signatures say of another engine than SQLite.
        rows: Which populated rows.
    """

    original: Mapping[str, Place]
    suites: Mapping[str, Suite]
    broken: Mapping[tuple[str, str], str]
    engine: str | None = None
    rows: Rows = V3

    def named(self) -> dict[str, Path | Place]:
        """All databases by the names that :meth:`asked` gives."""
        made = {
            f"{name}/{db_id}": suite.path(name)
            for db_id, suite in self.suites.items()
            for name in suite.databases
        }
        return {**{f"original/{db_id}": place for db_id, place in self.original.items()}, **made}

    def asked(self, db_id: str, gold: str) -> list[str]:
        """The names of the databases that judge answers to a gold query, the original first."""
        suite = self.suites.get(db_id)
        made = () if suite is None else suite.judging(gold)
        return [f"{name}/{db_id}" for name in ("original", *made)]

    def rule(self, named: Semantics) -> str:
        """The semantics on the suites' databases, if the user names these for the originals."""
        return named.made if self.rows == V3 else named.name

    @property
    def signature(self) -> str:
        """Which rows, and a hash of all suites."""
        parts = [[db_id, suite.content] for db_id, suite in sorted(self.suites.items())]
        total = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return f"{self.rows},{total[:12]}"


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

    total = hashlib.sha256(json.dumps([SUITE_VERSION, key]).encode()).hexdigest()
    folder = cache_dir() / "populated" / f"{name}-v{SUITE_VERSION}-{total[:12]}"
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
        MappingProxyType(dict(places)), MappingProxyType({}), MappingProxyType(broken), engine
    )
