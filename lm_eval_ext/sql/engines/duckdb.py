"""DuckDB, which is unsafe by design for queries of others: what it may do is taken away here.

Its documentation leaves safety to whoever embeds it. So the file is opened read-only, nothing
outside of it can be reached, no extension is loaded, the configuration is locked, one thread runs,
and memory is limited twice, by DuckDB and by the system. A query must be one SELECT, and call no
function of these kinds, not even through a macro:

- functions that DuckDB itself calls volatile: they sleep, count, log;
- table functions that read anything but their arguments (``query`` would hide a query in a text,
  ``arrow_scan`` takes addresses in memory);
- functions that show settings, which hold paths of the machine.

Each query has a session of its own. ``interrupt`` ends most queries that take too long; for the
others (long lists, ``levenshtein``) the parent kills the process.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from lm_eval_ext.sql.engines.base import Alarm, Engine, QueryClock, UnavailableError, failure_of
from lm_eval_ext.sql.engines.duckdb_values import (
    AmbiguousDateError,
    ColumnType,
    Reader,
    is_temporal,
    must_be_text,
    reader_of,
    text_type,
)
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.reasons import NO_RESULT, NOT_AUTHORIZED, SEVERAL_STATEMENTS, is_no_select
from lm_eval_ext.sql.values import OUT_OF_MEMORY, Failure, Row, Rows, Value

_MAX_OPEN_FILES = 4
_ROWS_PER_FETCH = 64

_TRUSTED: Final = frozenset(
    {
        "duckdb_columns",
        "duckdb_constraints",
        "duckdb_functions",
        "duckdb_indexes",
        "duckdb_schemas",
        "duckdb_sequences",
        "duckdb_tables",
        "duckdb_types",
        "duckdb_views",
        "error",
        "gen_random_uuid",
        "generate_series",
        "json_each",
        "json_tree",
        "random",
        "range",
        "repeat",
        "repeat_row",
        "unnest",
        "uuid",
        "uuidv4",
        "uuidv7",
    }
)
"""Volatile functions and table functions that change nothing, and read only their arguments or
what the database declares."""

_REVEALING: Final = frozenset({"current_setting", "getvariable", "json_serialize_plan"})
"""Other functions that show settings; the last one computes parts of a query while it plans."""

_REVEALING_VIEWS: Final = frozenset(
    {"duckdb_databases", "duckdb_logs", "pg_settings", "pragma_database_list"}
)
"""Views that show settings, or where files lie."""

_FUNCTIONS_AND_MACROS: Final = """
SELECT lower(function_name), function_type IN ('table', 'table_macro'),
       function_type = 'table' OR stability IS NOT DISTINCT FROM 'VOLATILE',
       CASE function_type WHEN 'macro' THEN 'SELECT ' || macro_definition ELSE macro_definition END
FROM duckdb_functions()
"""
"""The functions and macros of a database: the name, whether it stands in FROM clauses, whether it
may do more than compute a value from its arguments, and the query that a macro stands for."""

_TEXT_IN_TREE: Final = r'"((?:[^"\\]|\\.)*)"'
"""A text in the tree that DuckDB writes as JSON: quotation marks within are escaped."""

_CALL_IN_TREE = re.compile(rf'"function_name":{_TEXT_IN_TREE}')
_TABLE_CALL_IN_TREE = re.compile(
    rf'"function":{{(?:[^{{}}"]|{_TEXT_IN_TREE})*?"function_name":{_TEXT_IN_TREE}'
)
"""A call in a FROM clause. Some names are a function there and another one in an expression."""

_TABLE_IN_TREE = re.compile(rf'"table_name":{_TEXT_IN_TREE}')


@dataclass(frozen=True)
class _Functions:
    """Names of functions, in lower case.

    Attributes:
        anywhere: Those that stand in expressions. Of a query it also has those in FROM clauses,
            since its tree names them in the same way.
        in_from: Those that stand in FROM clauses.
    """

    anywhere: frozenset[str]
    in_from: frozenset[str]

    def shared_with(self, functions: "_Functions") -> list[str]:
        """Return the names in both, sorted."""
        shared = (self.anywhere & functions.anywhere) | (self.in_from & functions.in_from)
        return sorted(shared)


@dataclass(frozen=True)
class _Database:
    """An open file, and the functions that no query may call."""

    connection: Any
    refused: _Functions


@dataclass(frozen=True)
class _Macro:
    """A macro of DuckDB or of the database: its name in lower case, and the query it stands for."""

    name: str
    is_table: bool
    definition: str


@dataclass(frozen=True)
class _Column:
    """A column of a result."""

    name: str
    column_type: ColumnType


class DuckDBEngine(Engine):
    """Runs queries on DuckDB files, whose paths are the addresses; a few files stay open."""

    driver_errors = (duckdb.Error,)

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._databases: OrderedDict[str, _Database] = OrderedDict()
        self._macro_calls: dict[str, _Functions] = {}
        self._alarm = Alarm()

    def close(self) -> None:
        """Close all connections; later queries open new ones."""
        while self._databases:
            _, database = self._databases.popitem()
            database.connection.close()

    def _run(self, address: str, sql: str) -> Rows:
        self._alarm.has_rung = False
        database = self._database(address)
        session = database.connection.cursor()
        deadline = self._alarm.after(
            self.limits.timeout_s, QueryClock(), lambda _: session.interrupt()
        )
        try:
            with deadline:
                _check(session, sql, database.refused)
                return self._execute(session, sql)
        finally:
            session.close()

    def _execute(self, session: Any, sql: str) -> Rows:
        session.execute(sql)
        columns = [_Column(name, column_type) for name, column_type, *_ in session.description]
        self._check_columns(len(columns))
        text_columns = [must_be_text(column.column_type) for column in columns]
        if any(text_columns):
            session.execute(_cast_to_texts(session, sql, columns, text_columns))
        try:
            rows = self._rows(session, columns)
        except AmbiguousDateError:  # very rare: only now is it worth a second execution
            text_columns = [
                must_be_text(column.column_type) or is_temporal(column.column_type)
                for column in columns
            ]
            self._bytes_left = self.limits.max_result_bytes
            session.execute(_cast_to_texts(session, sql, columns, text_columns))
            rows = self._rows(session, columns)
        return Rows(tuple(column.name for column in columns), rows)

    def _rows(self, session: Any, columns: list[_Column]) -> list[Row]:
        readers = [reader_of(column.column_type) for column in columns]
        rows: list[Row] = []
        self._collect_rows(rows, self._fetch_rows(session, readers))
        return rows

    def _fetch_rows(self, session: Any, readers: list[Reader]) -> Iterator[Row]:
        while True:
            batch = session.fetchmany(_ROWS_PER_FETCH)
            if not batch:
                return
            for row in batch:
                cells = zip(row, readers, strict=True)
                yield tuple(self._count_cell(reader(value)) for value, reader in cells)

    def _count_cell(self, cell: Value) -> Value:
        if isinstance(cell, str):
            self._count_bytes(len(cell) if cell.isascii() else len(cell.encode("utf-8", "replace")))
        elif isinstance(cell, bytes):
            self._count_bytes(len(cell))
        return cell

    def _failure(self, error: Exception) -> Failure:
        if self._alarm.has_rung and isinstance(error, duckdb.InterruptException):
            return self._timeout()
        if isinstance(error, duckdb.OutOfMemoryException):
            return OUT_OF_MEMORY
        if isinstance(error, duckdb.InternalException | duckdb.FatalException):
            self.close()  # the instance cannot be used any more
        return failure_of("error", error)

    def _database(self, path: str) -> _Database:
        """Return the open database; of more than a few, the one used least recently is closed."""
        if path not in self._databases:
            if len(self._databases) >= _MAX_OPEN_FILES:
                _, oldest = self._databases.popitem(last=False)
                oldest.connection.close()
            self._databases[path] = self._open_database(path)
        self._databases.move_to_end(path)
        return self._databases[path]

    def _open_database(self, path: str) -> _Database:
        try:
            connection = duckdb.connect(path, read_only=True, config=_config(self.limits))
        except duckdb.Error as error:
            raise UnavailableError(
                f"{path}: DuckDB {duckdb.__version__} cannot open it ({error})"
            ) from None
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        refused = self._refused_functions(connection)
        connection.execute("SET lock_configuration = true")
        return _Database(connection, refused)

    def _refused_functions(self, connection: Any) -> _Functions:
        """Return the functions that no query may call, and the macros that call one of them.

        The database's own macros are among them.
        """
        in_expressions = set(_REVEALING)
        in_from: set[str] = set()
        trusted_in_expressions: set[str] = set()
        macros: list[_Macro] = []
        functions = connection.execute(_FUNCTIONS_AND_MACROS).fetchall()
        for name, is_table, is_untrusted, definition in functions:
            if definition is not None:
                macros.append(_Macro(name, is_table, definition))
            if is_untrusted and name not in _TRUSTED:
                refused_names = in_from if is_table else in_expressions
                refused_names.add(name)
            elif not is_table:
                trusted_in_expressions.add(name)
        while True:  # until no macro calls one that is refused
            # A name that is no function in expressions cannot be called there.
            anywhere = in_expressions | (in_from - trusted_in_expressions)
            refused = _Functions(frozenset(anywhere), frozenset(in_from))
            size = len(in_expressions) + len(in_from)
            for macro in macros:
                if self._calls_any(connection, macro, refused):
                    refused_names = in_from if macro.is_table else in_expressions
                    refused_names.add(macro.name)
            if len(in_expressions) + len(in_from) == size:
                return refused

    def _calls_any(self, connection: Any, macro: _Macro, functions: _Functions) -> bool:
        """Return whether a macro calls one of the functions."""
        text = macro.definition.lower()
        names = functions.anywhere | functions.in_from
        if not any(name in text for name in names):  # almost all macros: parsing takes longer
            return False
        return bool(self._calls_of(connection, macro.definition).shared_with(functions))

    def _calls_of(self, connection: Any, definition: str) -> _Functions:
        """Return the functions that a macro calls; most are DuckDB's own, in all databases."""
        if definition not in self._macro_calls:
            self._macro_calls[definition] = _calls(_tree(connection, definition))
        return self._macro_calls[definition]


def _config(limits: Limits) -> dict[str, str | int]:
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


def _check(session: Any, sql: str, refused: _Functions) -> None:
    """Raise ValueError unless the text is one SELECT that calls trusted functions only.

    DuckDB's own parser reads it.
    """
    statements = session.extract_statements(sql)
    if not statements:
        raise ValueError(NO_RESULT)
    if len(statements) > 1:
        raise ValueError(SEVERAL_STATEMENTS)
    if statements[0].type != duckdb.StatementType.SELECT or is_no_select(sql):
        raise ValueError(NOT_AUTHORIZED)
    tree = _tree(session, sql)
    if tree.startswith('{"error":true'):
        raise ValueError(NOT_AUTHORIZED)
    functions = _calls(tree).shared_with(refused)
    if functions:
        raise ValueError(
            f"the function {functions[0]} is not allowed: it can do more than compute a value from "
            "its arguments"
        )
    views = sorted(_names(_TABLE_IN_TREE, tree) & _REVEALING_VIEWS)
    if views:
        raise ValueError(f"the view {views[0]} is not allowed: it shows settings or paths")


def _tree(session: Any, sql: str) -> str:
    """Return a query's syntax tree as JSON; an error of the parser is JSON, too."""
    (tree,) = session.execute("SELECT json_serialize_sql($1)", [sql]).fetchone()
    return str(tree)


def _calls(tree: str) -> _Functions:
    """Return the functions that a query calls."""
    return _Functions(_names(_CALL_IN_TREE, tree), _names(_TABLE_CALL_IN_TREE, tree))


def _names(pattern: re.Pattern[str], tree: str) -> frozenset[str]:
    """Return what a pattern's last group finds in a syntax tree, in lower case."""
    names = [match[match.re.groups] for match in pattern.finditer(tree)]
    return frozenset(json.loads(f'"{name}"').lower() for name in names)


def _cast_to_texts(session: Any, sql: str, columns: list[_Column], text_columns: list[bool]) -> str:
    """Return the query with some of its columns as the texts that DuckDB itself makes of them."""
    # Without a semicolon and what may follow it.
    clean = "SELECT json_deserialize_sql(json_serialize_sql($1))"
    (query,) = session.execute(clean, [sql]).fetchone()
    expressions = []
    for index, (column, as_text) in enumerate(zip(columns, text_columns, strict=True)):
        name = f"column{index}"
        if as_text:
            expressions.append(f"CAST({name} AS {text_type(column.column_type)})")
        else:
            expressions.append(name)
    names = ", ".join(f"column{index}" for index in range(len(columns)))
    return f"SELECT {', '.join(expressions)} FROM ({query}) AS results({names})"
