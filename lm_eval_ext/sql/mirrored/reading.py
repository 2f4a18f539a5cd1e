"""A SQLite file with the rows of a DuckDB or PostgreSQL database, on which rows are searched for.

It mirrors what SQLite can hold unaltered. What it cannot is left out, column by column, and named.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError

from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner
from lm_eval_ext.sql.executor import Executor
from lm_eval_ext.sql.mirrored.catalogue import Ask, Catalogue, DeclaredColumn, DeclaredTable, read
from lm_eval_ext.sql.mirrored.dialect import to_sqlite
from lm_eval_ext.sql.mirrored.types import Carried, carried
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.schema import Schema, read_schema
from lm_eval_ext.sql.values import Place, QueryError, quoted, quoted_all

MOST_ROWS = 200_000
"""Rows of a table: the search holds all in memory, and asks for all of them often."""

_BITS = 63
"""Of SQLite's integers, without the sign."""

WIDE = Limits(
    timeout_s=300, max_rows=MOST_ROWS, max_result_bytes=1 << 30, max_value_bytes=64 << 20,
    max_memory_bytes=4 << 30,
)  # fmt: skip
"""Limits for reading whole tables by queries of ours."""


@dataclass(frozen=True)
class MirroredTable:
    """A table of the mirror.

    Attributes:
        declared: As its engine declares it.
        kinds: How its columns are carried, by name, in the mirror's order.
        copied: Columns that are not carried: added rows repeat a value that the table has.
    """

    declared: DeclaredTable
    kinds: Mapping[str, Carried]
    copied: tuple[str, ...]


@dataclass(frozen=True)
class Mirror:
    """A mirror of a database.

    Attributes:
        place: The database.
        path: The SQLite file.
        schema: Of the file, with names as the engine spells them.
        catalogue: What the engine declares.
        tables: By name.
        left_out: What is not mirrored: ``pets.tags: the type integer[]``.
    """

    place: Place
    path: Path
    schema: Schema
    catalogue: Catalogue
    tables: Mapping[str, MirroredTable]
    left_out: tuple[str, ...]


@contextmanager
def reader(place: Place) -> Iterator[Ask]:
    """Runs queries of ours, which may read whole tables."""
    with Executor(workers=1, limits=WIDE) as executor:
        yield lambda sql: list(executor.query(place, sql).rows)


def mirror(place: Place, path: Path) -> Mirror:
    """Writes the mirror of a database; the database is only read.

    Args:
        place: The database, of DuckDB or PostgreSQL.
        path: A file that does not exist.

    Raises:
        DataError: The database cannot be read, or has no table, or too many rows.
    """
    try:
        return _mirrored(place, path)
    except QueryError as error:
        if error.failure.kind == "too_large":
            raise DataError(
                f"{place}: a table has over {MOST_ROWS:,} rows, which is more than rows are "
                "searched for on; name a database with a part of them"
            ) from None
        raise DataError(f"{place}: cannot be read ({error})") from None


def _mirrored(place: Place, path: Path) -> Mirror:
    left_out: list[str] = []
    tables: dict[str, MirroredTable] = {}
    with reader(place) as ask, closing(sqlite3.connect(path)) as made:
        catalogue = read(ask, place.engine)
        left_out += [f"{name}: a table of another schema" for name in catalogue.elsewhere]
        for name, table in catalogue.tables.items():
            if name.casefold() in {known.casefold() for known in tables}:
                left_out.append(f"{name}: SQLite has no two names that differ in case only")
                continue
            tables[name] = _Writer(made, ask, table, left_out).write(catalogue.tables)
        made.commit()
        schema = read_schema(path)
        for name, query in catalogue.views.items():
            if not _view(made, name, query, place, schema):
                left_out.append(f"{name}: a view that SQLite cannot show")
        made.commit()
    if not tables:
        raise DataError(f"{place}: there is no table that can be read")
    return Mirror(place, path, read_schema(path), catalogue, tables, tuple(left_out))


class _Writer:
    """Writes one table; ``left_out`` gets the columns that are not carried."""

    def __init__(
        self, made: sqlite3.Connection, ask: Ask, table: DeclaredTable, left_out: list[str]
    ) -> None:
        self._made, self._ask, self._table, self._left_out = made, ask, table, left_out

    def write(self, others: Mapping[str, DeclaredTable]) -> MirroredTable:
        table = self._table
        kinds: dict[str, Carried] = {}
        for column in table.columns:
            if (kind := carried(column.type, column.labels)) is None or column.generated:
                self._leave(column, "generated" if column.generated else f"the type {column.type}")
            elif column.name.casefold() in map(str.casefold, kinds):
                self._leave(column, "its name differs from another one's in case only")
            else:
                kinds[column.name] = kind
        self._read(kinds)
        raw = {name: f"c{number}" for number, name in enumerate(kinds)}
        kinds = {
            name: kind for name, kind in kinds.items() if self._survives(name, kind, raw[name])
        }
        self._create(kinds, [raw[name] for name in kinds], others)
        copied = tuple(
            one.name for one in table.columns if one.name not in kinds and not one.generated
        )
        return MirroredTable(table, kinds, copied)

    def _leave(self, column: DeclaredColumn, reason: str) -> None:
        self._left_out.append(f"{self._table.name}.{column.name}: {reason}")

    def _read(self, kinds: Mapping[str, Carried]) -> None:
        """Reads all rows into a table without types."""
        shown = ", ".join(kind.read.format(quoted(name)) for name, kind in kinds.items()) or "1"
        zones = [kind.zone for kind in kinds.values()] or [False]
        names = [f"c{number}" for number in range(len(zones))]
        self._made.execute("DROP TABLE IF EXISTS temp.raw")
        self._made.execute(f"CREATE TEMP TABLE raw ({', '.join(names)})")
        self._made.executemany(
            f"INSERT INTO temp.raw VALUES ({', '.join('?' * len(names))})",
            (
                [_plain(value, zone) for value, zone in zip(row, zones, strict=True)]
                for row in self._ask(f"SELECT {shown} FROM {quoted(self._table.name)}")
            ),
        )

    def _survives(self, name: str, kind: Carried, raw: str) -> bool:
        """Whether SQLite holds all values of a column unaltered."""
        broken = f"SELECT EXISTS (SELECT 1 FROM temp.raw WHERE NOT ({kind.check.format(raw)}))"
        same = not self._made.execute(broken).fetchone()[0]
        if same and kind.exact:
            asked = f"SELECT bool_and({kind.exact.format(quoted(name))})"
            same = self._ask(f"{asked} FROM {quoted(self._table.name)}") != [(0,)]
        if not same:
            column = next(one for one in self._table.columns if one.name == name)
            self._leave(column, f"SQLite cannot hold all of its values ({column.type})")
        return same

    def _create(
        self, kinds: Mapping[str, Carried], raw: list[str], others: Mapping[str, DeclaredTable]
    ) -> None:
        table, parts = self._table, []
        key = table.primary_key if set(table.primary_key) <= set(kinds) else ()
        required = {one.name for one in table.columns if one.not_null} | set(key)
        for name, kind in kinds.items():
            spelt = quoted(name)
            null = " NOT NULL" if name in required else ""
            parts.append(f"{spelt} {kind.declared}{null} CHECK ({kind.check.format(spelt)})")
        if not parts:
            parts.append("nothing_carried")  # a table needs a column
        if key:
            parts.append(f"PRIMARY KEY ({quoted_all(key)})")
        parts += [f"UNIQUE ({quoted_all(one)})" for one in table.unique if set(one) <= set(kinds)]
        for reference in table.foreign_keys:
            if set(reference.columns) <= set(kinds) and reference.parent in others:
                parts.append(
                    f"FOREIGN KEY ({quoted_all(reference.columns)}) REFERENCES "
                    f"{quoted(reference.parent)} ({quoted_all(reference.parent_columns)})"
                )
        checks = [f"CHECK ({check})" for check in self._checks()]
        fill = f"INSERT INTO {quoted(table.name)} SELECT {', '.join(raw) or '1'} FROM temp.raw"
        for wanted in ([*parts, *checks], parts):
            try:
                self._made.execute(f"CREATE TABLE {quoted(table.name)} ({', '.join(wanted)})")
                self._made.execute(fill)
            except sqlite3.Error:  # a check that means something else in SQLite
                self._made.execute(f"DROP TABLE IF EXISTS {quoted(table.name)}")
            else:
                return
        raise DataError(f"the table {table.name} cannot be mirrored in SQLite")

    def _checks(self) -> Iterator[str]:
        for check in self._table.checks:
            with suppress(SqlglotError):
                yield sqlglot.transpile(check, read="postgres", write="sqlite")[0]


def _plain(value: Any, zone: bool) -> Any:  # noqa: FBT001
    if isinstance(value, int) and value.bit_length() > _BITS:
        return str(value)  # breaks the check of whole numbers
    return value.removesuffix("+00") if zone and isinstance(value, str) else value


def _view(made: sqlite3.Connection, name: str, query: str, place: Place, schema: Schema) -> bool:
    """Makes a view; whether it works."""
    try:
        made.execute(f"CREATE VIEW {quoted(name)} AS {to_sqlite(query, place.engine, schema)}")
        Runner(made).rows(f"SELECT * FROM {quoted(name)} LIMIT 1")  # a view may have no end
    except (sqlite3.Error, NoResultError, UnparsedQuery):
        made.execute(f"DROP VIEW IF EXISTS {quoted(name)}")
        return False
    return True
