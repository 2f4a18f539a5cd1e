"""The tables of DuckDB and PostgreSQL databases as prompts show them.

All is read by queries of our own that run like a model's, in a worker process and as the same role:
so prompts show what queries can read, and nothing else.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.executor import Executor
from lm_eval_ext.sql.values import EngineName, Place, QueryError, quoted

_Columns = list[str]


@dataclass(frozen=True)
class Described:
    """A table or view.

    Attributes:
        name: As a query of the dialect spells it.
        create: The statement that creates it, without a semicolon.
        header: The names of its columns.
        rows: The values of its first rows, as the engine itself writes them as text.
    """

    name: str
    create: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def described(executor: Executor, place: Place, rows: int) -> tuple[Described, ...]:
    """Describes the tables and views that a query can read, in the order of creation.

    A view that does not work, or not within the limits, is left out.

    Args:
        executor: Runs the queries.
        place: A database of DuckDB or PostgreSQL.
        rows: How many rows of each.

    Raises:
        DataError: The database cannot be used, or has no table.
    """

    def ask(sql: str) -> list[tuple[Any, ...]]:
        return executor.query(place, sql).rows

    found = []
    for name, create, columns in _LISTED[place.engine](ask):
        shown = ", ".join(f"CAST({quoted(column)} AS text)" for column in columns)
        try:
            first = ask(f"SELECT {shown} FROM {name} LIMIT {rows}")
        except QueryError:
            continue
        found.append(Described(name, create, tuple(columns), tuple(first)))
    if not found:
        raise DataError(f"{place}: there is no table that can be read")
    return tuple(found)


_Ask = Callable[[str], list[tuple[Any, ...]]]
_Listed = Iterator[tuple[str, str, _Columns]]

_DUCKDB_NAME = re.compile(r'CREATE (?:\w+ )?(?:TABLE|VIEW) ((?:"(?:[^"]|"")*"|[^\s("])+)')


def _of_duckdb(ask: _Ask) -> _Listed:
    columns: dict[int, _Columns] = {}
    for table, column in ask(
        "SELECT table_oid, column_name FROM duckdb_columns WHERE NOT internal "
        "ORDER BY table_oid, column_index"
    ):
        columns.setdefault(table, []).append(column)
    for number, create in ask(
        "SELECT table_oid, sql FROM duckdb_tables WHERE NOT internal UNION ALL "
        "SELECT view_oid, sql FROM duckdb_views WHERE NOT internal ORDER BY 1"
    ):
        if name := _DUCKDB_NAME.match(create):
            yield name[1], create.rstrip("; \n"), columns[number]


_RELATIONS = """
SELECT c.oid, CASE WHEN pg_table_is_visible(c.oid) THEN quote_ident(c.relname)
              ELSE format('%I.%I', n.nspname, c.relname) END,
       CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END,
       CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid, true) END,
       a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
  AND (pg_table_is_visible(c.oid) OR NOT EXISTS (
    SELECT FROM pg_settings WHERE name = 'search_path' AND source = 'client'))
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                  AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.oid, a.attnum
"""
"""Where the URL itself names a search path, only what that finds."""

_CONSTRAINTS = """
SELECT conrelid, pg_get_constraintdef(oid, true) FROM pg_constraint
WHERE contype IN ('p', 'u', 'f', 'c') AND conrelid <> 0
ORDER BY conrelid, position(contype::text IN 'pufc'), conname
"""


def _of_postgresql(ask: _Ask) -> _Listed:
    constraints: dict[int, list[str]] = {}
    for table, text in ask(_CONSTRAINTS):
        constraints.setdefault(table, []).append(text)
    tables: dict[int, tuple[str, str, str | None, _Columns, list[str]]] = {}
    for table, name, kind, view, column, declared, not_null in ask(_RELATIONS):
        *_, columns, lines = tables.setdefault(table, (name, kind, view, [], []))
        columns.append(column)
        spelt = column if re.fullmatch(r"[a-z_][a-z0-9_]*", column) else quoted(column)
        lines.append(f"{spelt} {declared}{' NOT NULL' if not_null else ''}")
    for table, (name, kind, view, columns, lines) in tables.items():
        parts = ",\n".join(f"    {line}" for line in (*lines, *constraints.get(table, ())))
        body = f"(\n{parts}\n)" if view is None else f"AS\n{view.rstrip('; ')}"
        yield name, f"CREATE {kind} {name} {body}", columns


_LISTED: Mapping[EngineName, Callable[[_Ask], _Listed]] = MappingProxyType(
    {"duckdb": _of_duckdb, "postgresql": _of_postgresql}
)


_ROW = "lm_eval_ext_row"
"""An alias that no column has, since it would mean that column."""


def digest_text(executor: Executor, place: Place) -> str:
    """A text that changes if a table's declaration or rows do, for signatures; of PostgreSQL.

    Rows are summed up by hashes, in any order. What takes longer than the limit of time is said
    to be unknown, so that the declarations alone decide.
    """
    parts = []
    for one in described(executor, place, 0):
        parts.append(one.create)
        if not one.create.startswith("CREATE TABLE"):
            continue
        try:
            row = f"hashtextextended(CAST({_ROW} AS text), 0)"
            sums = executor.query(
                place, f"SELECT count(*), sum(CAST({row} AS numeric)) FROM {one.name} {_ROW}"
            ).rows
        except QueryError:
            sums = []
        parts.append(repr(sums))
    return "\n".join(parts)
