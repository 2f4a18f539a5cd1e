"""DuckDB, which is unsafe by design for queries of others: what it may do is taken away here.

Its documentation leaves safety to whoever embeds it. So: the file is opened read-only, nothing
outside of it can be reached, no extension is loaded, the configuration is locked, one thread runs,
and memory is limited twice, by DuckDB and by the system. A query must be one SELECT, and name no
function that DuckDB itself calls volatile, nor a table function that reads anything but its
arguments (``query`` would hide a query in a text, ``arrow_scan`` takes addresses in memory). Each
query has a session of its own. ``interrupt`` ends most queries that take too long; for the others
(long lists, ``levenshtein``) the parent kills the process.
"""

import datetime
import decimal
import json
import re
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import duckdb

from lm_eval_ext.sql.engines.base import (
    Alarm,
    Engine,
    UnavailableError,
    decimal_number,
    failed,
    moment,
    number,
    whole,
)
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import OUT_OF_MEMORY, Failure, Row, Rows, Value

_KEPT_OPEN = 4
_BATCH = 64

_TRUSTED: Final = {
    "error", "gen_random_uuid", "generate_series", "json_each", "json_tree", "random", "range",
    "repeat", "repeat_row", "unnest", "uuid", "uuidv4", "uuidv7",
}  # fmt: skip
"""Volatile and table functions that change nothing and read only their arguments."""

_FUNCTION = re.compile(r'"function_name":"((?:[^"\\]|\\.)*)"')
"""In DuckDB's own tree as JSON; in its texts the quotation marks are escaped."""

_TABLE = re.compile(r'"table_name":"((?:[^"\\]|\\.)*)"')
_PRIVATE: Final = {"duckdb_databases", "pragma_database_list"}
"""Views that show where files lie."""

_ENDS: Final = frozenset(
    {date for kind in (datetime.datetime, datetime.date) for date in (kind.min, kind.max)}
)
"""What DuckDB's package makes of infinity, and of these days as well."""


class DuckDBEngine(Engine):
    """Addresses are paths of DuckDB files; a few stay open."""

    errors = (duckdb.Error,)

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._open: OrderedDict[str, tuple[Any, frozenset[str]]] = OrderedDict()
        self._alarm = Alarm()
        self._ends = False

    def close(self) -> None:
        """Closes all connections; later queries open new ones."""
        while self._open:
            self._open.popitem()[1][0].close()

    def _run(self, address: str, sql: str) -> Rows:
        self._alarm.rang = self._ends = False
        database, refused = self._database(address)
        session = database.cursor()
        late = self._alarm.after(
            self.limits.timeout_s, time.process_time, lambda _: session.interrupt()
        )
        try:
            with late:
                _check(session, sql, refused)
                session.execute(sql)
                columns = tuple(column[0] for column in session.description)
                self._check_columns(len(columns))
                rows: list[Row] = []
                self._collect(rows, self._rows(session))
                if self._ends:
                    rows = _with_infinity(session, sql, rows)
                return Rows(columns, rows)
        finally:
            session.close()

    def _rows(self, session: Any) -> Iterator[Row]:
        while batch := session.fetchmany(_BATCH):
            for row in batch:
                yield tuple(self._counted(value) for value in row)

    def _counted(self, value: Any) -> Value:
        cell = plain(value)
        if isinstance(value, datetime.date) and value in _ENDS:
            self._ends = True
        if isinstance(cell, str):
            self._spend(len(cell) if cell.isascii() else len(cell.encode("utf-8", "replace")))
        elif isinstance(cell, bytes):
            self._spend(len(cell))
        return cell

    def _failure(self, error: Exception) -> Failure:
        if self._alarm.rang and isinstance(error, duckdb.InterruptException):
            return self._late()
        if isinstance(error, duckdb.OutOfMemoryException):
            return OUT_OF_MEMORY
        if isinstance(error, duckdb.InternalException | duckdb.FatalException):
            self.close()  # the instance cannot be used any more
        return failed("error", error)

    def _database(self, path: str) -> tuple[Any, frozenset[str]]:
        """The open database, and the functions that no query may name."""
        if path not in self._open:
            if len(self._open) >= _KEPT_OPEN:
                self._open.popitem(last=False)[1][0].close()
            try:
                connection = duckdb.connect(path, read_only=True, config=_config(self.limits))
            except duckdb.Error as error:
                raise UnavailableError(
                    f"{path}: DuckDB {duckdb.__version__} cannot open it ({error})"
                ) from None
            connection.execute("SET GLOBAL TimeZone = 'UTC'")
            found = connection.execute(
                "SELECT DISTINCT function_name FROM duckdb_functions() "
                "WHERE function_type = 'table' OR stability = 'VOLATILE'"
            ).fetchall()
            connection.execute("SET lock_configuration = true")
            self._open[path] = connection, frozenset(name for (name,) in found) - _TRUSTED
        self._open.move_to_end(path)
        return self._open[path]


def _config(limits: Limits) -> dict[str, Any]:
    return {
        "enable_external_access": "false",  # files, network, and the program's own variables
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "threads": 1,
        "async_threads": 0,
        "memory_limit": f"{limits.max_memory_bytes // 2 >> 20}MiB",
        "temp_directory": "",  # a big sort counts as memory instead of filling the disk
        "max_temp_directory_size": "0KiB",
    }


def _check(session: Any, sql: str, refused: frozenset[str]) -> None:
    """Raises ValueError unless the text is one SELECT of trusted functions.

    DuckDB's own parser reads it, and gives the tree as JSON.
    """
    statements = session.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("not a query: exactly one SELECT is allowed")
    (tree,) = session.execute("SELECT json_serialize_sql($1)", [sql]).fetchone()
    if tree.startswith('{"error":true'):
        raise ValueError("not a query: exactly one SELECT is allowed")
    called = {json.loads(f'"{name}"').lower() for name in _FUNCTION.findall(tree)}
    if denied := sorted(called & refused):
        raise ValueError(f"the function {denied[0]} is not allowed")
    read = {json.loads(f'"{name}"').lower() for name in _TABLE.findall(tree)}
    if denied := sorted(read & _PRIVATE):
        raise ValueError(f"the view {denied[0]} is not allowed")


def _with_infinity(session: Any, sql: str, rows: list[Row]) -> list[Row]:
    """The rows, with infinite dates as the texts that DuckDB itself makes of them."""
    # Without a semicolon and what may follow it.
    clean = "SELECT json_deserialize_sql(json_serialize_sql($1))"
    (query,) = session.execute(clean, [sql]).fetchone()
    session.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({query})")
    return [
        tuple(text if text in ("infinity", "-infinity") else cell for cell, text in both)
        for row, texts in zip(rows, session.fetchall(), strict=True)
        for both in [zip(row, texts, strict=True)]
    ]


def plain(value: Any) -> Value:  # noqa: PLR0911 (a table of types)
    """A value of DuckDB as results are compared (docs/sql.md, "Values")."""
    kind = type(value)
    if kind is int:
        return whole(value)
    if kind in (str, type(None), bytes):
        return value  # type: ignore[no-any-return]
    if kind is float:
        return number(value)
    if kind is bool:
        return int(value)
    if kind is decimal.Decimal:
        return decimal_number(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return moment(str(value))
    if isinstance(value, list | tuple | dict):
        return json.dumps(_nested(value), ensure_ascii=False, default=str)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return str(value)  # dates, times, intervals, UUIDs


def _nested(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(plain(key)): _nested(one) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_nested(one) for one in value]
    cell = plain(value)
    return cell.hex() if isinstance(cell, bytes) else cell
