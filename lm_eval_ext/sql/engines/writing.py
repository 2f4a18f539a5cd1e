"""Writes tables with their rows into a new DuckDB file, or a new schema of a PostgreSQL server.

A file or schema appears whole or not at all, and nothing that exists is changed. Rows come in
batches, so that they need not fit into memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.schema import ForeignKey
from lm_eval_ext.sql.values import SHOWN, quoted, quoted_all
from lm_eval_ext.text import one_line

_ROWS = 10_000
"""Of one INSERT."""

_NAME_BYTES = 63
"""PostgreSQL cuts longer names off in silence."""


@dataclass(frozen=True)
class ColumnDraft:
    """A column to be made; ``type`` is in the engine's dialect.

    ``generated`` is the expression of a generated column, in PostgreSQL only; rows leave it out.
    """

    name: str
    type: str
    not_null: bool = False
    generated: str = ""

    def declared(self) -> str:
        """As CREATE TABLE has it."""
        made = f" GENERATED ALWAYS AS ({self.generated}) STORED" if self.generated else ""
        return f"{quoted(self.name)} {self.type}{made}{' NOT NULL' if self.not_null else ''}"


@dataclass(frozen=True)
class TableDraft:
    """A table to be made.

    Attributes:
        name: Without a schema.
        columns: At least one.
        rows: One value per column and row: numbers, texts, bytes, None; texts are read as the
            column's type. Iterated once.
        primary_key: Columns.
        foreign_keys: To tables of the same call, whose columns are a key there.
        constraints: Further ones as the dialect writes them, such as ``UNIQUE (a, b)``.
    """

    name: str
    columns: Sequence[ColumnDraft]
    rows: Iterable[Sequence[Any]] = ()
    primary_key: Sequence[str] = ()
    foreign_keys: Sequence[ForeignKey] = ()
    constraints: Sequence[str] = ()


def write_duckdb(path: Path, tables: Sequence[TableDraft]) -> None:
    """Writes a DuckDB file, which replaces an existing one.

    Tables that others refer to come first. DuckDB can fill no tables whose keys form a circle, be
    it a single table with a key to itself: the key that closes it is left out.

    Raises:
        DataError: DuckDB is not installed, or a table or row does not fit its declaration.
        OptionError: The file cannot be written.
    """
    DIALECTS["duckdb"].require()
    import duckdb

    try:
        with atomic_path(path) as part, duckdb.connect(str(part)) as database:
            known: set[str] = set()
            for table in _parents_first(tables):
                keys = [key for key in table.foreign_keys if key.parent.casefold() in known]
                known.add(table.name.casefold())
                try:
                    database.execute(_create(table, keys))
                    _fill(database, table)
                except (duckdb.Error, ValueError, OverflowError) as error:
                    raise _refused("DuckDB", table, error) from None
    except (OSError, duckdb.IOException) as error:
        reason = getattr(error, "strerror", None) or _said(error)
        raise OptionError(f"cannot write {path}: {reason}") from None


def write_postgresql(
    connection_url: str,
    schema: str,
    tables: Sequence[TableDraft],
    *,
    before: Sequence[str] = (),
    readers: Sequence[str] = (),
    finish: Callable[[Any], None] | None = None,
) -> None:
    """Writes a schema of a PostgreSQL database, in one transaction.

    Args:
        connection_url: Of a role that may create schemas in the database.
        schema: Its name; it must not exist, or hold nothing.
        tables: In any order.
        before: Statements that make types which the tables need.
        readers: Roles that may then read the tables.
        finish: Called with a cursor before the transaction ends; the schema is its search path.

    Raises:
        DataError: The driver is not installed, there is no connection, or a table or row does not
            fit its declaration.
        OptionError: The schema holds something, or the role may not write there.
    """
    names = [schema, *(table.name for table in tables)]
    names += [column.name for table in tables for column in table.columns]
    if long := next((name for name in names if len(name.encode()) > _NAME_BYTES), None):
        raise DataError(f"PostgreSQL cuts off names of over {_NAME_BYTES} bytes: {long!r}")
    with _schema(connection_url, schema) as cursor:
        import psycopg

        for statement in before:
            cursor.execute(statement)
        for table in tables:
            try:
                cursor.execute(_create(table, ()))
                _copy(cursor, table)
            except (psycopg.Error, ValueError) as error:
                raise _refused("PostgreSQL", table, error) from None
        for table in tables:
            for key in table.foreign_keys:
                try:
                    cursor.execute(f"ALTER TABLE {quoted(table.name)} ADD {_key(key)}")
                except psycopg.Error as error:
                    raise _refused("PostgreSQL", table, error) from None
        if finish is not None:
            finish(cursor)
        if readers:
            roles = quoted_all(readers)
            cursor.execute(f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {roles}")
            inside = f"ON ALL TABLES IN SCHEMA {quoted(schema)}"
            cursor.execute(f"GRANT SELECT {inside} TO {roles}")


def check_free(connection_url: str, schema: str) -> None:
    """Raises what :func:`write_postgresql` would raise before its first table; writes nothing."""
    with _schema(connection_url, schema) as cursor:
        cursor.connection.rollback()


@contextmanager
def _schema(url: str, schema: str) -> Iterator[Any]:
    """A cursor in a transaction that makes a schema."""
    DIALECTS["postgresql"].require()
    import psycopg

    try:
        with psycopg.connect(url) as connection:
            cursor: Any = connection.cursor()
            _begin(cursor, url, schema)
            yield cursor
    except psycopg.errors.InsufficientPrivilege as error:
        raise OptionError(
            f"{url}: the role may not write there ({_said(error)}); GRANT CREATE ON DATABASE to "
            "it, or let it own a database"
        ) from None
    except psycopg.OperationalError as error:
        raise DataError(f"{url}: {_said(error)}") from None
    except psycopg.Error as error:
        raise OptionError(f"{url}: cannot write the schema {schema}: {_said(error)}") from None


def _begin(cursor: Any, url: str, schema: str) -> None:
    """Makes the schema, and sets how values are read."""
    cursor.execute("SET LOCAL statement_timeout = 0")
    cursor.execute("SET LOCAL TimeZone = 'UTC'")
    cursor.execute("SET LOCAL DateStyle = 'ISO, YMD'")
    found = cursor.execute(
        "SELECT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid) FROM pg_namespace n "
        "WHERE n.nspname = %s", [schema],
    ).fetchone()  # fmt: skip
    if found and found[0]:
        raise OptionError(
            f"{url}: the schema {schema} exists and holds something; name a new one, or run: DROP "
            f"SCHEMA {quoted(schema)} CASCADE"
        )
    if not found:
        cursor.execute(f"CREATE SCHEMA {quoted(schema)}")
    cursor.execute(f"SET LOCAL search_path = {quoted(schema)}")


def _create(table: TableDraft, keys: Iterable[ForeignKey]) -> str:
    parts = [column.declared() for column in table.columns]
    if table.primary_key:
        parts.append(f"PRIMARY KEY ({quoted_all(table.primary_key)})")
    parts += [*table.constraints, *map(_key, keys)]
    return f"CREATE TABLE {quoted(table.name)} ({', '.join(parts)})"


def _key(key: ForeignKey) -> str:
    return (
        f"FOREIGN KEY ({quoted_all(key.columns)}) REFERENCES {quoted(key.parent)} "
        f"({quoted_all(key.parent_columns)})"
    )


def _parents_first(tables: Sequence[TableDraft]) -> list[TableDraft]:
    """Each table behind those that it refers to, as far as there is no circle."""
    by_name = {table.name.casefold(): table for table in tables}
    ordered: dict[str, TableDraft] = {}
    open_: set[str] = set()

    def put(name: str) -> None:
        if name in by_name and name not in ordered and name not in open_:
            open_.add(name)
            for key in by_name[name].foreign_keys:
                put(key.parent.casefold())
            ordered[name] = by_name[name]

    for name in by_name:
        put(name)
    return list(ordered.values())


def _fill(database: Any, table: TableDraft) -> None:
    """Fills a table through Arrow, ten times as fast as by parameters of INSERT."""
    import pyarrow

    names = [str(at) for at in range(len(table.columns))]
    database.execute("BEGIN")
    for batch in _batches(table.rows, _ROWS):
        columns = [pyarrow.array(_plain(column)) for column in zip(*batch, strict=True)]
        database.register("lm_eval_ext_rows", pyarrow.table(columns, names=names))
        database.execute(f"INSERT INTO {quoted(table.name)} SELECT * FROM lm_eval_ext_rows")
        database.unregister("lm_eval_ext_rows")
    database.execute("COMMIT")


def _plain(column: Sequence[Any]) -> Sequence[Any]:
    """The values as texts, which become the column's type, or all of them as bytes."""
    if any(isinstance(one, bytes) for one in column):
        return [one.encode() if isinstance(one, str) else one for one in column]
    return [one if one is None else str(one) for one in column]


def _batches(rows: Iterable[Sequence[Any]], size: int) -> Iterator[list[Sequence[Any]]]:
    left = iter(rows)
    while batch := list(islice(left, size)):
        yield batch


def _copy(cursor: Any, table: TableDraft) -> None:
    names = quoted_all(column.name for column in table.columns if not column.generated)
    with cursor.copy(f"COPY {quoted(table.name)} ({names}) FROM STDIN") as copy:
        for row in table.rows:
            copy.write_row(row)


def _refused(engine: str, table: TableDraft, error: Exception) -> DataError:
    return DataError(f"{engine} refuses the table {table.name}: {_said(error)}")


def _said(error: Exception) -> str:
    return one_line(str(error), limit=SHOWN)
