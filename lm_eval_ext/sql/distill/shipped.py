"""Added rows as data: written once after a search, applied to the originals within seconds.

A pack holds the rows of many databases as JSON, and what is needed to give the report of the
search again. It has no gold query: golds are named by their digests, near misses by their numbers.
"""

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.distill.added_values import added_rows, columns_of
from lm_eval_ext.sql.distill.inserting import rowid_name
from lm_eval_ext.sql.distill.report import (
    POPULATE_VERSION,
    Broken,
    GoldReport,
    Report,
    Tie,
    key_of,
)
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner, ScratchDb
from lm_eval_ext.sql.mutants import near_misses
from lm_eval_ext.sql.policy import Limits, open_guarded
from lm_eval_ext.sql.rewrites import Facts, rewrites
from lm_eval_ext.sql.schema import Table, read_schema, schema_of
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
        """Whether there are rows under a key (:func:`.report.key_of`)."""
        return key in self._entries

    def apply(self, key: str, original: Path, golds: Sequence[str], target: Path) -> Report:
        """Makes the populated copy that the search would make; returns its report.

        Raises:
            DataError: The original cannot be read.
            OptionError: The copy cannot be written.
        """
        entry = self._entries[key]
        scratch_db = ScratchDb(original)
        try:
            schema = schema_of(scratch_db.connection)
            for name, rows in entry["rows"].items():
                _insert(scratch_db.connection, schema[name], rows)
            scratch_db.save(target)
        finally:
            scratch_db.close()
        added = {name: len(rows) for name, rows in entry["rows"].items()}
        with closing(open_guarded(str(original), Limits())) as connection:
            facts = Facts(schema, Runner(connection).rows, NoResultError)
            reports = [_restored(gold, entry["golds"], facts) for gold in sorted(set(golds))]
        return Report(original.stem, added, tuple(reports), entry["values"])


def pack(populated: Mapping[str, tuple[Path, Path, Report]]) -> str:
    """Returns the text of a pack.

    Args:
        populated: By any name: the original, its populated copy, and the search's report.
    """
    entries = {
        key_of(original, [gold.gold for gold in report.golds]): {
            "database": name,
            "rows": _added(original, copy),
            "values": dict(report.values),
            "golds": _all_noted(original, report),
        }
        for name, (original, copy, report) in sorted(populated.items())
    }
    return _text({"version": POPULATE_VERSION, "databases": entries}) + "\n"


def _text(value: Any, depth: int = 0) -> str:
    """JSON in which each row and each gold has a line of its own."""
    if isinstance(value, dict) and value and depth < _LINES:
        parts = [f"{json.dumps(key)}: {_text(part, depth + 1)}" for key, part in value.items()]
        return "{\n" + ",\n".join(parts) + "\n}"
    if isinstance(value, list) and depth == _LINES and isinstance(value[0], list):
        return "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]"
    return json.dumps(value)


def _all_noted(original: Path, report: Report) -> dict[str, list[Any]]:
    with closing(open_guarded(str(original), Limits())) as connection:
        facts = Facts(read_schema(original), Runner(connection).rows, NoResultError)
        return {_named(gold.gold): _noted(gold, facts) for gold in report.golds}


def _named(gold: str) -> str:
    return hashlib.sha256(gold.encode()).hexdigest()[:_NAME]


def _noted(gold: GoldReport, facts: Facts) -> list[Any]:
    """What a report says, as JSON; near misses and rewrites by their numbers."""
    misses = [miss.sql for miss in near_misses(gold.gold, facts.schema)] if gold.ties else []
    others = [one.sql for one in rewrites(gold.gold, facts.schema, facts)] if gold.broken else []
    return [
        gold.rows_before,
        gold.rows_after,
        gold.near_misses,
        gold.undecided,
        [[misses.index(tie.near_miss.sql), tie.equivalent] for tie in gold.ties],
        gold.empty,
        gold.error,
        gold.rewrites,
        [others.index(one.sql) for one in gold.broken],
        gold.cut_ties,
        gold.new_cut_ties,
    ]


def _restored(gold: str, noted: Mapping[str, Any], facts: Facts) -> GoldReport:
    before, after, count, undecided, ties, empty, error, *rest = noted[_named(gold)]
    kinds, broken, cuts, new_cuts = rest
    misses = near_misses(gold, facts.schema) if ties else ()
    others = rewrites(gold, facts.schema, facts) if broken else ()
    return GoldReport(
        gold=gold,
        rows_before=before,
        rows_after=after,
        near_misses=count,
        undecided=undecided,
        ties=tuple(Tie(gold, misses[number], why) for number, why in ties),
        empty=empty,
        error=error,
        rewrites=kinds,
        broken=tuple(Broken(one.kind, one.sql, one.text) for one in (others[n] for n in broken)),
        cut_ties=cuts,
        new_cut_ties=new_cuts,
    )


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


def _insert(connection: sqlite3.Connection, table: Table, rows: Sequence[Sequence[Any]]) -> None:
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
