"""Golds that count nothing on the original count something in a suite, so that slips show."""

from contextlib import closing
from pathlib import Path

import pytest
from support.databases import written

from lm_eval_ext.sql.schema import schema_of
from lm_eval_ext.sql.suite import Suite, SuiteRunners, populate
from lm_eval_ext.sql.suite.build import without_rows
from lm_eval_ext.sql.values import Rows

# The piers of calls have a space that those of golds lack, so no gold counts a row here.
FERRIES = """
CREATE TABLE lines (id INTEGER PRIMARY KEY, line TEXT, short TEXT, country TEXT);
CREATE TABLE piers (town TEXT, code TEXT PRIMARY KEY);
CREATE TABLE calls (line INTEGER, number INTEGER, pier TEXT, next_pier TEXT,
  PRIMARY KEY (line, number), FOREIGN KEY (pier) REFERENCES piers(code),
  FOREIGN KEY (next_pier) REFERENCES piers(code));
INSERT INTO lines VALUES (1, 'Blue Funnel', 'BF', 'NO'), (2, 'Red Star', 'RS', 'BE'),
  (3, 'White Duck', 'WD', 'NO'), (4, 'Green Isle', 'GI', 'IE'), (5, 'Grey Gull', 'GG', 'BE'),
  (6, 'Black Buoy', 'BB', 'IE');
INSERT INTO piers VALUES ('Bergen', 'BRG'), ('Ostend', 'OST'), ('Cork', 'CRK'), ('Oslo', 'OSL'),
  ('Ghent', 'GNT'), ('Galway', 'GAL');
INSERT INTO calls VALUES (1, 10, ' BRG', ' OSL'), (1, 11, ' OSL', ' BRG'),
  (2, 10, ' OST', ' GNT'), (3, 20, ' BRG', ' OST'), (4, 21, ' CRK', ' GAL'),
  (4, 22, ' GAL', ' CRK'), (5, 30, ' GNT', ' OST'),
  (6, 31, ' CRK', ' OSL'), (6, 10, ' OSL', ' GAL');
"""

JOINED = "SELECT {} FROM lines AS a JOIN calls AS b ON a.id = b.line WHERE {}"

#   gold; a slip that compares the number of a line with its name
SLIPS = {
    "name-and-pier": (
        JOINED.format("COUNT(*)", "a.line = 'Blue Funnel' AND b.pier = 'OST'"),
        "SELECT COUNT(*) FROM calls WHERE line = 'Blue Funnel' AND pier = 'OST'",
    ),
    "name-and-next-pier": (
        JOINED.format("COUNT(*)", "a.line = 'Red Star' AND b.next_pier = 'BRG'"),
        "SELECT COUNT(*) FROM calls WHERE line = 'Red Star' AND next_pier = 'BRG'",
    ),
    "both-piers": (
        JOINED.format("a.line", "b.pier = 'CRK'")
        + " INTERSECT "
        + JOINED.format("a.line", "b.pier = 'OSL'"),
        "SELECT line FROM calls WHERE pier = 'CRK' INTERSECT SELECT line FROM calls "
        "WHERE pier = 'OSL'",
    ),
}

RIGHT = {
    "name-and-pier": "SELECT COUNT(*) FROM calls WHERE pier = 'OST' AND line IN "
    "(SELECT id FROM lines WHERE line = 'Blue Funnel')",
    "name-and-next-pier": "SELECT COUNT(b.number) FROM calls AS b, lines AS a "
    "WHERE b.line = a.id AND b.next_pier = 'BRG' AND a.line = 'Red Star'",
    "both-piers": "SELECT DISTINCT line FROM lines WHERE line IN ("
    + JOINED.format("a.line", "b.pier = 'CRK'")
    + ") AND line IN ("
    + JOINED.format("a.line", "b.pier = 'OSL'")
    + ")",
}


OTHER_GOLDS: list[str] = []
"""Golds that need the same lines, so that their rows exist before the golds above are planted."""

for line in ("Blue Funnel", "Red Star", "White Duck", "Green Isle"):
    for column in ("short", "country", "id"):
        OTHER_GOLDS.append(f"SELECT {column} FROM lines WHERE line = '{line}'")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("original") / "ferries.sqlite", FERRIES)


@pytest.fixture(scope="module")
def suite(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Suite:
    golds = OTHER_GOLDS + [gold for gold, _ in SLIPS.values()]
    return populate("ferries", original, golds, tmp_path_factory.mktemp("suites"))


@pytest.mark.parametrize("case", SLIPS)
def test_gold_has_rows_in_some_small_database(suite: Suite, original: Path, case: str) -> None:
    gold, _ = SLIPS[case]
    with closing(SuiteRunners(suite, original)) as runners:
        results = [runners.runners[name].run(gold) for name in suite.judges_of(gold)]
    counted = [result for result in results if isinstance(result, Rows)]
    assert any(row[0] for result in counted for row in result.rows)


@pytest.mark.parametrize("case", SLIPS)
def test_a_suite_catches_a_slip_and_accepts_the_right_query(
    suite: Suite, original: Path, case: str
) -> None:
    gold, slip = SLIPS[case]
    with closing(SuiteRunners(suite, original)) as runners:
        assert runners.wrong_on(gold, slip) not in (None, "original")
        assert runners.wrong_on(gold, RIGHT[case]) is None


@pytest.mark.parametrize("case", SLIPS)
def test_a_suite_rejects_a_query_without_rows(suite: Suite, original: Path, case: str) -> None:
    gold, _ = SLIPS[case]
    with closing(SuiteRunners(suite, original)) as runners:
        empty = without_rows(gold, schema_of(runners.runners[""].connection))
        assert empty is not None
        assert runners.wrong_on(gold, empty) not in (None, "original")
