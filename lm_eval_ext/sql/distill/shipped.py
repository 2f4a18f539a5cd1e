"""Added rows as data: written once after a search, applied to the originals within seconds.

A pack holds the added rows of many databases as JSON, and which golds fail, named by digests.
"""

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.distill.added_values import added_rows, columns_of
from lm_eval_ext.sql.distill.inserting import rowid_name
from lm_eval_ext.sql.distill.report import POPULATE_VERSION, GoldReport, Report
from lm_eval_ext.sql.distill.scratch_db import ScratchDb
from lm_eval_ext.sql.schema import Table, schema_of
from lm_eval_ext.sql.values import Value, quoted

_LINES = 4
"""Levels of JSON down to a table's rows."""

_NAME = 16
"""Letters of a digest that name a gold."""


class Pack:
    """The added rows of several databases.

    Args:
        content: What :func:`pack` gives, read from JSON.

    Raises:
        DataError: It is not a pack, or one of another version.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        if content["version"] != POPULATE_VERSION:
            raise DataError(
                f"the shipped rows have version {content['version']!r}, not {POPULATE_VERSION}; "
                "make them anew (lm-eval-ext magnifico populate --rebuild)"
            )
        self._entries: Mapping[str, Any] = content["databases"]

    @staticmethod
    def read(file: Path) -> "Pack":
        """Reads a pack.

        Raises:
            DataError: It is not a pack, or one of another version.
        """
        try:
            return Pack(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{file}: these are no shipped rows ({error})") from None

    def __contains__(self, key: str) -> bool:
        """Whether there are rows for an original with this SHA-256."""
        return key in self._entries

    def apply(self, key: str, original: Path, golds: Sequence[str], target: Path) -> Report:
        """Makes the populated copy that the search made.

        Returns:
            What was added, and which golds fail; the rest of the search's report is not shipped.

        Raises:
            DataError: The original cannot be read.
            OptionError: The copy cannot be written.
        """
        entry = self._entries[key]
        scratch_db = ScratchDb(original)
        try:
            schema = schema_of(scratch_db.connection)
            for name, rows in entry["rows"].items():
                insert(scratch_db.connection, schema[name], rows)
            scratch_db.save(target)
        finally:
            scratch_db.close()
        added = {name: len(rows) for name, rows in entry["rows"].items()}
        reports = tuple(
            GoldReport(gold, -1, -1, 0, 0, (), None, entry["errors"].get(_named(gold)))
            for gold in sorted(set(golds))
        )
        return Report(original.stem, added, reports)


def pack(populated: Mapping[str, tuple[Path, Path, Report]]) -> str:
    """Returns the text of a pack.

    Args:
        populated: By any name: the original, its populated copy, and the search's report.
    """
    entries = {
        sha256_of(original): {
            "database": name,
            "rows": _added(original, copy),
            "errors": {_named(gold.gold): gold.error for gold in report.golds if gold.error},
        }
        for name, (original, copy, report) in sorted(populated.items())
    }
    return _text({"version": POPULATE_VERSION, "databases": entries}) + "\n"


def _text(value: Any, depth: int = 0) -> str:
    """JSON in which each row has a line of its own."""
    if isinstance(value, dict) and value and depth < _LINES:
        parts = [f"{json.dumps(key)}: {_text(part, depth + 1)}" for key, part in value.items()]
        return "{\n" + ",\n".join(parts) + "\n}"
    if isinstance(value, list) and depth == _LINES and isinstance(value[0], list):
        return "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]"
    return json.dumps(value)


def _named(gold: str) -> str:
    return hashlib.sha256(gold.encode()).hexdigest()[:_NAME]


def _added(original: Path, copy: Path) -> dict[str, list[list[Any]]]:
    """Returns the added rows by table, as JSON."""
    return {
        name: [[_written(value) for value in row] for row in rows]
        for name, rows in added_rows(original, copy).items()
    }


def _written(value: Value) -> Any:
    return {"blob": value.hex()} if isinstance(value, bytes) else value


def _read(value: Any) -> Value:
    return bytes.fromhex(value["blob"]) if isinstance(value, dict) else value


def insert(connection: sqlite3.Connection, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    """Inserts rows as a pack has them."""
    names = columns_of(table)
    # The alias of the rowid is among the columns.
    plain = table.without_rowid or table.rowid_alias is not None
    if not plain:
        names = [rowid_name(table), *names]
    connection.executemany(
        f"INSERT INTO {quoted(table.name)} ({', '.join(names)}) "
        f"VALUES ({', '.join('?' * len(names))})",
        [[_read(value) for value in row[plain:]] for row in rows],
    )
