"""A populated copy of a DuckDB or PostgreSQL database: all that it holds, and the added rows.

What the original holds is copied by its own engine and never goes through SQLite. DuckDB's copy is
a new file. PostgreSQL's is written by a role that may, into a database that the user names: so the
originals are safe, and ``public.mast`` means the copy's table there.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.engines.writing import (
    ColumnDraft,
    TableDraft,
    write_postgresql,
)
from lm_eval_ext.sql.executor import Executor
from lm_eval_ext.sql.mirrored.catalogue import Ask, DeclaredTable, read
from lm_eval_ext.sql.mirrored.reading import Mirror, MirroredTable, reader
from lm_eval_ext.sql.mirrored.types import Carried
from lm_eval_ext.sql.values import Place, Row, Value, quoted, quoted_all
from lm_eval_ext.text import one_line

Added = Mapping[str, Sequence[Row]]
"""Added rows by table, each with its rowid first, as :func:`.distill.added_values.added_rows`."""


def write_file(mirror: Mirror, added: Added, target: Path) -> dict[str, int]:
    """Writes the populated copy of a DuckDB file.

    Returns:
        How many rows were added, by table; "" counts those that DuckDB refused.

    Raises:
        OptionError: It cannot be written.
    """
    import duckdb

    if target.exists() and target.samefile(mirror.place.address):
        raise OptionError(f"{target}: this is the original; name another place for the copy")
    try:
        with atomic_path(target) as part:
            shutil.copyfile(mirror.place.address, part)
            with duckdb.connect(str(part), config={"enable_external_access": "false"}) as copy:
                copy.execute("SET TimeZone = 'UTC'")

                def insert(sql: str, row: list[Any]) -> bool:
                    try:
                        copy.execute(sql, row)
                    except duckdb.Error:
                        return False
                    return True

                return _insert(mirror, added, insert)
    except (OSError, duckdb.IOException) as error:
        reason = getattr(error, "strerror", None) or one_line(str(error))
        raise OptionError(f"cannot write {target}: {reason}") from None


def write_database(
    mirror: Mirror, added: Added, into: str, readers: Sequence[str]
) -> dict[str, int]:
    """Writes the populated copy of a PostgreSQL database into another database.

    Args:
        mirror: Of the original.
        added: The rows.
        into: The URL of the other database, as a role that may write there.
        readers: Roles that may then read it.

    Returns:
        As :func:`write_file`.

    Raises:
        DataError: There is no connection, or a table cannot be copied.
        OptionError: The database holds such tables, or the role may not write.
    """
    catalogue = mirror.catalogue
    counts: dict[str, int] = {}

    def finish(cursor: Any) -> None:
        import psycopg

        raw = psycopg.RawCursor(cursor.connection)  # which takes $1

        def insert(sql: str, row: list[Any]) -> bool:
            try:
                with cursor.connection.transaction():  # a savepoint
                    raw.execute(sql.encode(), row)
            except psycopg.Error:
                return False
            return True

        counts.update(_insert(mirror, added, insert))
        for name, query in catalogue.views.items():
            cursor.execute(f"CREATE VIEW {quoted(name)} AS {query}")

    labels = {
        column.type: column.labels for table in catalogue.tables.values()
        for column in table.columns if column.labels
    }  # fmt: skip
    with reader(mirror.place) as ask:
        write_postgresql(
            into,
            catalogue.schema,
            [_draft(ask, table) for table in catalogue.tables.values()],
            before=[f"CREATE TYPE {kind} AS ENUM ({known})" for kind, known in labels.items()],
            readers=readers,
            finish=finish,
        )
    return counts


def _draft(ask: Ask, table: DeclaredTable) -> TableDraft:
    """A table to be made, with rows as the server writes them as text."""
    columns = [
        ColumnDraft(one.name, one.type, one.not_null, one.generated) for one in table.columns
    ]
    shown = ", ".join(
        f"CAST({quoted(one.name)} AS text)" for one in table.columns if not one.generated
    )

    def rows() -> Iterator[Row]:
        yield from ask(f"SELECT {shown} FROM {quoted(table.name)}")

    return TableDraft(
        table.name,
        columns,
        rows(),
        table.primary_key,
        table.foreign_keys,
        [
            *(f"UNIQUE ({quoted_all(names)})" for names in table.unique),
            *(f"CHECK ({check})" for check in table.checks),
        ],
    )


def _insert(
    mirror: Mirror, added: Added, insert: Callable[[str, list[Any]], bool]
) -> dict[str, int]:
    """Adds the rows one by one, those whose parents are missing again until no more go in."""
    counts: dict[str, int] = {}
    left = [(mirror.tables[name], row[1:]) for name, rows in added.items() for row in rows]
    before = len(left) + 1
    while left and len(left) < before:
        before, waiting = len(left), left
        left = []
        for table, row in waiting:
            if insert(*_statement(table, row)):
                counts[table.declared.name] = counts.get(table.declared.name, 0) + 1
            else:
                left.append((table, row))
    return {**dict(sorted(counts.items())), **({"": len(left)} if left else {})}


def _statement(table: MirroredTable, row: Row) -> tuple[str, list[Any]]:
    """The INSERT of a row; what SQLite does not hold repeats a value that the table has."""
    name = quoted(table.declared.name)
    types = {column.name: column.type for column in table.declared.columns}
    values = [f"CAST(${n} AS {types[column]})" for n, column in enumerate(table.kinds, 1)]
    values += [
        f"(SELECT {quoted(one)} FROM {name} WHERE {quoted(one)} IS NOT NULL LIMIT 1)"
        for one in table.copied
    ]
    spelt = quoted_all([*table.kinds, *table.copied])
    given = list(map(_given, table.kinds.values(), row))
    return f"INSERT INTO {name} ({spelt}) VALUES ({', '.join(values)})", given


def _given(kind: Carried, value: Value) -> Any:
    """A value of the mirror as the engine takes it."""
    if value is not None and kind.declared == "BOOLEAN":
        return bool(value)
    return f"{value}+00" if isinstance(value, str) and kind.zone else value


def check_copy(executor: Executor, original: Place, copy: Place) -> None:
    """Raises DataError if a database cannot be the populated copy of another one.

    It has the same tables, and at least as many rows in each.
    """

    def found(place: Place) -> dict[str, tuple[list[str], int]]:
        def ask(sql: str) -> list[Row]:
            return executor.query(place, sql).rows

        return {
            name: (
                [one.name for one in table.columns],
                int(str(ask(f"SELECT count(*) FROM {quoted(name)}")[0][0])),
            )
            for name, table in read(ask, place.engine).tables.items()
        }

    there = found(copy)
    for name, (columns, rows) in found(original).items():
        others, more = there.get(name, ([], 0))
        if others != columns or more < rows:
            raise DataError(
                f"{copy} is no populated copy of {original}: its table {name} is another one, or "
                "lacks rows; make it again by lm-eval-ext magnifico populate"
            )
