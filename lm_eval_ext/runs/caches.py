"""lm-eval's caches of responses, from which an interrupted evaluation goes on."""

import sqlite3
from contextlib import closing
from pathlib import Path


def count_answers(cache: Path) -> int:
    """Count the responses in a file of a cache; one that lm-eval has not yet filled has none."""
    with closing(sqlite3.connect(cache)) as connection:
        has_table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'unnamed'")
        if has_table.fetchone() is None:
            return 0
        (rows,) = connection.execute("SELECT COUNT(*) FROM unnamed").fetchone()
    return int(rows)


def merge_caches(folder: Path, stem: str, weights_digest: str) -> None:
    """Copy into a cache the responses of others of the same weights, such as an interrupted run's.

    A cache is a table of sqlitedict's; each process (rank) of an evaluation has its own.
    """
    for source in folder.glob("*_rank*.db"):
        source_stem, _, rank = source.name.rpartition("_")
        if source_stem.partition("@")[2] != weights_digest:
            continue
        target = folder / f"{stem}_{rank}"
        if target == source:
            continue
        with closing(sqlite3.connect(target)) as cache:
            cache.execute("CREATE TABLE IF NOT EXISTS unnamed (key TEXT PRIMARY KEY, value BLOB)")
            cache.execute("ATTACH ? AS source", (str(source),))
            cache.execute("INSERT OR IGNORE INTO unnamed SELECT key, value FROM source.unnamed")
            cache.commit()
