"""What a database of DuckDB or PostgreSQL declares, of the schema that names without one mean."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lm_eval_ext.sql.schema import ForeignKey
from lm_eval_ext.sql.values import EngineName

Ask = Callable[[str], list[tuple[Any, ...]]]
"""Runs a query of ours."""


@dataclass(frozen=True)
class DeclaredColumn:
    """A column; ``labels`` are those of PostgreSQL's enumerations, as SQL.

    ``generated`` is the expression of a generated column, else "".
    """

    name: str
    type: str
    not_null: bool
    generated: str
    labels: str = ""


@dataclass
class DeclaredTable:
    """A table as its engine declares it; ``checks`` are conditions in its dialect."""

    name: str
    columns: list[DeclaredColumn] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    unique: list[tuple[str, ...]] = field(default_factory=list)
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Catalogue:
    """The tables and views of one schema, in the order of creation.

    ``views`` have the query by name, ``elsewhere`` the tables of other schemas, which a copy's
    rows cannot be searched for.
    """

    schema: str
    tables: Mapping[str, DeclaredTable]
    views: Mapping[str, str]
    elsewhere: tuple[str, ...]


_DUCKDB_COLUMNS = """
SELECT c.table_name, c.column_name, c.data_type, NOT c.is_nullable,
  CASE WHEN regexp_matches(t.sql, 'GENERATED ALWAYS AS\\(') AND c.column_default IS NOT NULL
    AND contains(t.sql, ' GENERATED ALWAYS AS(' || regexp_extract(c.column_default,
      '^CAST\\((.*) AS [^()]*(?:\\([^()]*\\))?\\)$', 1)) THEN c.column_default ELSE '' END, ''
FROM duckdb_columns c JOIN duckdb_tables t USING (table_oid)
WHERE NOT t.internal AND t.schema_name = current_schema() ORDER BY table_oid, c.column_index
"""
_DUCKDB_CONSTRAINTS = """
SELECT table_name, constraint_type, to_json(constraint_column_names), expression, referenced_table,
  to_json(referenced_column_names) FROM duckdb_constraints WHERE schema_name = current_schema()
  AND constraint_type <> 'NOT NULL' ORDER BY table_oid, constraint_index
"""
_DUCKDB_VIEWS = """
SELECT view_name, sql FROM duckdb_views WHERE NOT internal AND schema_name = current_schema()
ORDER BY view_oid
"""
_DUCKDB_ELSEWHERE = """
SELECT schema_name || '.' || table_name FROM duckdb_tables
WHERE NOT internal AND schema_name <> current_schema() ORDER BY 1
"""

_HERE = "c.relnamespace = to_regnamespace(quote_ident(current_schema()))"
_MAY = "has_table_privilege(c.oid, 'SELECT')"
_POSTGRESQL_COLUMNS = f"""
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
  CASE WHEN a.attgenerated = '' THEN '' ELSE (SELECT pg_get_expr(d.adbin, d.adrelid)
    FROM pg_attrdef d WHERE d.adrelid = c.oid AND d.adnum = a.attnum) END,
  coalesce((SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder)
    FROM pg_enum e WHERE e.enumtypid = a.atttypid), '')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition AND {_HERE} AND {_MAY}
ORDER BY c.oid, a.attnum
"""
_NAMES = """(SELECT json_agg(a.attname ORDER BY k.place) FROM unnest({0}) WITH ORDINALITY
  k(number, place) JOIN pg_attribute a ON a.attrelid = {1} AND a.attnum = k.number)"""
_POSTGRESQL_CONSTRAINTS = f"""
SELECT c.relname, CASE o.contype WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE'
    WHEN 'f' THEN 'FOREIGN KEY' ELSE 'CHECK' END,
  {_NAMES.format("o.conkey", "o.conrelid")}, pg_get_expr(o.conbin, o.conrelid),
  (SELECT f.relname FROM pg_class f WHERE f.oid = o.confrelid
    AND f.relnamespace = c.relnamespace), {_NAMES.format("o.confkey", "o.confrelid")}
FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid
WHERE o.contype IN ('p', 'u', 'f', 'c') AND {_HERE} ORDER BY c.oid, o.oid
"""
_POSTGRESQL_VIEWS = f"""
SELECT c.relname, pg_get_viewdef(c.oid) FROM pg_class c
WHERE c.relkind IN ('v', 'm') AND {_HERE} AND {_MAY} ORDER BY c.oid
"""
_POSTGRESQL_ELSEWHERE = f"""
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition AND n.nspname !~ '^pg_'
  AND n.nspname <> 'information_schema' AND NOT {_HERE}
  AND has_schema_privilege(n.oid, 'USAGE') AND {_MAY} ORDER BY 1
"""

_QUERIES: Mapping[EngineName, tuple[str, str, str, str]] = MappingProxyType(
    {
        "duckdb": (_DUCKDB_COLUMNS, _DUCKDB_CONSTRAINTS, _DUCKDB_VIEWS, _DUCKDB_ELSEWHERE),
        "postgresql": (
            _POSTGRESQL_COLUMNS, _POSTGRESQL_CONSTRAINTS, _POSTGRESQL_VIEWS, _POSTGRESQL_ELSEWHERE,
        ),
    }
)  # fmt: skip


def read(ask: Ask, engine: EngineName) -> Catalogue:
    """Reads what a query without schemas can see."""
    columns, constraints, views, elsewhere = _QUERIES[engine]
    ((schema,),) = ask("SELECT current_schema()")
    tables: dict[str, DeclaredTable] = {}
    for table, name, kind, not_null, generated, labels in ask(columns):
        made = tables.setdefault(table, DeclaredTable(table))
        made.columns.append(DeclaredColumn(name, kind, bool(not_null), generated, labels or ""))
    for table, kind, named, condition, parent, parents in ask(constraints):
        if table not in tables:
            continue
        names, made = tuple(json.loads(named or "[]")), tables[table]
        if kind == "PRIMARY KEY":
            made.primary_key = names
        elif kind == "UNIQUE":
            made.unique.append(names)
        elif kind == "CHECK":
            made.checks.append(str(condition))
        elif kind == "FOREIGN KEY" and parent is not None:
            made.foreign_keys.append(ForeignKey(names, parent, tuple(json.loads(parents))))
    return Catalogue(
        schema,
        tables,
        {name: _query(sql) for name, sql in ask(views)},
        tuple(str(name) for (name,) in ask(elsewhere)),
    )


def _query(view: str) -> str:
    """A view's query: DuckDB gives the statement that creates it."""
    begin, mark, query = view.partition(" AS ")
    created = mark and begin.lstrip().upper().startswith("CREATE")
    return (query if created else view).strip().rstrip(";")
