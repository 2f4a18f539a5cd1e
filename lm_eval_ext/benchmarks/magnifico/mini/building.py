"""Building the databases from their scripts."""

import hashlib
import json
import sqlite3
import uuid
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.benchmarks.magnifico.mini.files import embedded
from lm_eval_ext.benchmarks.magnifico.records import Database
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError


def databases() -> Mapping[str, Database]:
    """Returns the databases by id, built in the cache from their scripts if need be.

    Each lies at ``<id>/<id>.sqlite`` with its script beside it, ``schema.sql``, in a folder that
    is named after a digest of all scripts, so that an old cache is no trap. A file appears under
    its name only when it is whole; processes that build at once do no harm to each other.

    Raises:
        DataError: The cache cannot be written.
    """
    scripts = {Path(n).stem: text for n, text in embedded().items() if n.endswith(".sql")}
    key = hashlib.sha256(json.dumps(scripts, sort_keys=True).encode()).hexdigest()[:12]
    folder = cache_dir() / "embedded" / f"magnifico_mini-{key}"
    found = {}
    for db_id, script in scripts.items():
        place = folder / db_id
        found[db_id] = Database(place / f"{db_id}.sqlite", place / "schema.sql")
        try:
            place.mkdir(parents=True, exist_ok=True)
            _build(script, found[db_id])
        except (OSError, sqlite3.Error) as error:
            raise DataError(
                f"cannot build the database {db_id} in {place} ({error}). Set LM_EVAL_EXT_CACHE "
                "to a writable folder."
            ) from None
    return MappingProxyType(found)


def _build(script: str, database: Database) -> None:
    for path in (database.schema, database.path):
        if path is None or path.is_file():
            continue
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
        try:
            if path == database.schema:
                part.write_bytes(script.encode())
            else:
                with closing(sqlite3.connect(part)) as connection:
                    connection.executescript(f"BEGIN;\n{script}\nCOMMIT;")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
