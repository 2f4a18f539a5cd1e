"""Where databases are: files, folders of databases, a server's URL."""

from collections import defaultdict
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.values import Place

SUFFIXES: Final = (".sqlite", ".sqlite3", ".db", ".duckdb")

LEGAL: Final = (
    "name a SQLite or DuckDB file (docs/sql.md makes one of Parquet or CSV files), a folder with "
    "<db_id>/<db_id>.sqlite or <db_id>.sqlite (or .duckdb), or postgresql://user@host/database"
)
"""What a database or several can be given as."""

_MARKS: Final = (("duckdb", slice(8, 12), b"DUCK"), ("sqlite", slice(16), b"SQLite format 3\0"))
"""How files begin."""


def check_id(db_id: str) -> None:
    """Raises OptionError if a database's id leads out of a folder that it is to lie in."""
    if db_id in ("", ".", "..") or "\0" in db_id or Path(db_id).name != db_id:
        raise OptionError(f"database id {db_id!r}: must be a plain name, without a path")


class OneDatabase:
    """A single database; its id, whose case does not matter, is its file's or its own name."""

    def __init__(self, db_id: str, place: Place) -> None:
        self.db_id, self.place = db_id, place

    def find(self, db_id: str) -> Place | None:
        """Returns where it is; None for another id."""
        return self.place if db_id.casefold() == self.db_id.casefold() else None


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
        self._found: dict[str, list[Path]] = defaultdict(list)
        try:
            for entry in sorted(self.folder.iterdir()):
                self._add(entry)
        except OSError as error:
            raise DataError(
                f"cannot read the folder of databases {self.folder}: {error.strerror}. It must "
                "hold <db_id>/<db_id>.sqlite or <db_id>.sqlite for each database."
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
        names = sorted({p.stem for p in found})
        if len(names) > 1 and path.stem != db_id:
            raise DataError(
                f"database {db_id!r}: {self.folder} has both {' and '.join(names)}; rename one"
            )
        return place_of(path)

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


def databases_at(source: str | Path, *, option: str = "databases") -> Databases | OneDatabase:
    """Finds what a user names: :data:`LEGAL` says what that can be.

    Args:
        source: A path or a URL.
        option: What the user named it by, for messages.

    Raises:
        OptionError: It does not exist, or is no legal path or URL.
        DataError: It is in use, or cannot be read, or its driver is not installed.
    """
    if "://" in str(source):
        return _server(str(source))
    path = Path(source).expanduser()
    if not path.exists():
        raise OptionError(f"{option}={str(source)!r} does not exist; {LEGAL}")
    if path.is_file():
        place = place_of(path)
        if kind_of(path) is None and path.stat().st_size:
            raise DataError(f"{path}: neither a SQLite nor a DuckDB database; {LEGAL}")
        return OneDatabase(path.stem, place)
    known = Databases(path)
    if len(known):
        return known
    raise DataError(f"no database in the folder {path}; {LEGAL}")


def place_of(path: Path) -> Place:
    """The place of a file.

    Raises:
        DataError: It has a write-ahead log, is no database, or its driver is not installed.
    """
    duckdb = kind_of(path) == "duckdb"
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


def kind_of(path: Path) -> str | None:
    """The engine that wrote a file; None if it is unknown, as of an empty or missing one."""
    try:
        with path.open("rb") as file:
            begin = file.read(16)
    except OSError:
        return None
    return next((name for name, where, mark in _MARKS if begin[where] == mark), None)


def sqlite_path(place: Place) -> Path:
    """The path of a SQLite file.

    Raises:
        OptionError: It is a database of another engine.
    """
    if place.engine != "sqlite":
        raise OptionError(
            f"{place}: only SQLite databases can be used here; with {DIALECTS[place.engine].title} "
            "work sql-score and the tasks magnifico_own_..."
        )
    return Path(place.address)


def _server(url: str) -> OneDatabase:
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise OptionError(f"{parts.scheme}://... is no database that can be used; {LEGAL}")
    given = parse_qs(parts.query)
    if parts.password or not {"password", "sslpassword"}.isdisjoint(given):
        raise OptionError(
            "the URL holds a password, which results would show; leave it out and set PGPASSWORD, "
            "or write it to ~/.pgpass"
        )
    name = parts.path.strip("/") or next(iter(given.get("dbname", [])), "")
    if not name:
        raise OptionError(f"{url} names no database; write postgresql://user@host/database")
    DIALECTS["postgresql"].require()
    return OneDatabase(name, Place("postgresql", url))
