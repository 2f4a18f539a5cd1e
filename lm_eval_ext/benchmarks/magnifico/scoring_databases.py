"""The databases that answers are executed on, and where their populated copies come from."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.benchmarks.magnifico import own
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import Executor, Place, QueryError, databases_at
from lm_eval_ext.sql.distill import POPULATE_VERSION, Report

_log = get_logger(__name__)

Golds = Mapping[str, Sequence[str]]
"""Gold queries by the database's id in lower case."""


@dataclass(frozen=True)
class ScoringDatabases:
    """The databases that answers are executed on.

    Attributes:
        original: By database id in lower case.
        populated: The populated copies, by the same ids; none where a server has no copy.
        reports: The reports on populating them, by the same ids; none for copies that were named.
        broken: The errors of gold queries that fail, by database id and query.
        engine: What signatures say of another engine than SQLite.
        rows: What they say of its populated copies: their checksum.
        not_translated: Why gold queries cannot be scored on it, as keys of ``broken``.
        conversion: What signatures say of the conversion to it.
    """

    original: Mapping[str, Place]
    populated: Mapping[str, Path | Place]
    reports: Mapping[str, Report]
    broken: Mapping[tuple[str, str], str]
    engine: str | None = None
    rows: str = ""
    not_translated: Mapping[tuple[str, str], str] = field(default_factory=dict)
    conversion: str | None = None


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


def on_engine(places: Mapping[str, Place], golds: Golds, populated: str | None) -> ScoringDatabases:
    """Databases of DuckDB or PostgreSQL, with their populated copies.

    DuckDB's are built in the cache. A server is never written to, so PostgreSQL's must be there
    already and be named; without them answers are scored on the original rows only.

    Args:
        places: The originals.
        golds: All gold queries, which are tried.
        populated: Where the copies are, if not in the cache.

    Raises:
        DataError: A database cannot be used, or a copy is none of its original.
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
        copies, reports = (
            _built(executor, places, golds)
            if populated is None
            else (_named(executor, places, populated), {})
        )
        sums = [
            f"{own.digest_of_rows(executor, copy)}  {db_id}\n"
            for db_id, copy in sorted(copies.items())
        ]
    if not copies:
        _log.info(
            "MAGNIFICo: on %s answers are scored on the original rows only; make a populated copy "
            "(lm-eval-ext magnifico populate --into URL) and name it in magnifico_populated",
            engine,
        )
    rows = hashlib.sha256("".join(sums).encode()).hexdigest()[:12] if sums else ""
    return ScoringDatabases(
        MappingProxyType(dict(places)), MappingProxyType(copies), reports,
        MappingProxyType(broken), engine, rows,
    )  # fmt: skip


def _built(
    executor: Executor, places: Mapping[str, Place], golds: Golds
) -> tuple[dict[str, Place], Mapping[str, Report]]:
    if any(place.engine != "duckdb" for place in places.values()):
        return {}, {}
    from lm_eval_ext.sql.mirrored import batch  # heavy, and for these engines only

    key = [
        [db_id, own.digest_of_rows(executor, place), golds[db_id]]
        for db_id, place in places.items()
    ]
    with cached_copies("own", key) as folder:
        reports = batch.populate_files(
            {db_id: (place, golds[db_id]) for db_id, place in places.items()}, folder
        )
        copies = {db_id: Place("duckdb", str(batch.copy_in(folder, db_id))) for db_id in places}
    return copies, MappingProxyType(reports)


def _named(executor: Executor, places: Mapping[str, Place], populated: str) -> dict[str, Place]:
    from lm_eval_ext.sql.mirrored.copies import check_copy

    known = databases_at(populated, cache_dir(), option="magnifico_populated")
    found = {}
    for db_id, place in places.items():
        # A single copy may have any name.
        copy = getattr(known, "place", None) if len(places) == 1 else None
        copy = copy or known.find(db_id)
        if copy is None or copy.engine != place.engine:
            raise DataError(
                f"magnifico_populated={populated!r} has no copy of {db_id}; make it by lm-eval-ext "
                "magnifico populate"
            )
        check_copy(executor, place, copy)
        found[db_id] = copy
    return found
