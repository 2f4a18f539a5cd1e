"""Suites and what ships of them as files: reading, writing, and the hashes that name content."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from lm_eval_ext.atomic import atomic_path, sha256_of_json
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.compare import SEMANTICS
from lm_eval_ext.sql.schema import Schema, fold
from lm_eval_ext.sql.suite.build import SUITE_VERSION, Seed
from lm_eval_ext.sql.values import Value, quoted, quoted_all

COPY = "copy"
"""The name of the populated copy among a suite's databases; the small ones are small-0, ..."""

COPY_VERSION = 3
"""Stands for :data:`SUITE_VERSION` in the hash of a populated copy alone, which no draw changes."""

_FILE = "suite.json"
_HASH_DIGITS = 16
"""Digits of the hashes of golds, and of databases in shipped files."""


def gold_id(gold: str) -> str:
    """Return the id of a gold in files: a hash, since they hold none of its text."""
    return hashlib.sha256(gold.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]


@dataclass(frozen=True)
class Suite:
    """The databases that were made for one original.

    Attributes:
        db_id: The database's id in lower case; the folder's name.
        folder: The folder of suites.
        key: A hash of all that decides about it.
        content_hashes: The hash of each database's content by its name, in the order in which the
            databases judge.
        judges: The names of the databases that may judge a gold, by :func:`gold_id`; only of golds
            that run.
        seeds: The seeds of its small databases.
        excluded: Why tables are not in the small databases, by name.
        original: SHA-256 of the original's file; "" in suites that do not record it.
    """

    db_id: str
    folder: Path
    key: str
    content_hashes: Mapping[str, str]
    judges: Mapping[str, Sequence[str]]
    seeds: Sequence[Seed]
    excluded: Mapping[str, str] = field(default_factory=dict)
    original: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its databases, in the order in which they judge."""
        return tuple(self.content_hashes)

    @cached_property
    def digest(self) -> str:
        """A hash of all rows, and of which golds they judge by which rule."""
        # Fixed names: semantics that are added later must not change the hashes of suites.
        rules = [SEMANTICS[name].suite_rule for name in ("reference", "strict", "sets")]
        rule = rules, SEMANTICS["sets"].version
        version = SUITE_VERSION if self.seeds else COPY_VERSION
        return sha256_of_json([version, rule, self.content_hashes, self.judges])

    def path(self, name: str) -> Path:
        """Return the file of one of its databases."""
        return self.folder / self.db_id / _file_name(self.db_id, name)

    def judges_of(self, gold: str) -> tuple[str, ...]:
        """Return the names of the databases that may judge a gold."""
        return tuple(self.judges.get(gold_id(gold), ()))


def _file_name(db_id: str, name: str) -> str:
    return f"{db_id}.sqlite" if name == COPY else f"{name}.sqlite"


def read_suite(folder: Path, db_id: str) -> Suite:
    """Read a suite.

    Raises:
        DataError: There is none, or one of another version.
    """
    file = folder / db_id / _FILE
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        version = record["version"]
        if version == SUITE_VERSION:
            return Suite(
                db_id=db_id,
                folder=folder,
                key=record["key"],
                content_hashes=record["databases"],
                judges=record["golds"],
                seeds=_read_seeds(record["seeds"]),
                excluded=record.get("excluded", {}),
                original=record.get("original", ""),
            )
        problem = f"it has version {version!r}, not {SUITE_VERSION}"
    except OSError as error:
        problem = error.strerror or str(error)
    except (ValueError, KeyError, TypeError) as error:
        problem = str(error)
    raise DataError(f"{file}: no suite of databases ({problem}); make one: magnifico populate")


def _read_seeds(records: Sequence[tuple[int, Sequence[int]]]) -> list[Seed]:
    return [Seed(number, tuple(gold_numbers)) for number, gold_numbers in records]


def content_hash(connection: sqlite3.Connection, schema: Schema) -> str:
    """Return a hash of a database's rows, in no order, that does not depend on the file's bytes.

    Names count in lower case. Of each value its type and its value count. Tables that the schema
    has and the database lacks do not count.
    """
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    present = {fold(name) for (name,) in names}
    tables = [table for table in schema.values() if not table.view and fold(table.name) in present]
    digest = hashlib.sha256()
    for table in sorted(tables, key=lambda table: fold(table.name)):
        columns = sorted(table.columns, key=lambda column: fold(column.name))
        selected = quoted_all(column.name for column in columns)
        rows = connection.execute(f"SELECT {selected} FROM {quoted(table.name)}")
        written = sorted(map(_WRITER.encode, rows))
        head = [fold(table.name), [fold(column.name) for column in columns]]
        digest.update("\n".join([json.dumps(head), *written, ""]).encode())
    return digest.hexdigest()


def _write_blob(blob: bytes) -> dict[str, str]:
    return {"blob": blob.hex()}


_WRITER = json.JSONEncoder(default=_write_blob)


JsonValue = Value | Mapping[str, str]
"""A value as JSON holds it; a blob is an object with hexadecimal digits."""

AddedRows = Mapping[str, Sequence[Sequence[JsonValue]]]
"""Rows of a populated copy by table, each with its rowid before it."""


class ShippedSeeds(NamedTuple):
    """The entry of a shipped file about one suite.

    Attributes:
        seeds: As :attr:`Suite.seeds`.
        golds: By :func:`gold_id`: the numbers of the databases that may judge it.
        hashes: The first digits of the databases' content hashes.
    """

    seeds: Sequence[Seed]
    golds: Mapping[str, Sequence[int]]
    hashes: Sequence[str]


@dataclass(frozen=True)
class Shipped:
    """Content of suites that ships with the package: rows of copies, seeds, outcomes of checks.

    Attributes:
        rows: By the original's checksum.
        seeds: By :attr:`Suite.key`: small databases, golds, hashes.
    """

    rows: Mapping[str, AddedRows]
    seeds: Mapping[str, Mapping[str, Any]]

    def seeds_of(self, key: str) -> ShippedSeeds | None:
        """Return what is shipped for a suite, None if nothing is."""
        entry = self.seeds.get(key)
        if entry is None:
            return None
        return ShippedSeeds(_read_seeds(entry["seeds"]), entry["golds"], entry["hashes"])


def read_shipped(folder: Path | None, end: str = "") -> Shipped:
    """Read ``populated.json`` and ``suites.json``, with ``end`` behind their names.

    A missing file of seeds means that the checks are run.

    Raises:
        DataError: A file is of another kind.
    """
    populated = _read_databases(folder, f"populated{end}.json")
    rows = {checksum: entry["rows"] for checksum, entry in populated.items()}
    return Shipped(rows, _read_databases(folder, f"suites{end}.json"))


def _read_databases(folder: Path | None, name: str) -> Mapping[str, Any]:
    if folder is None or not (folder / name).is_file():
        return {}
    file = folder / name
    try:
        databases: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))["databases"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from None
    return databases


NOTHING_SHIPPED = Shipped({}, {})


def suite_key(digest: str, golds: Sequence[str], rows: object) -> str:
    """Return a suite's key from the original's checksum, sorted golds and rows of a copy."""
    return sha256_of_json([SUITE_VERSION, digest, golds, rows])


def short_hashes(hashes: Mapping[str, str]) -> list[str]:
    """Return the first digits of content hashes, as shipped files have them."""
    return [content[:_HASH_DIGITS] for content in hashes.values()]


def complete_suite(folder: Path, db_id: str, key: str, seeds: ShippedSeeds | None) -> Suite | None:
    """Return the suite that a folder has, None if it is not complete or another one."""
    try:
        suite = read_suite(folder, db_id)
    except DataError:
        return None
    if suite.key != key:
        return None
    if seeds is not None and short_hashes(suite.content_hashes) != list(seeds.hashes):
        return None
    if not all(suite.path(name).is_file() for name in suite.names):
        return None
    return suite


def write_suite(
    target: Path, databases: Mapping[str, sqlite3.Connection], record: Mapping[str, Any]
) -> None:
    """Write a suite's folder in one step, in the place of an earlier one."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            shutil.rmtree(target)
        with atomic_path(target) as unfinished:
            unfinished.mkdir()
            for name, connection in databases.items():
                with closing(sqlite3.connect(unfinished / _file_name(target.name, name))) as file:
                    file.execute("PRAGMA journal_mode = OFF")  # the file is new
                    connection.backup(file)
            (unfinished / _FILE).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise OptionError(f"cannot write {target}: {reason}") from None
