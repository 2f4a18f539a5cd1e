"""Where databases are: files, folders of tables, folders of databases, a server's URL."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import parse_qs, urlsplit

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.engines import tables
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.values import Place

SUFFIXES: Final = (".sqlite", ".sqlite3", ".db", ".duckdb")

LEGAL: Final = (
    "name a SQLite or DuckDB file, a folder of Parquet or CSV files, a folder with "
    "<db_id>/<db_id>.sqlite or <db_id>.sqlite (or .duckdb), or postgresql://user@host/database"
)
"""What a database or several can be given as."""

_DUCKDB_MARK = slice(8, 12)


class Finder(Protocol):
    """Finds databases by the ids that questions and predictions name."""

    def find(self, db_id: str) -> Place | None:
        """Returns where a database is; None if there is none with that id."""


class NamedDatabases:
    """Databases anywhere, by id; ids are case-sensitive. Paths are those of files."""

    def __init__(self, places: Mapping[str, Path | Place]) -> None:
        self._places = dict(places)

    def find(self, db_id: str) -> Place | None:
        """Returns where a database is; None if there is none with that id."""
        found = self._places.get(db_id)
        return place_of(found) if isinstance(found, Path) else found


class OneDatabase:
    """A single database; its id, whose case does not matter, is its file's or its own name."""

    def __init__(self, db_id: str, place: Place) -> None:
        self.db_id, self.place = db_id, place

    def find(self, db_id: str) -> Place | None:
        """Returns where it is; None for another id."""
        return self.place if db_id.casefold() == self.db_id.casefold() else None


class Databases:
    """The databases of a folder: ``<id>/<id>.sqlite``, ``<id>.sqlite`` or ``<id>/*.parquet``.

    The endings .sqlite3, .db and .duckdb are accepted too, and CSV files like Parquet files. Ids
    ignore case, since Spider's folder names differ in case from the ids; of two files that differ
    in case only, the one that matches exactly is used. The folder is listed once and ids are
    looked up in that list, so that no id leads out of the folder.

    Args:
        folder: Where the databases lie.
        cache: Where folders of Parquet and CSV files are converted to.

    Raises:
        DataError: There is no such folder, or it cannot be read.
    """

    def __init__(self, folder: Path | str, cache: Path | None = None) -> None:
        self.folder = Path(folder)
        self._cache = cache
        self._found: dict[str, list[Path]] = defaultdict(list)
        try:
            for entry in sorted(self.folder.iterdir()):
                self._add(entry)
        except OSError as error:
            raise DataError(
                f"cannot read the folder of databases {self.folder}: {error.strerror}; {LEGAL}"
            ) from error

    def find(self, db_id: str) -> Place | None:
        """Returns a database's place; None if there is none.

        Raises:
            DataError: Two files differ from the id and from each other only in case, or the
                file has a write-ahead log, whose rows a read-only open would not see.
        """
        found = self._found.get(db_id.casefold(), [])
        path = next((path for path in found if path.stem == db_id), found[0] if found else None)
        if path is None:
            return None
        if len({p.stem for p in found}) > 1 and path.stem != db_id:
            names = " and ".join(sorted({p.stem for p in found}))
            raise DataError(f"database {db_id!r}: {self.folder} has both {names}; rename one")
        return place_of(path, self._cache)

    def __len__(self) -> int:
        return len(self._found)

    def _add(self, entry: Path) -> None:
        if entry.suffix in SUFFIXES and entry.is_file():
            self._found[entry.stem.casefold()].append(entry)
        if entry.is_dir():
            inside = [path for path in sorted(entry.iterdir()) if path.suffix in SUFFIXES]
            for path in sorted(inside, key=lambda path: SUFFIXES.index(path.suffix)):
                if path.stem.casefold() == entry.name.casefold() and path.is_file():
                    self._found[entry.name.casefold()].insert(0, path)
                    return
            if not inside and tables.found_in(entry):
                self._found[entry.name.casefold()].append(entry)


def databases_at(source: str | Path, cache: Path | None = None) -> Databases | OneDatabase:
    """Finds what a user names: :data:`LEGAL` says what that can be.

    Args:
        source: A path or a URL.
        cache: Where folders of Parquet and CSV files are converted to.

    Raises:
        OptionError: It does not exist, or is no legal path or URL.
        DataError: It is in use, or cannot be read, or its driver is not installed.
    """
    if "://" in str(source):
        return _server(str(source))
    path = Path(source).expanduser()
    if not path.exists():
        raise OptionError(f"no database {str(source)!r}: it does not exist; {LEGAL}")
    if path.is_dir() and not tables.found_in(path):
        known = Databases(path, cache)
        if not len(known):
            raise DataError(f"no database in the folder {path}; {LEGAL}")
        return known
    name = path.resolve().name if path.is_dir() else path.stem
    return OneDatabase(name, place_of(path, cache))


def place_of(path: Path, cache: Path | None = None) -> Place:
    """The place of a file, or of a folder of tables, which is converted.

    Raises:
        DataError: It has a write-ahead log, is no database, or its driver is not installed.
    """
    if path.is_dir():
        DIALECTS["duckdb"].require()
        return Place("duckdb", str(tables.converted(path, cache)))
    try:
        with path.open("rb") as file:
            duckdb = file.read(_DUCKDB_MARK.stop)[_DUCKDB_MARK] == b"DUCK"
    except OSError:
        duckdb = path.suffix == ".duckdb"
    log = path.with_name(path.name + (".wal" if duckdb else "-wal"))
    if log.exists() and log.stat().st_size:
        remedy = "CHECKPOINT" if duckdb else "PRAGMA wal_checkpoint(TRUNCATE)"
        program = "duckdb" if duckdb else "sqlite3"
        raise DataError(
            f"{path} has unmerged changes in {log.name}, which are not read; close the program "
            f'that writes it, or run: {program} {path.name} "{remedy}"'
        )
    if duckdb:
        DIALECTS["duckdb"].require()
    return Place("duckdb" if duckdb else "sqlite", str(path))


def only_sqlite(place: Place, what: str) -> Path:
    """The path of a SQLite file.

    Raises:
        OptionError: It is of another engine, for which ``what`` is not there.
    """
    if place.engine != "sqlite":
        raise OptionError(
            f"{place}: {what} works on SQLite databases only; on {DIALECTS[place.engine].title} "
            "there are sql-score and the tasks magnifico_own_..."
        )
    return Path(place.address)


def _server(url: str) -> OneDatabase:
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise OptionError(f"{parts.scheme}://... is no database that can be used; {LEGAL}")
    given = parse_qs(parts.query)
    if parts.password or "password" in given:
        raise OptionError(
            "the URL holds a password, which results would show; leave it out and set PGPASSWORD, "
            "or write it to ~/.pgpass"
        )
    name = parts.path.strip("/") or next(iter(given.get("dbname", [])), "")
    if not name:
        raise OptionError(f"{url} names no database; write postgresql://user@host/database")
    DIALECTS["postgresql"].require()
    return OneDatabase(name, Place("postgresql", url))
