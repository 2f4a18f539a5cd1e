"""Which golds a database may judge: right rewrites, ties and empty results, with both sides."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.databases import opened, written

from lm_eval_ext.sql.schema import schema_of
from lm_eval_ext.sql.suite import Original
from lm_eval_ext.sql.suite.build import gold_cases, judgeable_golds
from lm_eval_ext.sql.suite.checks import REWRITE_RULES, STEPS, Checks, Runner, checks_of

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


@pytest.fixture(scope="module")
def original() -> Iterator[Runner]:
    with opened(SCRIPT) as connection:
        yield Runner(connection)


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


def checks(gold: str, original: Runner) -> Checks:
    gold_checks = checks_of(gold, schema_of(original.connection), original)
    assert gold_checks is not None
    return gold_checks


@pytest.mark.parametrize("case", REWRITES)
def test_right_rewrites_agree_with_the_gold(original: Runner, case: str) -> None:
    gold, rewrite = REWRITES[case]
    rewrites = checks(gold, original).rewrites
    assert rewrite in rewrites
    expected = original.expected(gold)
    assert expected is not None
    assert all(original.agrees(expected, sql) for sql in rewrites)


def test_every_rule_has_a_case() -> None:
    assert {rule.__name__ for rule in REWRITE_RULES} == set(REWRITES)


def test_a_rewrite_that_is_wrong_on_the_original_is_no_right_one() -> None:
    gold, rewrite = REWRITES["without_nulls"]
    with opened(SCRIPT + "INSERT INTO towns VALUES (4, 'Kiel', NULL, '1500-01-01');") as null:
        assert rewrite not in checks(gold, Runner(null)).rewrites


SECOND = ("SELECT t.name FROM (SELECT name, people FROM towns ORDER BY people DESC LIMIT {}) AS t "
          "ORDER BY t.people LIMIT 1")  # fmt: skip
FEWER = "DELETE FROM towns WHERE id = 3;"
FIVE = "INSERT INTO towns VALUES (4, 'Kiel', 1, '1500-01-01'), (5, 'Ulm', 2, '{}-01-01');"
TIE = "INSERT INTO towns VALUES (4, 'Kiel', 30, '1');"
SHIP = "INSERT INTO ships VALUES (4, 2, {}, '1987-07-01', '1990-03-01');"
NONE = "UPDATE towns SET people = 9;"
NONE_THERE = f"DELETE FROM towns WHERE id = 1;|{NONE}"

#   gold, how the database differs from the original, whether it may judge the gold
JUDGED: list[tuple[str, str, bool]] = [
    ("SELECT name FROM towns ORDER BY people DESC LIMIT 1", "", True),
    ("SELECT name FROM towns ORDER BY people DESC LIMIT 1", TIE, False),
    ("SELECT name FROM towns ORDER BY people LIMIT 1",
     "INSERT INTO towns VALUES (4, 'Kiel', NULL, '1');", False),
    ("SELECT name FROM towns WHERE id = (SELECT town_id FROM ships LIMIT 1)", "", False),
    ("SELECT name FROM towns WHERE id = (SELECT MIN(town_id) FROM ships)", "", True),
    ("SELECT id FROM ships GROUP BY town_id", "", False),
    ("SELECT town_id FROM ships GROUP BY town_id", "", True),
    ("SELECT town_id FROM ships GROUP BY town_id ORDER BY COUNT(*) DESC LIMIT 1", "", True),
    ("SELECT town_id FROM ships GROUP BY town_id ORDER BY COUNT(*) DESC LIMIT 1",
     SHIP.format(5), False),
    (SECOND.format(2), "", True),
    (SECOND.format(2), "INSERT INTO towns VALUES (4, 'Kiel', 20, '1');", False),
    # A limit that is filled on the original must be filled.
    (SECOND.format(2), FEWER, True), (SECOND.format(3), FEWER, False),
    (SECOND.format(4), FEWER, True),
    # A cut that the original has not.
    ("SELECT name FROM towns ORDER BY founded LIMIT 4", FIVE.format(1600), True),
    ("SELECT name FROM towns ORDER BY founded LIMIT 4", FIVE.format(1500), False),
    # A tie on the original excuses no tie elsewhere.
    ("SELECT name FROM towns ORDER BY people DESC LIMIT 1", f"{TIE}|{TIE}", False),
    # A result is empty only where the original's is.
    ("SELECT name FROM towns WHERE people > 29", NONE, False),
    ("SELECT MAX(people) FROM towns WHERE people > 29", NONE, False),
    ("SELECT name FROM towns WHERE people > 29", NONE_THERE, True),
    ("SELECT MAX(people) FROM towns WHERE people > 29", NONE_THERE, True),
    ("SELECT tons FROM ships WHERE town_id IN (SELECT town_id FROM ships GROUP BY town_id "
     "ORDER BY COUNT(*) DESC LIMIT 1)", SHIP.format(5), False),
    # Two of the highest, and the gold's result is the same all the same.
    ("SELECT people FROM towns ORDER BY people DESC LIMIT 1", TIE, False),
    ("SELECT people AS n FROM towns ORDER BY n DESC LIMIT 1 OFFSET 1", "", True),
    ("SELECT COUNT(*) FROM towns WHERE people > 99", "", True),
    # A column of the row that has the group's extreme, of which there are two.
    ("SELECT built, MAX(tons) FROM ships GROUP BY town_id", "", True),
    ("SELECT built, MAX(tons) FROM ships GROUP BY town_id",
     SHIP.format(9), False),
    # A subquery that has rows on the original has some; one that has none may have none.
    ("SELECT name FROM towns WHERE people > (SELECT MAX(tons) FROM ships WHERE tons > 8)",
     "DELETE FROM ships WHERE tons > 8;", False),
    ("SELECT name FROM towns WHERE people > (SELECT COUNT(*) FROM ships WHERE tons > 8)",
     "DELETE FROM ships WHERE tons > 8;", True),
    ("SELECT name FROM towns WHERE NOT id IN (SELECT town_id FROM ships WHERE tons > 99)", "",
     True),
    # Names in which the rows of the original differ: the one that a gold names is no other's.
    ("SELECT people FROM towns WHERE name = 'Rome'", "", True),
    ("SELECT people FROM towns WHERE name = 'Rome'", "UPDATE towns SET name = 'Rome';", False),
    ("SELECT people FROM towns WHERE name = 'Rome'", "UPDATE towns SET name = 'Rome';|"
     "UPDATE towns SET name = 'Rome';", True),
    # Grouping by a name is grouping by its key only where names differ.
    ("SELECT t.name, COUNT(*) FROM towns AS t JOIN ships AS s ON t.id = s.town_id GROUP BY t.id",
     "UPDATE towns SET name = 'Rome';", False),
    ("SELECT t.name, COUNT(*) FROM towns AS t JOIN ships AS s ON t.id = s.town_id GROUP BY t.name",
     "INSERT INTO towns VALUES (4, 'Rome', 5, '1500-01-01');|UPDATE towns SET name = 'Rome';",
     True),
    # The key is another table's column of the same name as a result.
    ("SELECT t.id FROM towns AS t JOIN ships AS s ON t.id = s.town_id ORDER BY s.id LIMIT 1", "",
     True),
    ("SELECT s.tons AS people FROM towns AS t JOIN ships AS s ON t.id = s.town_id "
     "ORDER BY t.people DESC LIMIT 1", "", False),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "change", "may"), JUDGED)
def test_a_database_with_other_rows_than_the_original_may_judge(
    gold: str, change: str, may: bool, tmp_path: Path
) -> None:
    """Statements before a bar change the original."""
    *before, after = change.split("|")
    home = Original(written(tmp_path / "original.sqlite", SCRIPT + "".join(before)), [gold])
    with closing(home.connection), opened(SCRIPT + after) as changed:
        assert bool(judgeable_golds(home, changed, gold_cases(home), steps=STEPS)[1]) is may


def test_a_query_without_an_end_is_stopped() -> None:
    with opened("") as connection:
        runner = Runner(connection, steps=100_000)
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT SUM(i) FROM n"
        assert runner.expected(endless) is None
        assert runner.expected("SELECT 1") is not None
