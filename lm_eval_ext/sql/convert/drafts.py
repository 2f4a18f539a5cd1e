"""A SQLite database as drafts of an engine's tables, and what could not be kept.

Several files of one database, such as the original and its populated copy, are planned together,
so that a query finds the same types in each.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.convert.columns import Type, chosen, declared
from lm_eval_ext.sql.engines.writing import ColumnDraft, TableDraft
from lm_eval_ext.sql.schema import Column, ForeignKey, Schema, Table, schema_of
from lm_eval_ext.sql.values import EngineName, Row, quoted, quoted_all

Types: TypeAlias = Mapping[str, Mapping[str, Type]]
"""By table and column, both in lower case."""

_Keys: TypeAlias = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
"""A table's primary key, and its unique ones."""

_SHOWN = 30
"""Characters of a value in a note."""


class Tally:
    """Sums up what was converted: how many rows, and all content as one hash."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.rows = 0

    def add(self, *content: object) -> None:
        """Takes declarations or a row; no sets, whose order differs from process to process."""
        self._hash.update(repr(content).encode("utf-8", "surrogatepass"))

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of all content so far."""
        return self._hash.hexdigest()


@dataclass(frozen=True)
class Plan:
    """How a database is converted.

    Attributes:
        engine: For which engine.
        schema: What SQLite declares.
        types: Of all columns.
        keys: The foreign keys that are kept, by table in lower case.
        own_keys: The primary key and the unique ones that are kept, likewise.
        notes: What is not as it was declared, one line each.
    """

    engine: EngineName
    schema: Schema
    types: Types
    keys: Mapping[str, Sequence[ForeignKey]]
    own_keys: Mapping[str, _Keys]
    notes: tuple[str, ...]

    def drafts(self, path: Path, tally: "Tally") -> Iterator[TableDraft]:
        """The tables of one file; ``tally`` gets them as their rows are read.

        Rows are in the order of SQLite's rowid.
        """
        for table in _tables(self.schema):
            name = table.name.casefold()
            primary, unique = self.own_keys[name]
            columns = [
                ColumnDraft(
                    one.name,
                    self._type(table, one).written(self.engine),
                    one.refuses_null and one.name not in primary,
                )
                for one in table.columns
            ]
            tally.add(table.name, self.types[name], columns, primary, unique, self.keys[name])
            yield TableDraft(
                name=table.name,
                columns=columns,
                rows=self._rows(path, table, tally),
                primary_key=primary,
                foreign_keys=self.keys[name],
                constraints=[f"UNIQUE ({quoted_all(key)})" for key in unique],
            )

    def _type(self, table: Table, column: Column) -> Type:
        return self.types[table.name.casefold()][column.name.casefold()]

    def _rows(self, path: Path, table: Table, tally: "Tally") -> Iterator[Row]:
        types = [self._type(table, one) for one in table.columns]
        decimals = [at for at, one in enumerate(types) if one.family == "decimal"]
        with closing(_open(path)) as connection:
            for row in connection.execute(_select(table, types)):
                tally.add(row)
                tally.rows += 1
                if decimals:  # as a float one may be rounded
                    cells: list[Any] = list(row)
                    for at in decimals:
                        cells[at] = None if row[at] is None else Decimal(repr(row[at]))
                    row = tuple(cells)  # noqa: PLW2901
                yield row


def plan(files: Sequence[Path], engine: EngineName) -> Plan:
    """Plans the conversion of the files of one database, which have the same tables.

    Raises:
        DataError: A file cannot be read.
    """
    try:
        with ExitStack() as stack:
            connections = [stack.enter_context(closing(_open(path))) for path in files]
            return _Planner(connections, engine).plan()
    except sqlite3.Error as error:
        raise DataError(f"{files[0]}: cannot be converted ({error})") from None


class _Planner:
    """Decides about the columns and keys of a database."""

    def __init__(self, connections: Sequence[sqlite3.Connection], engine: EngineName) -> None:
        self.connections, self.engine = connections, engine
        self.schema = schema_of(connections[0])
        self.types: dict[str, dict[str, Type]] = {}
        self.keys: dict[str, list[ForeignKey]] = {}
        self.own_keys: dict[str, _Keys] = {}
        self.notes: list[str] = []

    def plan(self) -> Plan:
        for table in self.schema.values():
            if table.view:
                self.notes.append(f"{table.name}: a view, which is not converted")
        for table in _tables(self.schema):
            name = table.name.casefold()
            self.types[name] = {
                one.name.casefold(): self._type(table, one) for one in table.columns
            }
            self.own_keys[name] = self._own_keys(table)
        for table in _tables(self.schema):
            self.keys[table.name.casefold()] = list(self._foreign_keys(table))
        return Plan(
            self.engine, self.schema, self.types, self.keys, self.own_keys, tuple(self.notes)
        )  # fmt: skip

    def _type(self, table: Table, column: Column) -> Type:
        # By type, too: SQLite's DISTINCT would show but one of 1 and 1.0.
        asked = [quoted(column.name), f"typeof({quoted(column.name)})"]
        values = [row[0] for one in self.connections for row in _values(one, table, asked)]
        found, as_declared = chosen(column.type, (one for one in values if one is not None))
        said = f"{table.name}.{column.name}"
        if not as_declared and not (self.engine == "duckdb" and _only_longer(column, found)):
            kinds = sorted({type(one).__name__ for one in values if one is not None})
            self.notes.append(
                f"{said}: {column.type or 'no type'} is {found.written(self.engine)} (it holds "
                f"{' and '.join(_KINDS[one] for one in kinds) or 'nothing'}{_odd(column, values)})"
            )
        if column.collation != "BINARY":
            self.notes.append(f"{said}: compares by {column.collation} in SQLite, by bytes here")
        return found

    def _own_keys(self, table: Table) -> _Keys:
        """The primary key and the unique ones that hold in the engine, too."""
        ordered = sorted((c for c in table.columns if c.primary_key), key=lambda c: c.primary_key)
        primary = tuple(one.name for one in ordered)
        unique = [key for key in table.unique_keys if set(key) != set(primary)]
        asked = [quoted(one) for one in primary]
        if any(None in row for one in self.connections for row in _values(one, table, asked)):
            self.notes.append(f"{table.name}: the primary key holds NULL, and is UNIQUE instead")
            primary, unique = (), [primary, *unique]
        lost = [key for key in filter(None, (primary, *unique)) if self._merges(table, key)]
        for key in lost:
            said = "different values in SQLite are one here"
            self.notes.append(f"{table.name} ({', '.join(key)}): no key, {said}")
        return () if primary in lost else primary, [key for key in unique if key not in lost]

    def _merges(self, table: Table, key: Sequence[str]) -> bool:
        """Whether casts make values of a key the same, such as the number 1 and the text 1."""
        asked = (
            f"SELECT 1 FROM {quoted(table.name)} WHERE "
            f"{' AND '.join(f'{quoted(one)} IS NOT NULL' for one in key)} GROUP BY "
            f"{', '.join(f'{one} COLLATE BINARY' for one in self._read(table, key))} "
            "HAVING count(*) > 1"
        )
        return any(connection.execute(asked).fetchone() for connection in self.connections)

    def _read(self, table: Table, columns: Sequence[str]) -> list[str]:
        """Columns as the engine gets them, in SQL."""
        types = self.types[table.name.casefold()]
        return [_cast(one, types[one.casefold()]) for one in columns]

    def _foreign_keys(self, table: Table) -> Iterator[ForeignKey]:
        for key in dict.fromkeys(table.foreign_keys):
            if problem := self._problem(table, key):
                where = f"{table.name} ({', '.join(key.columns)}) REFERENCES {key.parent}"
                self.notes.append(f"{where}: not declared, {problem}")
                continue
            parent = self.schema[key.parent]
            yield ForeignKey(
                tuple(table[name].name for name in key.columns),
                parent.name,
                tuple(parent[name].name for name in key.parent_columns),
            )

    def _problem(self, table: Table, key: ForeignKey) -> str:
        """Why the engine would refuse a foreign key; "" if it would not."""
        parent = self.schema.get(key.parent)
        if parent is None or parent.view:
            return "there is no such table"
        primary, unique = self.own_keys[parent.name.casefold()]
        wanted = [name.casefold() for name in key.parent_columns]
        known = [[name.casefold() for name in one] for one in (primary, *unique)]
        # One that names no columns means the primary key, which may have another number of them.
        if len(wanted) != len(key.columns) or wanted not in known:
            return "the other columns are no key"
        for ours, other in zip(key.columns, wanted, strict=True):
            first = self.types[table.name.casefold()][ours.casefold()]
            second = self.types[parent.name.casefold()][other]
            wider = first.numeric and second.numeric and first.width <= second.width
            alike = wider and self.engine != "duckdb"
            if first.written("duckdb") != second.written("duckdb") and not alike:
                types = f"{first.written(self.engine)} and {second.written(self.engine)}"
                return f"the types {types} differ"
        for connection in self.connections:
            there = set(_values(connection, parent, self._read(parent, key.parent_columns)))
            lost = [
                row
                for row in _values(connection, table, self._read(table, key.columns))
                if None not in row and row not in there
            ]
            if lost:
                return f"{repr(lost[0])[:_SHOWN]} and {len(lost) - 1} more are not there"
        if self.engine == "duckdb" and self._leads(key.parent, table.name):
            return "DuckDB has no keys in a circle"
        return ""

    def _leads(self, start: str, end: str) -> bool:
        """Whether foreign keys lead from a table to another, or are the same."""
        seen, left = set(), [start.casefold()]
        while left:
            seen.add(name := left.pop())
            left += [one.parent.casefold() for one in self.keys.get(name, ())]
            left = [one for one in left if one not in seen]
        return end.casefold() in seen


def _only_longer(column: Column, found: Type) -> bool:
    """Whether a text is over its declared length, which DuckDB does not know."""
    wanted = declared(column.type)
    return wanted is not None and wanted.family == found.family == "text"


_KINDS = {"int": "integers", "float": "floats", "str": "texts", "bytes": "blobs"}


def _odd(column: Column, values: Iterable[Any]) -> str:
    """A text that the declaration does not expect."""
    first = next((one for one in values if isinstance(one, str)), None)
    return f" such as {first[:_SHOWN]!r}" if first is not None and column.affinity != "TEXT" else ""


def _tables(schema: Schema) -> list[Table]:
    return [table for table in schema.values() if not table.view]


def _values(
    connection: sqlite3.Connection, table: Table, terms: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """The different rows of some terms in SQL; none of no terms."""
    if terms:
        # As here, values are different in the engine if their bytes are.
        names = ", ".join(f"{one} COLLATE BINARY" for one in terms)
        yield from connection.execute(f"SELECT DISTINCT {names} FROM {quoted(table.name)}")


def _select(table: Table, types: Sequence[Type]) -> str:
    names = [_cast(one.name, kind) for one, kind in zip(table.columns, types, strict=True)]
    # An index that has all columns would give another order.
    return f"SELECT {', '.join(names)} FROM {quoted(table.name)} NOT INDEXED"


def _cast(column: str, kind: Type) -> str:
    to = {"text": "TEXT", "blob": "BLOB"}.get(kind.family)
    return f"CAST({quoted(column)} AS {to})" if to else quoted(column)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection
