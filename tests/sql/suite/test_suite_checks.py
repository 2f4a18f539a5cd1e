"""Which golds a database may judge: right rewrites, ties and empty results, with both sides."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from lm_eval_ext.sql.schema import schema_of
from lm_eval_ext.sql.suite.checks import RULES, Checks, Runner, checks

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
    "without_nulls": ("SELECT name FROM towns ORDER BY people",
        "SELECT name FROM towns WHERE NOT people IS NULL ORDER BY people"),
    "group_by_key": ("SELECT t.name, COUNT(*) FROM towns AS t JOIN ships AS s ON t.id = s.town_id "
        "GROUP BY t.id",
        "SELECT t.name, COUNT(*) FROM towns AS t JOIN ships AS s ON t.id = s.town_id "
        "GROUP BY t.name"),
    "set_operations": ("SELECT id FROM towns EXCEPT SELECT town_id FROM ships",
        "SELECT DISTINCT id FROM towns WHERE NOT id IN (SELECT town_id FROM ships)"),
}  # fmt: skip


def checks_of(gold: str, original: Runner) -> Checks:
    found = checks(gold, schema_of(original.connection), original)
    assert found is not None
    return found


@pytest.mark.parametrize("case", REWRITES)
def test_rewrites(original: Runner, case: str) -> None:
    gold, rewrite = REWRITES[case]
    found = checks_of(gold, original).rewrites
    assert rewrite in found
    expected = original.expected(gold)
    assert expected is not None
    assert all(original.agrees(expected, sql) for sql in found)


def test_every_rule_has_a_case() -> None:
    assert {rule.__name__ for rule in RULES} == set(REWRITES)


def test_what_is_wrong_on_the_original_is_no_right_rewrite() -> None:
    null = run_on(SCRIPT + "INSERT INTO towns VALUES (4, 'Kiel', NULL, '1500-01-01');")
    with closing(null.connection):
        gold, rewrite = REWRITES["without_nulls"]
        assert rewrite not in checks_of(gold, null).rewrites


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
    # Two of the highest, and the gold's result is the same all the same.
    ("SELECT people FROM towns ORDER BY people DESC LIMIT 1", "towns VALUES (4, 'Kiel', 30, '1')",
     False),
    ("SELECT people AS n FROM towns ORDER BY n DESC LIMIT 1 OFFSET 1", "", True),
    ("SELECT COUNT(*) FROM towns WHERE people > 99", "", True),
]  # fmt: skip


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: f"{case[0]} {case[1]}")
def test_judged(original: Runner, case: tuple[str, str, bool]) -> None:
    gold, row, may = case
    runner = run_on(SCRIPT + (ROW.format(row) if row else ""))
    turned = run_on("")
    for (sql,) in runner.connection.execute("SELECT sql FROM sqlite_master"):
        turned.connection.execute(sql)
    for table in ("towns", "ships"):
        rows = runner.connection.execute(f"SELECT * FROM {table}").fetchall()
        marks = ", ".join("?" * len(rows[0]))
        turned.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[::-1])
    with closing(runner.connection), closing(turned.connection):
        assert (checks_of(gold, original).judged(runner, turned) is not None) is may


def test_a_tie_on_the_original_excuses_no_tie_elsewhere() -> None:
    tied = run_on(SCRIPT + "INSERT INTO towns VALUES (4, 'Kiel', 30, '1');")
    with closing(tied.connection):
        gold = "SELECT name FROM towns ORDER BY people DESC LIMIT 1"
        for sql in (gold, f"SELECT id FROM towns WHERE name = ({gold})"):
            assert checks_of(sql, tied).judged(tied, tied) is None


def test_a_result_that_is_empty_on_the_original_may_be_so(original: Runner) -> None:
    for gold in (
        "SELECT name FROM towns WHERE people > 99",
        "SELECT MAX(people) FROM towns WHERE people > 99",
    ):
        found = checks_of(gold, original)
        assert found.void
        assert found.judged(original, original) is not None
        assert replace(found, void=False).judged(original, original) is None
    assert checks("SELECT no_such FROM towns", schema_of(original.connection), original) is None


def test_a_limit_that_is_filled_on_the_original_must_be_filled(original: Runner) -> None:
    gold = ("SELECT t.name FROM (SELECT name, people FROM towns ORDER BY people DESC LIMIT {}) "
            "AS t ORDER BY t.people LIMIT 1")  # fmt: skip
    fewer = run_on(SCRIPT + "DELETE FROM towns WHERE id = 3;")
    with closing(fewer.connection):
        for limit, may in ((2, True), (3, False), (4, True)):
            found = checks_of(gold.format(limit), original)
            assert (found.judged(fewer, fewer) is not None) is may, limit
    gold = "SELECT name FROM towns ORDER BY founded LIMIT 4"
    more = run_on(
        SCRIPT
        + "INSERT INTO towns VALUES (4, 'Kiel', 1, '1500-01-01'), (5, 'Ulm', 2, '1600-01-01');"
    )
    with closing(more.connection):
        found = checks_of(gold, original)
        assert found.judged(more, more) is not None
        more.connection.execute("UPDATE towns SET founded = '1500-01-01' WHERE id = 5")
        assert found.judged(more, more) is None, "a tie at a cut that the original does not reach"


def test_steps_are_limited() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        runner = Runner(connection, steps=100_000)
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT SUM(i) FROM n"
        assert runner.expected(endless) is None
        assert runner.expected("SELECT 1") is not None
