"""Hostile predictions, or ones that look hostile, and the status that each must get.

The gold is ``SELECT count(*) FROM people`` on the database of tests/sql/conftest.py; the limits
are TIGHT and PATIENT there. A query that must be late ends on no machine: it recurses without end,
or has more steps than can be counted. More than one status: which limit stops it first depends on
SQLite's version and on the machine.
"""

import sqlite3
from typing import NamedTuple

ERROR, LATE, LARGE = ("prediction_error",), ("prediction_timeout",), ("prediction_too_large",)
WRONG = ("wrong",)


class Case(NamedTuple):
    name: str
    sql: str
    statuses: tuple[str, ...]


_COUNT_UP = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r)"
_FIVE = "(SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4)"

# SQLite looks at the time every 4,000 instructions. Here each takes seconds, and reads a long text
# that ends in another way, so that none is computed once for all.
_LONG = (
    "SELECT 1 FROM (SELECT hex(zeroblob(490000)) AS h, hex(zeroblob(200000)) AS n LIMIT 1) WHERE"
)
_REPLACED = [f"replace(h, n || '{i}', '')" for i in range(1, 200)]
LATE_WITHOUT_STOPPING = f"{_LONG} {' + '.join(f'instr(h, n || {i})' for i in range(1, 200))}"

_WRITING = {
    "insert": "INSERT INTO people VALUES (9, 'x', 1, 1)",
    "insert returning": "INSERT INTO people(name) VALUES ('x') RETURNING count(*)",
    "insert or replace": "REPLACE INTO people VALUES (1, 'x', 1, 1)",
    "upsert": "INSERT INTO people(id) VALUES (1) ON CONFLICT DO UPDATE SET name = 'x'",
    "insert that fires a trigger": "INSERT INTO pets VALUES (9, 9, 'x')",
    "update": "UPDATE people SET age = 0",
    "update returning": "UPDATE people SET age = 0 RETURNING 6",
    "delete": "DELETE FROM people",
    "delete returning": "DELETE FROM people RETURNING 6",
    "delete behind with": "WITH x AS (SELECT 1) DELETE FROM people",
    "drop table": "DROP TABLE people",
    "drop if exists": "DROP TABLE IF EXISTS people",
    "drop view": "DROP VIEW adults",
    "drop trigger": "DROP TRIGGER watch",
    "alter rename": "ALTER TABLE people RENAME TO p",
    "alter add column": "ALTER TABLE people ADD COLUMN x",
    "create table": "CREATE TABLE x (a)",
    "create table as": "CREATE TABLE x AS SELECT * FROM people",
    "create temp table": "CREATE TEMP TABLE x (a)",
    "create temp view": "CREATE TEMP VIEW people AS SELECT 6",
    "create temp trigger": "CREATE TEMP TRIGGER t AFTER INSERT ON pets BEGIN SELECT 1; END",
    "create index": "CREATE INDEX i ON people(age)",
    "create virtual table": "CREATE VIRTUAL TABLE v USING fts5(a)",
    "reindex": "REINDEX",
    "analyze": "ANALYZE",
    "vacuum": "VACUUM",
    "write the schema table": "UPDATE sqlite_master SET sql = 'x'",
    "insert into the schema table": "INSERT INTO sqlite_schema VALUES ('table','x','x',0,'')",
}
_BEYOND = {
    "attach a file": "ATTACH 'stolen.sqlite' AS s",
    "attach memory": "ATTACH ':memory:' AS s",
    "attach by uri": "ATTACH 'file:stolen.sqlite?mode=rwc' AS s",
    "detach": "DETACH main",
    "vacuum into": "VACUUM INTO 'stolen.sqlite'",
    "explain vacuum into": "EXPLAIN ATTACH 'stolen.sqlite' AS s",
    "pragma": "PRAGMA user_version = 7",
    "pragma data_version with a value": "PRAGMA data_version = 1",
    "pragma writable_schema": "PRAGMA writable_schema = ON",
    "pragma writable_schema reset": "PRAGMA writable_schema = RESET",
    "pragma journal_mode": "PRAGMA journal_mode = WAL",
    "pragma query_only off": "PRAGMA query_only = OFF",
    "pragma heap limit": "PRAGMA hard_heap_limit = 0",
    "pragma temp_store_directory": "PRAGMA temp_store_directory = '/'",
    "pragma that reads": "PRAGMA table_info(people)",
    "pragma as a table": "SELECT * FROM pragma_table_info('people')",
    "pragma function with a side effect": "SELECT * FROM pragma_user_version",
    "load_extension": "SELECT load_extension('evil')",
    "load_extension with entry": "SELECT load_extension('evil', 'main')",
    "fts3_tokenizer": "SELECT hex(fts3_tokenizer('simple'))",
    "readfile": "SELECT readfile('/etc/hosts')",
    "writefile": "SELECT writefile('stolen', 'x')",
    "edit": "SELECT edit('x', 'vi')",
    "fsdir": "SELECT * FROM fsdir('/')",
    "csv": "SELECT * FROM csv('/etc/hosts')",
    "sqlite_log": "SELECT sqlite_log(1, 'x')",
    "dbstat": "SELECT * FROM dbstat",
    "sqlite_dbpage": "SELECT * FROM sqlite_dbpage",
    "begin": "BEGIN EXCLUSIVE",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "savepoint": "SAVEPOINT s",
    "release": "RELEASE s",
}
_SYNTAX = {
    "empty": "",
    "spaces": " \n\t ",
    "comment": "-- SELECT count(*) FROM people",
    "open comment": "/* SELECT count(*) FROM people",
    "semicolon": ";",
    "two statements": "SELECT count(*) FROM people; DROP TABLE people",
    "two queries": "SELECT count(*) FROM people; SELECT count(*) FROM people",
    "hidden second statement": "SELECT count(*) FROM people;/**/DELETE FROM people",
    "prose": "Sure! Here is the query you asked for:",
    "fence": "```sql\nSELECT count(*) FROM people\n```",
    "nul": "SELECT count(*) FROM people\0",
    "nul within": "SELECT '\0' FROM people",
    "only nul": "\0",
    "lone surrogate": "SELECT '\ud800'",
    "broken utf-8": b"SELECT '\xff\xfe'".decode("utf-8", "surrogateescape"),
    "open string": "SELECT 'x",
    "open identifier": 'SELECT "x',
    "parameter": "SELECT ?",
    "named parameter": "SELECT :x, @y, $z",
    "deep parentheses": "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
    "deep sum": "SELECT 1" + " + 1" * 20_000,
    "deep not": "SELECT " + "NOT " * 20_000 + "1",
    "deep subqueries": "SELECT * FROM " + "(SELECT * FROM " * 2_000 + "people" + ")" * 2_000,
    "long compound": "SELECT 1" + " UNION ALL SELECT 1" * 5_000,
    "wide": "SELECT " + ", ".join(["1"] * 3_000),
    "regexp": "SELECT name REGEXP '(a+)+$' FROM people",
    "like pattern of 10 kB": f"SELECT 'aaaa' LIKE '{'%a' * 5_000}b'",
    "join of 100 tables": "SELECT 1 FROM " + ", ".join(f"people p{i}" for i in range(100)),
}
_SLOW = {
    "endless recursion": f"{_COUNT_UP} SELECT count(*) FROM r",
    "endless recursion without rows": f"{_COUNT_UP} SELECT x FROM r WHERE x < 0",
    "endless union": (
        "WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT (x * 7 + 3) % 97 FROM r) "
        "SELECT count(*) FROM " + ", ".join(f"r r{i}" for i in range(30))
    ),
    "counted cross join": "SELECT count(*) FROM " + ", ".join(f"people p{i}" for i in range(40)),
    "cross join of subqueries": "SELECT max(1) FROM " + ", ".join([_FIVE] * 40),
    "correlated subqueries": (
        f"SELECT sum((SELECT count(*) FROM {', '.join(f'people b{i}' for i in range(30))} "
        "WHERE b0.age > a.age)) FROM people a, people x, people y"
    ),
    "endless window": f"{_COUNT_UP} SELECT sum(x) OVER (ORDER BY x) FROM r WHERE x < 0",
    "stdev of an endless series": f"{_COUNT_UP} SELECT stdev(x) FROM r",
    "long instructions": f"{_LONG} {' + '.join(f'length({x})' for x in _REPLACED)}",
    "text search": LATE_WITHOUT_STOPPING,
}
_ENDS_IN_TIME_OR_NOT = {"one long instruction": "SELECT printf('%.*c', 2000000000, 'x')"}
_LARGE = {
    "endless rows": f"{_COUNT_UP} SELECT x FROM r",
    "huge cross join": "SELECT * FROM people a, people b, people c, people d, people e, people f",
    "zeroblob": "SELECT zeroblob(2000000000)",
    "randomblob": "SELECT randomblob(1000000000)",
    "hex of zeroblob": "SELECT hex(zeroblob(900000))",
    "replace": "SELECT replace(hex(zeroblob(400000)), '0', 'xxxxxxxxxxxxxxxx')",
    "concatenation": (
        "WITH RECURSIVE r(x) AS (SELECT 'xxxx' UNION ALL SELECT x || x FROM r) SELECT x FROM r"
    ),
    "group_concat": f"{_COUNT_UP}, n AS (SELECT x FROM r LIMIT 900000) "
    "SELECT group_concat(x, ', ') FROM n",
    "json_group_array": f"{_COUNT_UP}, n AS (SELECT x FROM r LIMIT 900000) "
    "SELECT json_group_array(x) FROM n",
    "rows of large texts": f"{_COUNT_UP} SELECT hex(zeroblob(400000)) FROM r",
    "rows of large blobs": f"{_COUNT_UP} SELECT zeroblob(900000) FROM r",
    "row of large blobs": "SELECT " + ", ".join(["zeroblob(900000)"] * 200),
    "sorted large blobs": f"{_COUNT_UP} SELECT randomblob(900000) FROM (SELECT x FROM r LIMIT "
    "5000) ORDER BY 1",
    "recursion with large blobs": (
        "WITH RECURSIVE r(x, b) AS (SELECT 1, zeroblob(900000) UNION SELECT x + 1, zeroblob("
        "900000) FROM r) SELECT count(*) FROM r"
    ),
    "window over large blobs": f"{_COUNT_UP} SELECT max(b) OVER (ORDER BY x ROWS BETWEEN 100000 "
    "PRECEDING AND 100000 FOLLOWING) FROM (SELECT x, randomblob(500000) b FROM r LIMIT 100000)",
    "distinct large texts": f"{_COUNT_UP} SELECT count(DISTINCT hex(randomblob(400000))) FROM r",
    "1 MB of text": f"SELECT '{'x' * 1_000_000}'",
    "1 MB of IN list": "SELECT 6 WHERE 1 IN (" + ", ".join(map(str, range(170_000))) + ")",
    "1 MB of comment": "SELECT count(*) FROM people --" + "x" * 1_000_000,
    "1 MB of spaces": " " * 1_000_000,
}
_LATE_OR_LARGE = {
    "materialized": f"{_COUNT_UP}, m AS MATERIALIZED (SELECT randomblob(100000) b FROM r) "
    "SELECT count(*) FROM m a, m b",
}
_HARMLESS = {
    "the one pragma that is allowed": "PRAGMA data_version",
    "like bomb": (
        f"SELECT sum(hex(zeroblob(50000)) LIKE '{'%0_' * 100}x') FROM people a, people b, people c"
    ),
    "explain": "EXPLAIN SELECT count(*) FROM people",
    "explain query plan": "EXPLAIN QUERY PLAN SELECT * FROM people",
    "schema table": "SELECT sql FROM sqlite_master",
    "printf with a width": "SELECT printf('%1000000000d', 1)",
    "IN list of 20,000": "SELECT 7 WHERE 1 IN (" + ", ".join(map(str, range(20_000))) + ")",
    "like": "SELECT count(*) FROM people WHERE name LIKE '%a%a%a%a%'",
    "glob bomb": "SELECT hex(zeroblob(400000)) GLOB '*0*0*0*0*0*0*0*0*1'",
    "json bomb": "SELECT json_valid('" + "[" * 50_000 + "')",
    "infinity": "SELECT 9e999",
    "a null instead of a row": "SELECT max(age) FROM people WHERE 0",
    "an empty result": "SELECT * FROM people WHERE 0",
    "identifier with quotes": 'SELECT 1 AS "x""; DROP TABLE people; --"',
}
_RIGHT = {
    "final semicolon": "SELECT count(*) FROM people;",
    "byte order mark": "\ufeffSELECT count(*) FROM people",
    "comments": "/* a */ SELECT -- b\n count(*) FROM people -- c",
    "double quoted string": 'SELECT count(*) FROM people WHERE "x" = "x"',
    "qualified": "SELECT count(*) FROM main.people",
}

# Python 3.10 cannot set SQLite's limits; the process's own still hold.
_WITHOUT_SETLIMIT = {"like pattern of 10 kB": WRONG, "printf with a width": LARGE}
_OLD = {} if hasattr(sqlite3.Connection, "setlimit") else _WITHOUT_SETLIMIT

_TABLES = [
    (_WRITING, ERROR),
    (_BEYOND, ERROR),
    (_SYNTAX, ERROR),
    (_SLOW, LATE),
    (_LARGE, LARGE),
    (_LATE_OR_LARGE, LATE + LARGE),
    (_ENDS_IN_TIME_OR_NOT, LATE + LARGE + WRONG),
    (_HARMLESS, WRONG),
    (_RIGHT, ("correct",)),
]
CASES = [
    Case(name, sql, _OLD.get(name, statuses))
    for table, statuses in _TABLES
    for name, sql in table.items()
]
