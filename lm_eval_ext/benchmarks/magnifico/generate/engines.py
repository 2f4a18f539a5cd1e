"""Databases of DuckDB and PostgreSQL, of which questions are made on a mirror in SQLite."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import own
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql import DIALECTS, Executor, OneDatabase, Place, databases_at
from lm_eval_ext.sql.engines.places import kind_of
from lm_eval_ext.sql.engines.tables import found_in
from lm_eval_ext.sql.engines.writing import check_free
from lm_eval_ext.sql.mirrored.batch import copy_in, target_of
from lm_eval_ext.sql.mirrored.build import Target, workspace
from lm_eval_ext.sql.mirrored.reading import mirror
from lm_eval_ext.sql.mirrored.speaking import Speaking

_COPIES = "populated"


def find(source: str | Path) -> OneDatabase | None:
    """The database of another engine than SQLite; None for all that SQLite may read.

    Raises:
        OptionError: It is several databases, or no legal URL.
        DataError: It cannot be used.
    """
    path = Path(source)
    url = "://" in str(source)
    tables = path.is_dir() and found_in(path)
    if not url and not tables and not (path.is_file() and kind_of(path) == "duckdb"):
        return None
    known = databases_at(source, cache_dir(), option="DB")
    if not isinstance(known, OneDatabase):
        raise OptionError(f"{source}: several databases; name one")
    return known


@contextmanager
def opened(
    database: OneDatabase, part: Path, into: str
) -> Iterator[tuple[Speaking, Mapping[str, str]]]:
    """Mirrors a database, and copies that of DuckDB into the folder.

    Yields:
        The real database, and what the task file says of databases: names in the folder, or URLs.
    """
    name, place = database.db_id, database.place
    target: Target | None = None
    sources = {"magnifico_databases": place.address}
    if place.engine == "duckdb":
        sources["magnifico_databases"] = f"{name}.duckdb"
        shutil.copyfile(place.address, part / f"{name}.duckdb")
        copy = copy_in(part / _COPIES, name)
        copy.parent.mkdir(parents=True)
        target = Target(Place("duckdb", str(copy)))
        sources["magnifico_populated"] = str(copy.relative_to(part))
    elif into:
        target = target_of(place, into)
        sources["magnifico_populated"] = target.place.address
    with workspace(place, None if target is None else target.place) as (executor, folder):
        made = mirror(place, folder / "original.sqlite")
        if target is not None and target.into:
            check_free(target.into, made.catalogue.schema)
        try:
            yield Speaking(executor, made, target), sources
        except DataError as error:  # of the mirror, which no user knows
            raise DataError(str(error).replace(str(made.path), str(place))) from None


def noted(database: OneDatabase, part: Path) -> dict[str, Any]:
    """What ``generated.json`` says of the database."""
    name, place = database.db_id, database.place
    file = part / f"{name}.duckdb"
    if file.is_file():
        digest = sha256_of(file)
    else:
        with Executor(workers=1) as executor:
            digest = own.digest_of_rows(executor, place)
    return {"name": name, "sha256": digest, "engine": DIALECTS[place.engine].title}
