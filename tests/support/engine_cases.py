"""What the tests of DuckDB and PostgreSQL share; their hostile queries are in hostile_engines.yaml.

The gold there is ``SELECT count(*) FROM people``, which is 3.
"""

from lm_eval_ext.sql import Executor
from lm_eval_ext.sql.values import Exact
from support.hostile_cases import cases

PEOPLE = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name VARCHAR, age INTEGER, pay DOUBLE PRECISION);
INSERT INTO people VALUES (1, 'Ada', 36, 10.5), (2, 'Bob', 36, 20.25), (3, 'Cy', NULL, NULL);
CREATE TABLE pets (id INTEGER PRIMARY KEY, owner INTEGER REFERENCES people(id), kind VARCHAR);
INSERT INTO pets VALUES (1, 1, 'cat'), (2, 1, 'dog'), (3, 3, 'owl');
CREATE VIEW adults AS SELECT * FROM people WHERE age > 30;
CREATE SEQUENCE ticket;
"""


DUCKDB, POSTGRESQL = cases("both", "duckdb"), cases("both", "postgresql")

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


VALUES = (
    ("true", 1), ("1.50", Exact("1.5")), ("CAST(3 AS DECIMAL(38, 9))", 3), ("NULL", None),
    ("CAST(0.1 AS DOUBLE PRECISION)", 0.1), ("CAST('nan' AS DOUBLE PRECISION)", "NaN"),
    ("CAST('-inf' AS DOUBLE PRECISION)", float("-inf")), ("'é'", "é"),
    ("DATE '2020-02-29'", "2020-02-29"), ("TIMESTAMP '2020-02-29 00:00:00'", "2020-02-29"),
    ("TIMESTAMP '2020-02-29 10:00:00.120'", "2020-02-29 10:00:00.12"),
    ("TIMESTAMPTZ '2020-02-29 10:00:00+02'", "2020-02-29 08:00:00"),
    ("DATE '20000-01-01'", "20000-01-01"), ("TIME '10:00:00'", "10:00:00"),
    ("count(*) FROM people", 3),
)  # fmt: skip
"""What both engines give for expressions."""


def check_value(executor: Executor, sql: str, expected: object) -> None:
    """Assert that an expression has a value, of the same type."""
    ((value,),) = executor.query("people", f"SELECT {sql}").rows
    assert (value, type(value)) == (expected, type(expected))


def check_strict(executor: Executor, gold: str, right: str, wrong: str) -> None:
    """Assert that the strict rule tells a right prediction from a wrong one."""
    examples = [("people", gold, right), ("people", gold, wrong)]
    statuses = executor.score(examples, semantics="strict")
    assert [verdict.status for verdict in statuses] == ["correct", "wrong"]
