"""MAGNIFICo's golds and their databases, read in place; nothing of them is in the repository."""

import csv
import os
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from lm_eval_ext.sql import Databases

ALL = os.environ.get("LM_EVAL_EXT_TEST_ALL") == "1"
ONE_IN = 1 if ALL else 8
"""Of the slow tests on all golds, one in so many is run, unless LM_EVAL_EXT_TEST_ALL=1."""


def rows(data: Path, pattern: str) -> Iterator[tuple[str, str]]:
    """Database id and gold of each row of the files that match."""
    for path in sorted((data / "magnifico" / "magnifico_data").glob(pattern)):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                yield row["Question"].split(":")[0].strip(), row["Parse"]


@lru_cache(maxsize=1)
def distinct(data: Path) -> tuple[tuple[Path, str], ...]:
    """All distinct golds that have a database, with its file."""
    databases = Databases(data / "spider_databases")
    found: dict[tuple[Path, str], None] = {}
    for pattern in ("*/*/train.tsv", "*/*/test.tsv", "combination/*.tsv"):
        for db_id, gold in rows(data, pattern):
            place = databases.find(db_id)
            if place is not None:
                found[Path(place.address), gold] = None
    return tuple(sorted(found))


def a_part(data: Path) -> list[tuple[Path, str]]:
    """One in :data:`ONE_IN` distinct golds, chosen by a hash of its text."""
    return [(path, gold) for path, gold in distinct(data) if not zlib.crc32(gold.encode()) % ONE_IN]
