"""The cases that measure the judge (bench/judge), which the package never sees."""

import sqlite3
import sys
import zlib
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.judge.__main__ import misjudged, published  # noqa: E402
from bench.judge.draw import distinguished  # noqa: E402
from bench.judge.measure import Case, cases, flaws  # noqa: E402
from bench.judge.query import Facts, Query  # noqa: E402
from bench.judge.right import rewrites  # noqa: E402
from bench.judge.wrong import QUOTAS, borrowed, neighbours  # noqa: E402
from lm_eval_ext.benchmarks.magnifico import corpora, mini  # noqa: E402
from lm_eval_ext.sql.suite import populate, read_shipped  # noqa: E402

FLEET = """
CREATE TABLE port (id INTEGER PRIMARY KEY, name TEXT NOT NULL, town TEXT);
CREATE TABLE ship (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, port INTEGER NOT NULL REFERENCES port (id),
  launched TEXT, tons INTEGER NOT NULL, crew INTEGER
);
INSERT INTO port VALUES (1, 'Varna', 'Varna'), (2, 'Burgas', NULL), (3, 'Ahtopol', 'Tsarevo');
INSERT INTO ship VALUES
  (1, 'Albena', 1, '1987-07-12', 900, 12), (2, 'Kavarna', 1, '1990-01-30', 1200, NULL),
  (3, 'Sozopol', 2, '1987-08-31', 700, 9), (4, 'Balchik', 2, '1979-12-01', 1500, 20);
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return Facts(database(tmp_path_factory.mktemp("fleet") / "fleet.sqlite", FLEET))


def database(path: Path, *scripts: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for script in scripts:
            connection.executescript(script)
    return path


SAME = [
    ("SELECT name FROM ship WHERE tons > 1000", "SELECT name FROM ship WHERE NOT tons <= 1000"),
    ("SELECT COUNT(*) FROM ship", "SELECT COUNT(tons) FROM ship"),
    ("SELECT name FROM ship ORDER BY tons", "SELECT name FROM ship ORDER BY -tons DESC"),
    ("SELECT DISTINCT id FROM port", "SELECT id FROM port"),
    (
        "SELECT s.name FROM ship AS s JOIN port AS p ON s.port = p.id",
        "SELECT s.name FROM ship AS s LEFT JOIN port AS p ON s.port = p.id",
    ),
    (
        "SELECT name FROM port WHERE id NOT IN (SELECT port FROM ship)",
        "SELECT name FROM port AS p WHERE NOT EXISTS (SELECT 1 FROM ship WHERE port = p.id)",
    ),
    (
        "SELECT name FROM ship WHERE launched < '1990-01-01'",
        "SELECT name FROM ship WHERE launched <= '1989-12-31'",
    ),
]
"""Pairs that no database distinguishes that keeps what the rows above promise."""

OTHER = [
    ("SELECT name FROM ship WHERE tons > 1000", "SELECT name FROM ship WHERE tons >= 1000"),
    ("SELECT COUNT(*) FROM ship", "SELECT COUNT(crew) FROM ship"),
    ("SELECT name FROM ship ORDER BY tons", "SELECT name FROM ship ORDER BY crew"),
    ("SELECT DISTINCT tons FROM ship", "SELECT tons FROM ship"),
    (
        "SELECT p.name FROM port AS p LEFT JOIN ship AS s ON s.port = p.id",
        "SELECT p.name FROM port AS p JOIN ship AS s ON s.port = p.id",
    ),
    (
        "SELECT name FROM port WHERE id NOT IN (SELECT port FROM ship)",
        "SELECT name FROM port WHERE id NOT IN (SELECT id FROM ship)",
    ),
    (
        "SELECT name FROM ship WHERE launched < '1990-01-01'",
        "SELECT name FROM ship WHERE launched <= '1990-01-01'",
    ),
    (
        "SELECT port FROM ship GROUP BY port ORDER BY COUNT(*) DESC LIMIT 1",
        "SELECT MAX(port) FROM ship",
    ),
    ("SELECT AVG(tons) FROM ship", "SELECT SUM(tons) / COUNT(*) FROM ship"),
    ("SELECT name FROM ship WHERE name LIKE '%ar%'", "SELECT name FROM ship WHERE name LIKE 'ar%'"),
]
"""Pairs that some database distinguishes."""


@pytest.mark.parametrize(("gold", "other"), SAME)
def test_random_databases_do_not_distinguish_equal_queries(
    gold: str, other: str, fleet: Facts
) -> None:
    assert distinguished(Query(gold, fleet), [other]) == set()


@pytest.mark.parametrize(("gold", "other"), OTHER)
def test_random_databases_distinguish_different_queries(
    gold: str, other: str, fleet: Facts
) -> None:
    assert distinguished(Query(gold, fleet), [other]) == {other}


GOLDS = sorted({gold for gold, _ in [*SAME, *OTHER]} | {
    "SELECT s.name FROM ship AS s JOIN port AS p ON s.port = p.id WHERE p.town = 'Varna'",
    "SELECT name FROM ship WHERE launched >= '1987-07-01' AND launched < '1987-09-01'",
    "SELECT name FROM ship WHERE tons > (SELECT AVG(tons) FROM ship) ORDER BY tons DESC LIMIT 1",
})  # fmt: skip


def test_families_of_a_gold(fleet: Facts) -> None:
    """They run, are the same each time, and cover their kinds; rewrites are right everywhere."""
    queries = [Query(gold, fleet) for gold in GOLDS]
    pool = borrowed(queries)
    kinds: set[str] = set()
    kept = 0
    for query in queries:
        wrong = neighbours(query, pool)
        assert wrong == neighbours(query, pool)
        assert all(fleet.answer(one.sql) is not None for one in wrong)
        assert query.gold not in {one.sql for one in wrong}
        kinds |= {one.kind for one in wrong}
        right = [one.sql for one in rewrites(query) if fleet.answer(one.sql)]
        kept += len(right)
        assert distinguished(query, right) == set(), query.gold
    assert kinds >= QUOTAS.keys()
    assert kept >= 2 * len(queries)


BROKEN = {
    "dates": "INSERT INTO ship VALUES (5, 'Kiten', 1, '1987-02-30', 1, 1)",
    "runs": "INSERT INTO ship VALUES (5, 'Kitennn', 1, '1987-02-28', 1, 1)",
    "first NULLs": "INSERT INTO ship VALUES (5, 'Kiten', 1, NULL, 1, 1)",
    "fractions": "INSERT INTO ship VALUES (5, 'Kiten', 1, '1987-02-28', 1.5, 1)",
}


@pytest.mark.parametrize("kind", [*BROKEN, ""])
def test_flaws_of_added_rows(kind: str, tmp_path: Path) -> None:
    fine = "INSERT INTO ship VALUES (5, 'Kiten', 3, '1996-02-29', 1, NULL)"
    original = database(tmp_path / "original.sqlite", FLEET)
    made = database(tmp_path / "made.sqlite", FLEET, BROKEN.get(kind, fine))
    found = flaws(original, [made])
    assert found == ({kind: 1} if kind else {})


def measured(db_id: str, original: Path, golds: list[str], home: Path, out: Path) -> list[Case]:
    """The cases of one gold in :data:`ONE_IN`, on the suite that ships."""
    shipped = read_shipped(home)
    suite = populate(db_id, original, golds, out, shipped)
    found = flaws(original, [suite.path(name) for name in suite.databases])
    assert not found.keys() & {"dates", "runs", "first NULLs"}
    chosen = [gold for gold in golds if not zlib.crc32(gold.encode()) % ONE_IN]
    return list(cases(db_id, original, suite, golds, chosen))


ONE_IN = 4


def missed(found: list[Case], family: str) -> float:
    """The share of golds with a wrong query that the suite calls right, though others differ."""
    own = [case for case in found if case.family == family]
    bad = {case.gold for case in own if case.differs and misjudged(case, lambda label: True)}
    return len(bad) / len({case.gold for case in own})


def everything_right(found: list[Case]) -> bool:
    right = [case for case in found if case.family == "rewrite"]
    assert len(right) > 5
    return not [case for case in right if case.wrong_on]


def test_mini_suites_judge_both_ways(tmp_path: Path) -> None:
    corpus = mini.corpus()
    support = [one for examples in corpus.support.values() for one in examples]
    golds = sorted({o.query for o in [*corpus.examples, *support] if o.db_id == "seed_library"})
    found = measured(
        "seed_library", mini.databases()["seed_library"].path, golds, mini.SHIPPED, tmp_path
    )
    assert everything_right(found)
    assert missed(found, "mutant") == 0
    assert missed(found, "neighbour") <= 0.25


@pytest.mark.slow
@pytest.mark.parametrize("db_id", ["dorm_1", "college_3"])
def test_published_suites_judge_both_ways(db_id: str, shared_data: Path, tmp_path: Path) -> None:
    original, golds = published(shared_data)[db_id]
    found = measured(db_id, original, golds, corpora.SHIPPED, tmp_path)
    assert everything_right(found)
    assert missed(found, "neighbour") <= 0.5 < missed_on_original(found)


def missed_on_original(found: list[Case]) -> float:
    own = [case for case in found if case.family == "neighbour"]
    bad = {case.gold for case in own if misjudged(case, lambda label: label == "original")}
    return len(bad) / len({case.gold for case in own})
