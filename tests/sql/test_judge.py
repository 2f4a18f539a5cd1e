"""The cases that measure the judge (bench/judge), which the package never sees."""

import sys
import zlib
from pathlib import Path

import pytest
from support.databases import opened, written

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


from bench.judge.cases import Case, cases, distinguished, flaws
from bench.judge.families import MAX_NEIGHBOURS, QueryVariants, normal
from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import corpora, populating
from lm_eval_ext.sql.suite import Original, Shipped, populate, read_shipped
from lm_eval_ext.sql.suite.build import gold_cases
from lm_eval_ext.sql.suite.files import suite_key

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

GOLDS = sorted({gold for gold, _ in [*SAME, *OTHER]} | {
    "SELECT s.name FROM ship AS s JOIN port AS p ON s.port = p.id WHERE p.town = 'Varna'",
    "SELECT name FROM ship WHERE launched >= '1987-07-01' AND launched < '1987-09-01'",
    "SELECT name FROM ship WHERE tons > (SELECT AVG(tons) FROM ship) ORDER BY tons DESC LIMIT 1",
})  # fmt: skip


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(written(tmp_path_factory.mktemp("fleet") / "fleet.sqlite", FLEET), GOLDS)


@pytest.mark.parametrize(("gold", "changed"), [*SAME, *OTHER])
def test_random_databases_distinguish_what_differs(
    gold: str, changed: str, fleet: Original
) -> None:
    (case,) = (case for case in gold_cases(fleet) if case.gold == gold)
    assert distinguished(fleet, case, {changed}) == (
        {changed} if (gold, changed) in OTHER else set()
    )


def test_families_of_a_gold(fleet: Original) -> None:
    """They run, are the same each time, and cover their kinds; rewrites are right everywhere."""
    variants, kinds, kept = QueryVariants(fleet), set[str](), 0
    for case in gold_cases(fleet):
        wrong = list(variants.neighbours(case.gold, set()))
        assert wrong == list(variants.neighbours(case.gold, set()))
        assert all(variants.runs(sql) and normal(sql) != normal(case.gold) for _, sql in wrong)
        assert normal(wrong[0][1]) not in {
            normal(sql) for _, sql in variants.neighbours(case.gold, {wrong[0][1]})
        }
        kinds |= {family for family, _ in wrong}
        right = {sql for _, sql in variants.rewrites(case.gold)}
        kept += len(right)
        assert distinguished(fleet, case, right) == set(), case.gold
    assert kinds == MAX_NEIGHBOURS.keys()
    assert kept >= len(GOLDS)


@pytest.mark.parametrize(
    ("column_type", "row"),
    [
        ("days", "5, 'Kiten', 1, '1987-02-30', 1, 1"),
        ("runs", "5, 'Kitennn', 1, '1987-02-28', 1, 1"),
        ("first NULLs", "5, 'Kiten', 1, NULL, 1, 1"),
        ("", "5, 'Kiten', 3, '1996-02-29', 1, NULL"),
    ],
)
def test_flaws_of_added_rows(column_type: str, row: str, tmp_path: Path) -> None:
    path = written(tmp_path / "fleet.sqlite", FLEET)
    with opened("") as copy:
        (values,) = copy.execute(f"VALUES (5, {row})").fetchall()
    shipped = Shipped({sha256_of(path): {"ship": [[*values]]}}, {})
    suite = populate("fleet", path, [], tmp_path / "out", shipped)
    assert flaws(path, suite, Original(path, [])) == ({column_type: 1} if column_type else {})


@pytest.mark.slow
def test_shipped_suites_judge_both_ways(real_data: Path, tmp_path: Path) -> None:
    path, golds = populating.databases_with_golds(real_data / "spider_databases")["dorm_1"]
    suite = populate("dorm_1", path, golds, tmp_path, read_shipped(corpora.SHIPPED))
    original = Original(path, golds)
    assert not flaws(path, suite, original)
    wrong = "SELECT count(*) FROM student"
    chosen = {gold: {wrong: "recorded"} for gold in golds if not zlib.crc32(gold.encode()) % 4}
    all_cases = list(cases(path, suite, original, chosen))
    databases = {"", *suite.names}
    misjudged = [case for case in all_cases if case.misjudged(databases) and case.differs]
    assert not [case for case in misjudged if case.is_right]
    assert share_of_golds(misjudged, all_cases, "mutant") <= 0.2
    assert share_of_golds(misjudged, all_cases, "neighbour") <= 0.25
    missed_by_original = [case for case in all_cases if case.misjudged({""})]
    assert share_of_golds(missed_by_original, all_cases, "neighbour") >= 0.5


def share_of_golds(some_cases: list[Case], all_cases: list[Case], family: str) -> float:
    """Return the share of the golds with cases of a family that have one among some cases."""
    golds = {case.gold for case in some_cases if case.family == family}
    return len(golds) / len({case.gold for case in all_cases if case.family == family})


def test_seeds_ship_for_all_golds(real_data: Path) -> None:
    """Without them a user's own machine searches, for minutes."""
    for end in ("", "-v2"):
        shipped = read_shipped(corpora.SHIPPED, end)
        for path, golds in populating.databases_with_golds(real_data / "spider_databases").values():
            digest = sha256_of(path)
            assert suite_key(digest, sorted(golds), shipped.rows[digest]) in shipped.seeds, path
