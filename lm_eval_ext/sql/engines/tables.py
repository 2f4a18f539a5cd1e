"""Folders of Parquet or CSV files, which are read as one DuckDB database.

A model's query must not reach any file, so the rows are copied, once, to a DuckDB file in a cache.
"""

import hashlib
import json
from pathlib import Path

from lm_eval_ext.atomic import atomic_path, sha256_of
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.values import Place, quoted
from lm_eval_ext.text import one_line

READERS = {".parquet": "read_parquet", ".csv": "read_csv"}
"""DuckDB's reader by ending. The types of CSV files are detected from all of their rows; a cell
without anything is NULL, one with nothing in quotes an empty text."""

_VERSION = 2


def found_in(folder: Path) -> list[Path]:
    """The Parquet and CSV files of a folder, sorted; each is a table."""
    return [one for one in sorted(folder.iterdir()) if one.suffix in READERS and one.is_file()]


def converted(folder: Path, cache: Path | None) -> Place:
    """The DuckDB file with a folder's tables, built if the cache lacks it.

    Raises:
        DataError: Files are of two kinds, share a name or cannot be read, or there is no cache.
    """
    import duckdb

    files = found_in(folder)
    kinds = sorted({READERS[one.suffix] for one in files})
    names = [one.stem.casefold() for one in files]  # as DuckDB compares them
    if len(kinds) != 1:
        raise DataError(f"{folder} has both Parquet and CSV files; keep one kind")
    if doubled := [name for name in names if names.count(name) > 1]:
        raise DataError(f"{folder}: two files are named {doubled[0]!r}; rename one")
    if cache is None:
        raise DataError(f"{folder}: a folder of tables needs a cache to be converted to")
    try:
        digest = _hash([[one.name, sha256_of(one)] for one in files])
        key = _hash([_VERSION, duckdb.__version__, digest])[:12]
        # The file's name is the database's own, which queries may write before a table's.
        path = cache / "tables" / key / f"{folder.resolve().name}.duckdb"
        place = Place("duckdb", str(path), digest)
        if path.exists():
            return place
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as part, duckdb.connect(str(part)) as database:
            for file in files:
                options = (
                    ""
                    if kinds == ["read_parquet"]
                    else ", sample_size=-1, allow_quoted_nulls=false"
                )
                database.execute(
                    f"CREATE TABLE {quoted(file.stem)} AS "
                    f"SELECT * FROM {kinds[0]}(?{options})", [str(file)]
                )  # fmt: skip
    except (duckdb.Error, OSError) as error:
        raise DataError(
            f"{folder}: cannot be read as tables ({one_line(str(error), limit=300)})"
        ) from None
    return place


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
