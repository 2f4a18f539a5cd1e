"""Which golds a database may judge: right rewrites, ties and empty results, with both sides."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from small_databases import write_database

from lm_eval_ext.sql.schema import schema_of
from lm_eval_ext.sql.suite import Original
from lm_eval_ext.sql.suite.checks import RULES, STEPS, Checks, Runner, checks

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
    # A column of the row that has the group's extreme, of which there are two.
    ("SELECT built, MAX(tons) FROM ships GROUP BY town_id", "", True),
    ("SELECT built, MAX(tons) FROM ships GROUP BY town_id",
     "ships VALUES (4, 2, 9, '1987-07-01', '1990-03-01')", False),
    # The key is another table's column of the same name as a result.
    ("SELECT t.id FROM towns AS t JOIN ships AS s ON t.id = s.town_id ORDER BY s.id LIMIT 1", "",
     True),
    ("SELECT s.tons AS people FROM towns AS t JOIN ships AS s ON t.id = s.town_id "
     "ORDER BY t.people DESC LIMIT 1", "", False),
]  # fmt: skip


def judged(gold: str, folder: Path, change: str = "", original: str = "") -> bool:
    """Whether a database with other rows than the original may judge a gold."""
    write_database(folder / "original.sqlite", SCRIPT + original)
    home = Original(folder / "original.sqlite", [gold])
    with closing(home.connection), closing(run_on(SCRIPT + change).connection) as other:
        return bool(home.judges(other, home.cases(), steps=STEPS)[1])


@pytest.mark.parametrize(("gold", "row", "may"), JUDGED)
def test_judged(gold: str, row: str, may: bool, tmp_path: Path) -> None:
    assert judged(gold, tmp_path, f"INSERT INTO {row};" if row else "") is may


def test_a_tie_on_the_original_excuses_no_tie_elsewhere(tmp_path: Path) -> None:
    gold = "SELECT name FROM towns ORDER BY people DESC LIMIT 1"
    tie = "INSERT INTO towns VALUES (4, 'Kiel', 30, '1');"
    assert not judged(gold, tmp_path, tie, tie)


@pytest.mark.parametrize("result", ["name", "MAX(people)"])
def test_a_result_is_empty_only_where_the_originals_is(result: str, tmp_path: Path) -> None:
    gold = f"SELECT {result} FROM towns WHERE people > 29"
    assert not judged(gold, tmp_path, "UPDATE towns SET people = 9;")
    (tmp_path / "original.sqlite").unlink()
    assert judged(gold, tmp_path, "UPDATE towns SET people = 9;", "DELETE FROM towns WHERE id = 1;")


def test_a_limit_that_is_filled_on_the_original_must_be_filled(tmp_path: Path) -> None:
    gold = ("SELECT t.name FROM (SELECT name, people FROM towns ORDER BY people DESC LIMIT {}) "
            "AS t ORDER BY t.people LIMIT 1")  # fmt: skip
    for limit, may in ((2, True), (3, False), (4, True)):
        folder = tmp_path / str(limit)
        folder.mkdir()
        assert judged(gold.format(limit), folder, "DELETE FROM towns WHERE id = 3;") is may
    more = "INSERT INTO towns VALUES (4, 'Kiel', 1, '1500-01-01'), (5, 'Ulm', 2, '{}');"
    for day, may in (("1600-01-01", True), ("1500-01-01", False)):
        folder = tmp_path / day
        folder.mkdir()
        gold = "SELECT name FROM towns ORDER BY founded LIMIT 4"
        assert judged(gold, folder, more.format(day)) is may, "a cut that the original has not"


def test_steps_are_limited() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        runner = Runner(connection, steps=100_000)
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT SUM(i) FROM n"
        assert runner.expected(endless) is None
        assert runner.expected("SELECT 1") is not None
