"""The tables of DuckDB and PostgreSQL databases as prompts show them.

Everything is read by queries of our own that run like a model's, in a worker process and as the
same role: so prompts show what queries can read, and nothing else.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.executor import Executor
from lm_eval_ext.sql.values import EngineName, Place, QueryError, quoted

_Rows = Sequence[tuple[Any, ...]]
"""Rows of an engine's catalogue."""

_RunQuery = Callable[[str], _Rows]


@dataclass(frozen=True)
class TableDescription:
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
    rows: tuple[tuple[str | None, ...], ...] = ()


def describe_tables(
    executor: Executor, location: Place, row_count: int
) -> tuple[TableDescription, ...]:
    """Describe the tables and views that a query can read, in the order of creation.

    A view that does not work, or not within the limits, is left out.

    Args:
        executor: Runs the queries.
        location: A database of DuckDB or PostgreSQL.
        row_count: How many rows of each.

    Raises:
        DataError: The database cannot be used, or has no table.
    """

    def run(sql: str) -> _Rows:
        return executor.query(location, sql).rows

    descriptions = []
    for table in _CATALOGUES[location.engine](run):
        texts = ", ".join(f"CAST({quoted(column)} AS text)" for column in table.header)
        try:
            rows = run(f"SELECT {texts} FROM {table.name} LIMIT {row_count}")
        except QueryError:
            continue
        descriptions.append(replace(table, rows=tuple(rows)))
    if not descriptions:
        raise DataError(f"{location}: there is no table that can be read")
    return tuple(descriptions)


_DUCKDB_NAME = re.compile(r'CREATE (?:\w+ )?(?:TABLE|VIEW) ((?:"(?:[^"]|"")*"|[^\s("])+)')


def _duckdb_tables(run: _RunQuery) -> Iterator[TableDescription]:
    columns: dict[int, list[str]] = {}
    for table, column in run(
        "SELECT table_oid, column_name FROM duckdb_columns WHERE NOT internal "
        "ORDER BY table_oid, column_index"
    ):
        columns.setdefault(table, []).append(column)
    for table, create in run(
        "SELECT table_oid, sql FROM duckdb_tables WHERE NOT internal UNION ALL "
        "SELECT view_oid, sql FROM duckdb_views WHERE NOT internal ORDER BY 1"
    ):
        name = _DUCKDB_NAME.match(create)
        if name is not None:
            yield TableDescription(name[1], create.rstrip("; \n"), tuple(columns[table]))


_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
"""The names that prompts show without quotes."""

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


@dataclass
class _Relation:
    """A table or view of PostgreSQL's catalogue.

    Attributes:
        name: As a query spells it.
        kind: What follows CREATE.
        query: A view's query; None: a table.
        columns: The names of its columns.
        lines: The declarations of its columns and constraints.
    """

    name: str
    kind: str
    query: str | None
    columns: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def described(self) -> TableDescription:
        """Return it with the statement that creates it."""
        if self.query is None:
            body = "(\n" + ",\n".join(f"    {line}" for line in self.lines) + "\n)"
        else:
            body = f"AS\n{self.query.rstrip('; ')}"
        create = f"CREATE {self.kind} {self.name} {body}"
        return TableDescription(self.name, create, tuple(self.columns))


def _postgresql_tables(run: _RunQuery) -> Iterator[TableDescription]:
    constraints = run(_CONSTRAINTS)
    relations: dict[int, _Relation] = {}
    for number, name, relation_type, query, column, declared, not_null in run(_RELATIONS):
        relation = relations.setdefault(number, _Relation(name, relation_type, query))
        relation.columns.append(column)
        spelled = column if _PLAIN_NAME.fullmatch(column) else quoted(column)
        line = f"{spelled} {declared}"
        if not_null:
            line += " NOT NULL"
        relation.lines.append(line)
    for number, constraint in constraints:
        if number in relations:
            relations[number].lines.append(constraint)
    for relation in relations.values():
        yield relation.described()


_CATALOGUES: Mapping[EngineName, Callable[[_RunQuery], Iterator[TableDescription]]] = (
    MappingProxyType({"duckdb": _duckdb_tables, "postgresql": _postgresql_tables})
)


_ROW = "lm_eval_ext_row"
"""An alias that no column has, since it would mean that column."""


def digest_text(executor: Executor, location: Place) -> str:
    """Return a text that changes if a table's declaration or rows do, for signatures.

    It is for PostgreSQL alone. The hashes of rows are added up, so their order does not matter. If
    a table's rows take longer than the limit of time, only its declaration counts.
    """
    texts = []
    for table in describe_tables(executor, location, 0):
        texts.append(table.create)
        if table.create.startswith("CREATE TABLE"):
            texts.append(repr(_row_hashes(executor, location, table.name)))
    return "\n".join(texts)


def _row_hashes(executor: Executor, location: Place, table: str) -> _Rows:
    """Return the number of a table's rows and the sum of their hashes; nothing if unknown."""
    row_hash = f"hashtextextended(CAST({_ROW} AS text), 0)"
    try:
        return executor.query(
            location, f"SELECT count(*), sum(CAST({row_hash} AS numeric)) FROM {table} {_ROW}"
        ).rows
    except QueryError:
        return []
