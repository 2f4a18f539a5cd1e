"""Which golds a database may judge: right rewrites, ties and empty results, with both sides."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from lm_eval_ext.sql.schema import schema_of
from lm_eval_ext.sql.suite.checks import Runner, judged, rewrites
from lm_eval_ext.sql.suite.gate import RULES, order_among_equals

SCRIPT = """
CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT NOT NULL, people INTEGER, founded DATE);
CREATE TABLE ships (
  id INTEGER PRIMARY KEY, town_id INTEGER REFERENCES towns(id), tons INTEGER, built DATE, sold DATE
);
INSERT INTO towns VALUES (1, 'Rome', 30, '1200-05-31'), (2, 'Bonn', 20, '1300-06-30'),
  (3, 'Oslo', 10, '1400-01-01');
INSERT INTO ships VALUES (1, 1, 5, '1987-07-01', '1990-03-01'), (2, 1, 7, '1987-08-31',
  '1991-02-01'), (3, 2, 9, '1988-07-15', '1992-01-01');
"""


def run_on(script: str) -> Runner:
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    return Runner(connection)


@pytest.fixture(scope="module")
def original() -> Iterator[Runner]:
    runner = run_on(SCRIPT)
    with closing(runner.connection):
        yield runner


#   gold; a rewrite that a rule makes of it
REWRITES = {
    "whole_steps": ("SELECT name FROM towns WHERE people > 15",
        "SELECT name FROM towns WHERE people >= 16"),
    "whole_steps, days": ("SELECT id FROM ships WHERE built < '1988-01-01'",
        "SELECT id FROM ships WHERE built <= '1987-12-31'"),
    "date_functions": ("SELECT id FROM ships WHERE built = '1987-07-01'",
        "SELECT id FROM ships WHERE DATE(built) = '1987-07-01'"),
    "date_functions, years": ("SELECT sold - built FROM ships",
        "SELECT CAST(STRFTIME('%Y', sold) AS INTEGER) - CAST(STRFTIME('%Y', built) AS INTEGER) "
        "FROM ships"),
    "span_of_days": ("SELECT id FROM ships WHERE built >= '1987-07-01' AND built < '1987-09-01'",
        "SELECT id FROM ships WHERE STRFTIME('%Y-%m', built) IN ('1987-07', '1987-08')"),
    "text_equality": ("SELECT id FROM towns WHERE name = 'Rome'",
        "SELECT id FROM towns WHERE name LIKE 'Rome'"),
    "first_row_as_extreme": ("SELECT name FROM towns ORDER BY people DESC LIMIT 1",
        "SELECT name FROM towns WHERE people = (SELECT MAX(people) FROM towns)"),
    "first_group_as_extreme": ("SELECT town_id FROM ships GROUP BY town_id ORDER BY COUNT(*) DESC "
        "LIMIT 1",
        "SELECT town_id FROM ships GROUP BY town_id HAVING COUNT(*) = (SELECT MAX(n) FROM "
        "(SELECT COUNT(*) AS n FROM ships GROUP BY town_id) AS counted)"),
    "second_as_offset": ("SELECT t.name FROM (SELECT name, people FROM towns ORDER BY people DESC "
        "LIMIT 2) AS t ORDER BY t.people LIMIT 1",
        "SELECT t.name FROM (SELECT name, people FROM towns ORDER BY people DESC LIMIT 1 OFFSET 1) "
        "AS t"),
    "extreme_as_first_row": ("SELECT name FROM towns WHERE people = "
        "(SELECT MIN(people) FROM towns)",
        "SELECT name FROM towns WHERE people = (SELECT people FROM towns WHERE NOT people IS NULL "
        "ORDER BY people ASC LIMIT 1)"),
    "order_among_equals": ("SELECT name FROM towns ORDER BY people DESC LIMIT 1",
        "SELECT name FROM towns ORDER BY people DESC, name DESC LIMIT 1"),
    "having_as_where": ("SELECT town_id FROM ships GROUP BY town_id HAVING town_id > 1",
        "SELECT town_id FROM ships WHERE town_id > 1 GROUP BY town_id"),
    "without_nulls": ("SELECT name FROM towns ORDER BY people",
        "SELECT name FROM towns WHERE NOT people IS NULL ORDER BY people"),
    "mean_as_quotient": ("SELECT AVG(people) FROM towns",
        "SELECT (CAST(SUM(people) * 1.0 AS REAL) / COUNT(*)) FROM towns"),
    "group_by_key": ("SELECT t.name, COUNT(*) FROM towns AS t JOIN ships AS s ON t.id = s.town_id "
        "GROUP BY t.id",
        "SELECT t.name, COUNT(*) FROM towns AS t JOIN ships AS s ON t.id = s.town_id "
        "GROUP BY t.name"),
    "membership": ("SELECT t.name FROM towns AS t WHERE t.id NOT IN (SELECT s.town_id "
        "FROM ships AS s)",
        "SELECT t.name FROM towns AS t WHERE NOT EXISTS(SELECT 1 FROM ships AS s "
        "WHERE s.town_id = t.id)"),
    "set_operations": ("SELECT id FROM towns EXCEPT SELECT town_id FROM ships",
        "SELECT id FROM towns WHERE NOT id IN (SELECT town_id FROM ships)"),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITES)
def test_rewrites(original: Runner, case: str) -> None:
    gold, rewrite = REWRITES[case]
    found = rewrites(gold, schema_of(original.connection), original)
    assert rewrite in found
    expected = original.expected(gold)
    assert expected is not None
    assert all(original.agrees(expected, sql) for sql in found)


def test_every_rule_has_a_case() -> None:
    rules = {rule.__name__ for rule in (*RULES, order_among_equals)}
    assert rules == {case.partition(",")[0] for case in REWRITES}


def test_what_is_wrong_on_the_original_is_no_right_rewrite(original: Runner) -> None:
    null = run_on(SCRIPT + "INSERT INTO towns VALUES (4, 'Kiel', NULL, '1500-01-01');")
    with closing(null.connection):
        gold, rewrite = REWRITES["without_nulls"]
        assert rewrite not in rewrites(gold, schema_of(null.connection), null)


ROW = "INSERT INTO {};"
#   gold, rows that are added, whether the database may judge the gold
JUDGED: list[tuple[str, str, bool]] = [
    ("SELECT name FROM towns ORDER BY people DESC LIMIT 1", "", True),
    ("SELECT name FROM towns ORDER BY people DESC LIMIT 1", "towns VALUES (4, 'Kiel', 30, '1')",
     False),
    ("SELECT name FROM towns ORDER BY people LIMIT 1", "towns VALUES (4, 'Kiel', NULL, '1')",
     False),
    ("SELECT name FROM towns WHERE id = (SELECT town_id FROM ships LIMIT 1)", "", False),
    ("SELECT name FROM towns WHERE id = (SELECT MIN(town_id) FROM ships)", "", True),
    ("SELECT id FROM ships GROUP BY town_id", "", False),
    ("SELECT town_id FROM ships GROUP BY town_id", "", True),
    ("SELECT town_id FROM ships GROUP BY town_id ORDER BY COUNT(*) DESC LIMIT 1", "", True),
    ("SELECT town_id FROM ships GROUP BY town_id ORDER BY COUNT(*) DESC LIMIT 1",
     "ships VALUES (4, 2, 5, '1987-07-01', '1990-03-01')", False),
    ("SELECT t.name FROM (SELECT name, people FROM towns ORDER BY people DESC LIMIT 2) AS t "
     "ORDER BY t.people LIMIT 1", "", True),
    ("SELECT t.name FROM (SELECT name, people FROM towns ORDER BY people DESC LIMIT 2) AS t "
     "ORDER BY t.people LIMIT 1", "towns VALUES (4, 'Kiel', 20, '1')", False),
    ("SELECT tons FROM ships WHERE town_id IN (SELECT town_id FROM ships GROUP BY town_id "
     "ORDER BY COUNT(*) DESC LIMIT 1)", "ships VALUES (4, 2, 5, '1987-07-01', '1990-03-01')",
     False),
    ("SELECT id FROM ships WHERE built < '1988-01-01'",
     "ships VALUES (4, 1, 5, '1987-12-31', '1990-03-01')", True),
    ("SELECT id FROM ships WHERE built < '1988-01-01'",
     "ships VALUES (4, 1, 5, '1987-12-31x', '1990-03-01')", False),
    ("SELECT name FROM towns WHERE people > 99", "", False),
    ("SELECT MAX(people) FROM towns WHERE people > 99", "", False),
    ("SELECT COUNT(*) FROM towns WHERE people > 99", "", True),
    ("SELECT no_such FROM towns", "", False),
]  # fmt: skip


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: f"{case[0]} {case[1]}")
def test_judged(original: Runner, case: tuple[str, str, bool]) -> None:
    gold, row, may = case
    others = rewrites(gold, schema_of(original.connection), original)
    runner = run_on(SCRIPT + (ROW.format(row) if row else ""))
    turned = run_on("")
    for (sql,) in runner.connection.execute("SELECT sql FROM sqlite_master"):
        turned.connection.execute(sql)
    for table in ("towns", "ships"):
        rows = runner.connection.execute(f"SELECT * FROM {table}").fetchall()
        marks = ", ".join("?" * len(rows[0]))
        turned.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[::-1])
    with closing(runner.connection), closing(turned.connection):
        assert (judged(gold, runner, [turned], others) is not None) is may


def test_a_tie_on_the_original_excuses_no_tie_elsewhere() -> None:
    """The rewrite with other sort terms is not right there, and still a check of determinedness."""
    tied = run_on(SCRIPT + "INSERT INTO towns VALUES (4, 'Kiel', 30, '1');")
    with closing(tied.connection):
        gold = "SELECT name FROM towns ORDER BY people DESC LIMIT 1"
        others = rewrites(gold, schema_of(tied.connection), tied)
        assert sum("ORDER BY people DESC, " in sql for sql in others) == 4
        nested = f"SELECT id FROM towns WHERE name = ({gold})"
        others = rewrites(nested, schema_of(tied.connection), tied)
        assert judged(nested, tied, [], others) is None


def test_a_result_that_is_empty_on_the_original_may_be_so(original: Runner) -> None:
    gold = "SELECT name FROM towns WHERE people > 99"
    assert judged(gold, original, [], []) is None
    assert judged(gold, original, [], [], may_be_empty=True) is not None


def test_steps_are_limited() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        runner = Runner(connection, steps=100_000)
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT SUM(i) FROM n"
        assert runner.expected(endless) is None
        assert runner.expected("SELECT 1") is not None
