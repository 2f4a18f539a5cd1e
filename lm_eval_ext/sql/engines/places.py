"""Where databases are: files, folders of databases, a server's URL."""

from collections import defaultdict
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.values import EngineName, Place

SUFFIXES: Final = (".sqlite", ".sqlite3", ".db", ".duckdb")

LEGAL: Final = (
    "name a SQLite or DuckDB file (docs/sql_score.md makes one of Parquet or CSV files), a folder "
    "with <db_id>/<db_id>.sqlite or <db_id>.sqlite (or .duckdb), or postgresql://user@host/database"
)
"""How a user can name one database or several."""

_SQLITE_HEADER: Final = b"SQLite format 3\0"
_DUCKDB_MAGIC: Final = b"DUCK"
"""A DuckDB file has it after a checksum of eight bytes."""


def check_id(db_id: str) -> None:
    """Raise OptionError if a database's id would lead out of the folder of databases."""
    if db_id in ("", ".", "..") or "\0" in db_id or Path(db_id).name != db_id:
        raise OptionError(f"database id {db_id!r}: must be a plain name, without a path")


class OneDatabase:
    """A single database.

    Attributes:
        db_id: Its id, whose case does not matter: the name of its file, or on a server its own.
        place: Where it is.
    """

    def __init__(self, db_id: str, place: Place) -> None:
        self.db_id = db_id
        self.place = place

    def find(self, db_id: str) -> Place | None:
        """Return where the database is; None for another id."""
        if db_id.casefold() == self.db_id.casefold():
            return self.place
        return None


class Databases:
    """The databases of a folder: ``<id>/<id>.sqlite`` or ``<id>.sqlite``.

    The endings .sqlite3, .db and .duckdb are accepted too. Ids ignore case, since Spider's folder
    names differ in case from the ids; of two files that differ in case only, the one that matches
    exactly is used. The folder is listed once and ids are looked up in that list, so that no id
    leads out of the folder.

    Raises:
        DataError: There is no such folder, or it cannot be read.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._files: dict[str, list[Path]] = defaultdict(list)
        try:
            for entry in sorted(self.folder.iterdir()):
                self._add(entry)
        except OSError as error:
            raise DataError(
                f"cannot read the folder of databases {self.folder}: {error.strerror}. It must "
                "hold <db_id>/<db_id>.sqlite or <db_id>.sqlite for each database."
            ) from error

    def find(self, db_id: str) -> Place | None:
        """Return a database's place; None if there is none.

        Raises:
            DataError: Two files differ from the id and from each other only in case, or the
                file has a write-ahead log, whose rows a read-only open would not see.
        """
        files = self._files.get(db_id.casefold(), [])
        if not files:
            return None
        exact_matches = [file for file in files if file.stem == db_id]
        if exact_matches:
            return place_of(exact_matches[0])
        names = sorted({file.stem for file in files})
        if len(names) > 1:
            raise DataError(
                f"database {db_id!r}: {self.folder} has both {' and '.join(names)}; rename one"
            )
        return place_of(files[0])

    def __len__(self) -> int:
        return len(self._files)

    def _add(self, entry: Path) -> None:
        """Note a database file, or a folder that has one of its own name."""
        if entry.suffix in SUFFIXES and entry.is_file():
            self._files[entry.stem.casefold()].append(entry)
        if entry.is_dir():
            files = [file for file in sorted(entry.iterdir()) if file.suffix in SUFFIXES]
            files.sort(key=lambda file: SUFFIXES.index(file.suffix))
            for file in files:
                if file.stem.casefold() == entry.name.casefold() and file.is_file():
                    self._files[entry.name.casefold()].insert(0, file)
                    return


def databases_at(source: str | Path, *, option: str = "databases") -> Databases | OneDatabase:
    """Return the databases that a user names: :data:`LEGAL` says what that can be.

    Args:
        source: A path or a URL.
        option: The option by which the user named it, for messages.

    Raises:
        OptionError: It does not exist, or is no legal path or URL.
        DataError: It is in use, or cannot be read, or its driver is not installed.
    """
    if "://" in str(source):
        return _server_database(str(source))
    path = Path(source).expanduser()
    if not path.exists():
        raise OptionError(f"{option}={str(source)!r} does not exist; {LEGAL}")
    if path.is_file():
        location = place_of(path)
        if engine_of(path) is None and path.stat().st_size:
            raise DataError(f"{path}: neither a SQLite nor a DuckDB database; {LEGAL}")
        return OneDatabase(path.stem, location)
    databases = Databases(path)
    if len(databases):
        return databases
    raise DataError(f"no database in the folder {path}; {LEGAL}")


def place_of(path: Path) -> Place:
    """Return the place of a file.

    Raises:
        DataError: It has a write-ahead log, or its driver is not installed.
    """
    if engine_of(path) == "duckdb":
        _check_log(path, ".wal", program="duckdb", statement="CHECKPOINT")
        DIALECTS["duckdb"].require()
        return Place("duckdb", str(path))
    _check_log(path, "-wal", program="sqlite3", statement="PRAGMA wal_checkpoint(TRUNCATE)")
    return Place("sqlite", str(path))


def _check_log(path: Path, ending: str, *, program: str, statement: str) -> None:
    """Raise DataError if a database has a write-ahead log that is not empty."""
    log = path.with_name(path.name + ending)
    if log.exists() and log.stat().st_size:
        raise DataError(
            f"{path} has unmerged changes in {log.name}, which are not read; close the program "
            f'that writes it, or run: {program} {path.name} "{statement}"'
        )


def engine_of(path: Path) -> EngineName | None:
    """Return the engine that wrote a file; None if it is unknown, as for an empty or missing file.

    Only DuckDB and SQLite are known.
    """
    try:
        with path.open("rb") as file:
            header = file.read(16)
    except OSError:
        return None
    if header == _SQLITE_HEADER:
        return "sqlite"
    if header[8:12] == _DUCKDB_MAGIC:
        return "duckdb"
    return None


def sqlite_path(location: Place) -> Path:
    """Return the path of a SQLite file.

    Raises:
        OptionError: It is a database of another engine.
    """
    if location.engine != "sqlite":
        title = DIALECTS[location.engine].title
        raise OptionError(
            f"{location}: only SQLite databases can be used here; with {title} "
            "work sql-score and the tasks magnifico_own_..."
        )
    return Path(location.address)


def _server_database(url: str) -> OneDatabase:
    """Return the database of a PostgreSQL server that a URL names."""
    split_url = urlsplit(url)
    if split_url.scheme not in ("postgresql", "postgres"):
        raise OptionError(f"{split_url.scheme}://... is no database that can be used; {LEGAL}")
    parameters = parse_qs(split_url.query)
    if split_url.password or "password" in parameters or "sslpassword" in parameters:
        raise OptionError(
            "the URL holds a password, which results would show; leave it out and set PGPASSWORD, "
            "or write it to ~/.pgpass"
        )
    name = split_url.path.strip("/")
    if not name and "dbname" in parameters:
        name = parameters["dbname"][0]
    if not name:
        raise OptionError(f"{url} names no database; write postgresql://user@host/database")
    DIALECTS["postgresql"].require()
    return OneDatabase(name, Place("postgresql", url))
