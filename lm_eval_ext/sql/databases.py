"""Finding a database by its id; ids come with the predictions and are not to be trusted."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from lm_eval_ext.errors import DataError

SUFFIXES = (".sqlite", ".sqlite3", ".db")


class NamedDatabases:
    """SQLite files anywhere, by id; ids are compared as they are.

    Args:
        paths: By id.
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = dict(paths)

    def find(self, db_id: str) -> Path | None:
        """Returns a database's file; None if there is none of that id."""
        return self._paths.get(db_id)


class Databases:
    """The SQLite files of a folder: ``<id>/<id>.sqlite`` or ``<id>.sqlite``.

    The endings .sqlite3 and .db serve too. Ids are compared without regard to case, since
    Spider's folder names differ in case from the ids; where two files differ in nothing else,
    the one spelt exactly so is taken. The folder is listed once, and an id is only ever looked
    up in that list: no id leads out of the folder.

    Args:
        folder: Where the databases lie.

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

    def find(self, db_id: str) -> Path | None:
        """Returns a database's file; None if there is none.

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
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise DataError(
                f"{path} has unmerged changes in {log.name}; close the program that writes it, "
                f'or run: sqlite3 {path.name} "PRAGMA wal_checkpoint(TRUNCATE)"'
            )
        return path

    def __len__(self) -> int:
        return len(self._found)

    def _add(self, entry: Path) -> None:
        for suffix in SUFFIXES:
            if entry.suffix == suffix and entry.is_file():
                self._found[entry.stem.casefold()].append(entry)
        if entry.is_dir():
            inside = [path for path in sorted(entry.iterdir()) if path.suffix in SUFFIXES]
            for path in sorted(inside, key=lambda path: SUFFIXES.index(path.suffix)):
                if path.stem.casefold() == entry.name.casefold() and path.is_file():
                    self._found[entry.name.casefold()].insert(0, path)
                    break
