"""Hostile queries, or ones that look hostile, for DuckDB and PostgreSQL, and their statuses.

The gold is ``SELECT count(*) FROM people``, which is 3.
"""

from typing import NamedTuple

from lm_eval_ext.sql import Executor

ERROR, LATE, LARGE = ("prediction_error",), ("prediction_timeout",), ("prediction_too_large",)
STOPPED = LATE + LARGE
WRONG, RIGHT = ("wrong",), ("correct",)

PEOPLE = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name VARCHAR, age INTEGER, pay DOUBLE PRECISION);
INSERT INTO people VALUES (1, 'Ada', 36, 10.5), (2, 'Bob', 36, 20.25), (3, 'Cy', NULL, NULL);
CREATE TABLE pets (id INTEGER PRIMARY KEY, owner INTEGER REFERENCES people(id), kind VARCHAR);
INSERT INTO pets VALUES (1, 1, 'cat'), (2, 1, 'dog'), (3, 3, 'owl');
CREATE VIEW adults AS SELECT * FROM people WHERE age > 30;
CREATE SEQUENCE ticket;
"""


class Case(NamedTuple):
    name: str
    sql: str
    statuses: tuple[str, ...]

    @property
    def can_be_late(self) -> bool:
        """Such a query ends on no machine: a short limit of time tells it from the others."""
        return "prediction_timeout" in self.statuses


def cases(*tables: tuple[dict[str, str], tuple[str, ...]]) -> list[Case]:
    return [Case(name, sql, statuses) for table, statuses in tables for name, sql in table.items()]


_UP = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT (x + 1) % 1000 FROM r)"
_ENDLESS = ", ".join(f"generate_series(1, 99) g{i}(x{i})" for i in range(7))

_BOTH_WRITING = {
    "insert": "INSERT INTO people VALUES (9, 'x', 1, 1)",
    "insert returning": "INSERT INTO people VALUES (9, 'x', 1, 1) RETURNING 3",
    "update": "UPDATE people SET age = 0 RETURNING 3",
    "delete": "DELETE FROM people RETURNING 3",
    "delete behind with": "WITH x AS (SELECT 1) DELETE FROM pets",
    "truncate": "TRUNCATE pets",
    "drop table": "DROP TABLE pets",
    "drop cascade": "DROP TABLE people CASCADE",
    "alter": "ALTER TABLE people ADD COLUMN x INTEGER",
    "create table": "CREATE TABLE stolen (a INTEGER)",
    "create table as": "CREATE TABLE stolen AS SELECT * FROM people",
    "create temp table": "CREATE TEMP TABLE stolen AS SELECT 1 AS a",
    "create temp view": "CREATE TEMP VIEW people AS SELECT 3",
    "create schema": "CREATE SCHEMA stolen",
    "create index": "CREATE INDEX stolen ON people (age)",
    "nextval": "SELECT nextval('ticket')",
    "setseed": "SELECT setseed(0.5)",
    "begin": "BEGIN",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "two statements": "SELECT count(*) FROM people; DROP TABLE pets",
    "two queries": "SELECT count(*) FROM people; SELECT count(*) FROM people",
    "commit between": "SELECT 3; COMMIT; DROP TABLE pets",
    "explain": "EXPLAIN SELECT count(*) FROM people",
    "explain analyze": "EXPLAIN ANALYZE DELETE FROM people",
    "prepare": "PREPARE stolen AS SELECT 3",
    "execute": "EXECUTE stolen",
    "copy to a file": "COPY people TO '{folder}/stolen.csv'",
    "copy from a file": "COPY people FROM '/etc/passwd'",
    "empty": "",
    "comment": "-- SELECT count(*) FROM people",
    "semicolon": ";",
    "prose": "Sure! Here is the query you asked for:",
    "fence": "```sql\nSELECT count(*) FROM people\n```",
    "nul": "SELECT count(*) FROM people\0; DROP TABLE pets",
    "lone surrogate": "SELECT '\ud800'",
    "open string": "SELECT 'x",
    "parameter": "SELECT $1",
}
_BOTH_DEEP = {
    "deep parentheses": "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
    "deep not": "SELECT " + "NOT " * 20_000 + "true",
}
_BOTH_SLOW = {
    "endless recursion": f"{_UP} SELECT count(*) FROM r WHERE x < 0",
    "cross join": f"SELECT count(*) FROM {_ENDLESS}",
}
_BOTH_LARGE = {
    "endless rows": "SELECT * FROM generate_series(1, 100000000)",
    "wide": "SELECT " + ", ".join(["1"] * 1_000),
    "long text": "SELECT repeat('x', 2000000)",
    "rows of long texts": "SELECT repeat('x', 900000) FROM generate_series(1, 1000)",
    "1 MB of comment": "SELECT count(*) FROM people --" + "x" * 1_000_000,
}
_BOTH_WIDE = {"row of long texts": "SELECT " + ", ".join(["repeat('x', 900000)"] * 200)}
_BOTH_HARMLESS = {
    "an empty result": "SELECT * FROM people WHERE false",
    "a null": "SELECT max(age) FROM people WHERE false",
    "random": "SELECT random()",
    "not a number": "SELECT CAST('NaN' AS DOUBLE PRECISION)",
    "identifier with quotes": 'SELECT 1 AS "x""; DROP TABLE people; --"',
    "a word in a text": "SELECT 'COPY people TO PROGRAM'",
}
_BOTH_RIGHT = {
    "final semicolon": "SELECT count(*) FROM people;",
    "comments": "/* a */ SELECT -- b\n count(*) FROM people -- c",
    "values": "VALUES (3)",
    "with": "WITH p AS (SELECT * FROM people) SELECT count(*) FROM p",
    "a decimal": "SELECT CAST(3 AS DECIMAL(10, 2))",
    "a view": "SELECT count(*) + 1 FROM adults",
    "unnest": "SELECT count(*) FROM unnest(ARRAY[1, 2, 3])",
}
_BOTH = (
    (_BOTH_WRITING, ERROR),
    (_BOTH_SLOW, LATE),
    (_BOTH_LARGE, STOPPED),
    (_BOTH_DEEP, ERROR + STOPPED),
    (_BOTH_WIDE, STOPPED),
    (_BOTH_HARMLESS, WRONG),
    (_BOTH_RIGHT, RIGHT),
)

_DUCKDB_BEYOND = {
    "attach": "ATTACH '{folder}/stolen.duckdb'",
    "attach sqlite": "ATTACH '{folder}/stolen.sqlite' (TYPE sqlite)",
    "detach": "DETACH people",
    "use": "USE memory",
    "export": "EXPORT DATABASE '{folder}/stolen'",
    "import": "IMPORT DATABASE '{folder}'",
    "install": "INSTALL httpfs",
    "load": "LOAD httpfs",
    "load a file": "LOAD '/tmp/evil.duckdb_extension'",
    "set threads": "SET threads = 8",
    "set memory": "SET memory_limit = '100GB'",
    "set external access": "SET enable_external_access = true",
    "unlock": "SET lock_configuration = false",
    "reset": "RESET memory_limit",
    "set variable": "SET VARIABLE x = 3",
    "pragma": "PRAGMA database_list",
    "pragma that writes": "PRAGMA enable_profiling = 'json'",
    "checkpoint": "CHECKPOINT",
    "force checkpoint": "SELECT * FROM force_checkpoint()",
    "vacuum": "VACUUM",
    "call": "CALL pragma_version()",
    "create macro": "CREATE MACRO stolen(x) AS x",
    "create secret": "CREATE SECRET stolen (TYPE s3)",
    "read_csv": "SELECT * FROM read_csv('/etc/passwd')",
    "read_text": "SELECT content FROM read_text('/etc/passwd')",
    "read_blob": "SELECT * FROM read_blob('/etc/passwd')",
    "read_parquet": "SELECT * FROM read_parquet('{folder}/*.parquet')",
    "read_json": "SELECT * FROM read_json('/etc/passwd')",
    "read_duckdb": "SELECT * FROM read_duckdb('{folder}/people.duckdb')",
    "a file as a table": "SELECT * FROM '/etc/passwd'",
    "a csv file as a table": 'FROM "/etc/hosts.csv"',
    "a url": "SELECT * FROM 'https://example.org/a.parquet'",
    "a bucket": "SELECT * FROM read_parquet('s3://bucket/a.parquet')",
    "glob": "SELECT * FROM glob('/etc/*')",
    "sniff": "SELECT * FROM sniff_csv('/etc/passwd')",
    "a query in a text": "FROM query('SELECT ' || '3')",
    "a query as json": "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 3'))",
    "a table's name in a text": "SELECT * FROM query_table('people')",
    "an address in memory": "SELECT * FROM arrow_scan(1234, 5678, 9012)",
    "a frame": "SELECT * FROM pandas_scan(1234)",
    "a python variable": "SELECT * FROM limits",
    "a python module's variable": "SELECT * FROM jobs",
    "getenv": "SELECT getenv('HOME')",
    "logging": "SELECT * FROM enable_logging('QueryLog', storage_path = '{folder}/stolen')",
    "write_log": "SELECT write_log('stolen')",
    "profiling": "SELECT * FROM enable_profiling()",
    "secrets": "SELECT * FROM duckdb_secrets()",
    "qualified": "SELECT main.sleep_ms(1)",
    "as a method": "SELECT 1.sleep_ms()",
    "in capitals and quotes": 'SELECT "SLEEP_MS"(1)',
    "in a lambda": "SELECT list_transform([1], lambda x: sleep_ms(x))",
    "the file's path": "FROM duckdb_databases",
    "the file's path in a subquery": 'SELECT (SELECT max(path) FROM main."DuckDB_Databases")',
    "the list of databases": "SELECT file FROM pragma_database_list",
    "sleep": "SELECT sleep_ms(60000)",
    "setval": "SELECT setval('ticket', 7)",
    "pivot that needs several statements": "PIVOT pets ON kind USING count(*)",
}
_DUCKDB_SLOW = {
    "repeated comparison": "SELECT sum(levenshtein(CAST(x0 AS VARCHAR), CAST(x1 AS VARCHAR))) "
    f"FROM {_ENDLESS}",
}
_DUCKDB_UNSTOPPABLE = {
    "one long call": "SELECT levenshtein(repeat('ab', 400000), repeat('ba', 400000))",
}
_DUCKDB_LARGE = {
    "repeat": "SELECT length(repeat('x', 2000000000))",
    "string_agg": "SELECT length(string_agg(x, '')) FROM (SELECT repeat('x', 100000) AS x FROM "
    "generate_series(1, 100000))",
    "list": "SELECT len(list(x)) FROM range(1000000000) t(x)",
    "distinct": "SELECT count(DISTINCT x) FROM range(1000000000) t(x)",
    "sort": "SELECT x FROM range(1000000000) t(x) ORDER BY hash(x)",
    "long list": "SELECT range(100000000)",
}
DUCKDB = cases(
    *_BOTH,
    (_DUCKDB_BEYOND, ERROR),
    (_DUCKDB_SLOW, LATE),
    (_DUCKDB_UNSTOPPABLE, LATE),
    (_DUCKDB_LARGE, STOPPED),
    (
        {
            "settings": "SELECT value FROM duckdb_settings WHERE name = 'threads'",
            "bits": "SELECT [1, 2], MAP {'a': 1}, INTERVAL 1 DAY, DATE '2020-01-01'",
        },
        WRONG + ERROR,
    ),
    ({"from first": "FROM people SELECT count(*)"}, RIGHT),
)

_POSTGRESQL_BEYOND = {
    "copy to a program": "COPY people TO PROGRAM 'touch {folder}/stolen'",
    "copy from a program": "COPY people FROM PROGRAM 'id'",
    "copy to stdout": "COPY people TO STDOUT",
    "do": "DO $$ BEGIN PERFORM pg_sleep(9); EXCEPTION WHEN query_canceled THEN NULL; END $$",
    "call": "CALL nothing()",
    "pg_read_file": "SELECT pg_read_file('/etc/passwd')",
    "pg_read_binary_file": "SELECT pg_read_binary_file('PG_VERSION')",
    "pg_ls_dir": "SELECT pg_ls_dir('/')",
    "pg_stat_file": "SELECT * FROM pg_stat_file('/etc/passwd')",
    "lo_import": "SELECT lo_import('/etc/passwd')",
    "lo_export": "SELECT lo_export(1, '{folder}/stolen')",
    "lo_create": "SELECT lo_create(0)",
    "lo_from_bytea": "SELECT lo_from_bytea(0, 'x')",
    "dblink": "SELECT * FROM dblink('dbname=people', 'DROP TABLE pets') t(a text)",
    "dblink_exec": "SELECT dblink_exec('dbname=people user=admin', 'DROP TABLE pets')",
    "pg_sleep": "SELECT pg_sleep(60)",
    "pg_sleep in quotes": 'SELECT pg_catalog."pg_sleep"(60)',
    "pg_sleep behind a comment": "SELECT pg_sleep/* */(60)",
    "pg_sleep behind an escape": "SELECT E'\\'', pg_sleep(60) --'",
    "pg_sleep behind dollars": "SELECT $$'$$, pg_sleep(60) --'",
    "pg_sleep in escapes": 'SELECT U&"\\0070g_sleep"(60)',
    "pg_sleep_for": "SELECT pg_sleep_for('1 minute')",
    "advisory lock": "SELECT pg_advisory_lock(1)",
    "advisory try lock": "SELECT pg_try_advisory_lock(2)",
    "advisory transaction lock": "SELECT pg_advisory_xact_lock(3)",
    "lock table": "LOCK TABLE people IN ACCESS EXCLUSIVE MODE",
    "select for update": "SELECT count(*) FROM (SELECT * FROM people FOR UPDATE) p",
    "select for share": "SELECT * FROM people FOR SHARE",
    "select into": "SELECT * INTO stolen FROM people",
    "select into temp": "SELECT * INTO TEMP stolen FROM people",
    "write in with": "WITH x AS (DELETE FROM people RETURNING 3) SELECT * FROM x",
    "set timeout": "SET statement_timeout = 0",
    "set local": "SET LOCAL statement_timeout = 0",
    "set_config": "SELECT set_config('statement_timeout', '0', false)",
    "set read write": "SET TRANSACTION READ WRITE",
    "set role": "SET ROLE admin",
    "set session authorization": "SET SESSION AUTHORIZATION admin",
    "reset": "RESET ALL",
    "discard": "DISCARD ALL",
    "show": "SHOW data_directory",
    "alter system": "ALTER SYSTEM SET fsync = off",
    "alter role": "ALTER ROLE reader SUPERUSER",
    "grant": "GRANT ALL ON people TO reader",
    "create role": "CREATE ROLE stolen",
    "create function": "CREATE FUNCTION stolen() RETURNS int LANGUAGE sql AS 'SELECT 3'",
    "create extension": "CREATE EXTENSION dblink",
    "load": "LOAD 'dblink'",
    "vacuum": "VACUUM people",
    "checkpoint": "CHECKPOINT",
    "listen": "LISTEN x",
    "notify": "NOTIFY x",
    "pg_notify": "SELECT pg_notify('x', 'y')",
    "message to the log": "SELECT pg_logical_emit_message(false, 'x', 'y')",
    "terminate the others": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
    "cancel the others": "SELECT pg_cancel_backend(pid) FROM pg_stat_activity",
    "export a snapshot": "SELECT pg_export_snapshot()",
    "query_to_xml": "SELECT query_to_xml('SELECT 1', true, true, '')",
    "cursor_to_xml": "SELECT cursor_to_xml('lm_eval_ext', 9, true, true, '')",
    "ts_stat": "SELECT * FROM ts_stat('SELECT ''a''::tsvector')",
    "fetch": "FETCH ALL FROM lm_eval_ext",
    "close": "CLOSE lm_eval_ext",
    "a cursor of its own": "DECLARE c CURSOR FOR SELECT 1",
    "passwords": "SELECT rolpassword FROM pg_authid",
    "a table without the right": "SELECT * FROM wages",
    "an owner's function": "SELECT raise_pay()",
    "an owner's function as a field": "SELECT (p).pay_of FROM people p",
    "a function with the owner's rights": "SELECT wage_sum ()",
    "a function with the owner's rights in quotes": 'SELECT "wage_sum"/* */()',
    "numbers": "SELECT 1 WHERE 1 = ANY (ARRAY[1]) FETCH FIRST x ROWS ONLY",
}
_POSTGRESQL_SLOW = {
    "regular expression": f"SELECT count(*) FROM {_ENDLESS} WHERE "
    "repeat('ab', 300) || concat(x0, x1, x2, x3, x4, x5, x6) ~ '(.)(.)(.).*\\3\\2\\1c'",
    "trigonometry": f"SELECT sum(sqrt(x0) * sin(x1)) FROM {_ENDLESS}",
}
_POSTGRESQL_LARGE = {
    "repeat": "SELECT length(repeat('x', 1073741000))",
    "format": "SELECT length(format('%1000000000s', 'x'))",
    "too long": "SELECT repeat('x', 2000000000)",
    "string_agg": "SELECT length(string_agg(repeat('x', 1000000), '')) FROM generate_series(1, "
    "10000)",
    "array_agg": "SELECT array_length(array_agg(repeat('x', 100000)), 1) FROM generate_series(1, "
    "100000)",
}
POSTGRESQL = cases(
    *_BOTH,
    (_POSTGRESQL_BEYOND, ERROR),
    (_POSTGRESQL_SLOW, LATE),
    (_POSTGRESQL_LARGE, STOPPED),
    (
        {
            "other sessions": "SELECT count(*) + 100 FROM pg_stat_activity",
            "a catalogue": "SELECT count(*) FROM pg_class",
            "large objects' catalogue": "SELECT count(*) FROM pg_largeobject_metadata",
        },
        WRONG,
    ),
    (
        {
            "a stable function of the owner": "SELECT head_count()",
            "a sample": "SELECT count(*) FROM people TABLESAMPLE system (100)",
            "a column named like nothing else": "SELECT count(*) FROM people AS system",
        },
        RIGHT,
    ),
)

STRICT = (
    ("SELECT age FROM people ORDER BY age", "SELECT age FROM people ORDER BY age, id DESC",
     "SELECT age FROM people ORDER BY age NULLS FIRST"),
    ("SELECT name FROM people ORDER BY age LIMIT 1",
     "SELECT max(name) FROM people WHERE age = 36", "SELECT 'Cy'"),
    ("SELECT sum(pay) FROM people", "SELECT 20.25 + 10.5", "SELECT 30.7"),
    ("SELECT 1234567890.01", "SELECT CAST(1234567890.010 AS DECIMAL(20, 3))",
     "SELECT 1234567890.02"),
    ("SELECT CAST('123456789012345.67' AS DECIMAL(20, 2))", "SELECT 123456789012345.670",
     "SELECT CAST('123456789012345.68' AS DECIMAL(20, 2))"),
    ("SELECT CAST(0.1 AS DOUBLE PRECISION)", "SELECT 0.1", "SELECT 0.1001"),
    ("SELECT CAST(1e-13 AS DOUBLE PRECISION)", "SELECT CAST(1e-13 AS DOUBLE PRECISION) * 1",
     "SELECT CAST(2e-13 AS DOUBLE PRECISION)"),
    ("SELECT E'it\\'s ORDER BY y', x FROM (VALUES (1), (2)) t(x)",
     "SELECT 'it''s ORDER BY y', x FROM (VALUES (2), (1)) t(x)", "SELECT 'it', 1"),
    ("SELECT $$ ORDER BY $$, x FROM (VALUES (1), (2)) t(x)",
     "SELECT ' ORDER BY ', x FROM (VALUES (2), (1)) t(x)", "SELECT ' ORDER BY ', 1"),
    ("SELECT DATE '2020-01-01'", "SELECT TIMESTAMP '2020-01-01 00:00'", "SELECT '2020'"),
)  # fmt: skip
"""A gold, another query with its result, and one with another."""


def check_strict(executor: Executor, gold: str, right: str, wrong: str) -> None:
    asked = [("people", gold, right), ("people", gold, wrong)]
    statuses = executor.score(asked, semantics="strict")
    assert [one.status for one in statuses] == ["correct", "wrong"]
