"""Suites as files: what is drawn keeps to the original's rules, and mistakes are caught by it."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from support.databases import opened as in_memory
from support.databases import written

from bench.judge.__main__ import pack
from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.errors import DataError, LmEvalExtError
from lm_eval_ext.sql import suite as suites
from lm_eval_ext.sql.schema import schema_of
from lm_eval_ext.sql.suite import (
    COPY,
    Shipped,
    Suite,
    SuiteRunners,
    content_hash,
    gold_id,
    populate,
    read_shipped,
)
from lm_eval_ext.sql.suite.columns import read_domain
from lm_eval_ext.sql.suite.files import AddedRows

HARBOUR = """
CREATE TABLE crews (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, lead INTEGER REFERENCES
  crews(id));
CREATE TABLE ships (
  id INTEGER PRIMARY KEY, name TEXT, crew_id INTEGER REFERENCES crews(id), tons INTEGER,
  built DATE, state TEXT CHECK (state IN ('afloat', 'sunk')), fee DECIMAL(6, 2)
);
CREATE TABLE stays (ship_id INTEGER, day DATE, berth TEXT, PRIMARY KEY (ship_id, day),
  FOREIGN KEY (ship_id) REFERENCES ships(id));
CREATE TABLE empty (id INTEGER PRIMARY KEY, note TEXT, ship_id INTEGER REFERENCES ships(id));
CREATE TABLE mixed (a, b);
CREATE TABLE eggs (id INTEGER PRIMARY KEY, hen INTEGER REFERENCES hens(id));
CREATE TABLE hens (id INTEGER PRIMARY KEY, egg INTEGER REFERENCES eggs(id));
CREATE VIEW big AS SELECT * FROM ships WHERE tons > 500;
CREATE VIEW broken AS SELECT no_such_column FROM ships;
INSERT INTO crews VALUES (1, 'North', 1), (2, 'East', 1), (3, 'South', 2);
INSERT INTO ships VALUES
  (1, 'Anna', 1, 400, '1987-07-15', 'afloat', 10.5), (2, 'Bert', 1, 700, '1988-08-01', 'sunk', 20),
  (3, 'Cleo', 2, 900, '0000-00-00', 'afloat', 7.25),
  (4, 'Dora', NULL, 120, '1990-01-31', 'sunk', 3);
INSERT INTO stays VALUES (1, '2020-01-01', 'N1'), (1, '2020-02-29', 'N2'), (2, '2020-01-01', 'S1');
INSERT INTO mixed VALUES (1, 'x'), ('two', 2.5), (NULL, x'00');
INSERT INTO eggs VALUES (1, 1), (2, 1);
INSERT INTO hens VALUES (1, 1), (2, 2);
CREATE TRIGGER watch AFTER INSERT ON ships BEGIN DELETE FROM crews; END;
"""

GOLDS = (
    "SELECT name FROM ships WHERE tons > 500",
    "SELECT name FROM ships WHERE built >= '1987-07-01' AND built < '1987-09-01'",
    "SELECT c.name, COUNT(*) FROM crews AS c JOIN ships AS s ON c.id = s.crew_id GROUP BY c.id",
    "SELECT name FROM ships WHERE tons > (SELECT AVG(tons) FROM ships)",
    "SELECT name FROM ships WHERE state IN (SELECT state FROM ships GROUP BY state "
    "ORDER BY COUNT(*) DESC LIMIT 1)",
    "SELECT name FROM crews WHERE id NOT IN (SELECT crew_id FROM ships WHERE state = 'sunk')",
    "SELECT ship_id FROM stays GROUP BY ship_id HAVING COUNT(*) > 2",
    "SELECT * FROM broken",
    "SELECT name FROM ships WHERE name LIKE '%an%'",
    "SELECT name FROM big WHERE state = 'sunk'",
)

MISTAKES = {
    0: ("SELECT name FROM ships WHERE tons >= 500", "SELECT name FROM ships WHERE id > 500",
        "SELECT DISTINCT name FROM ships WHERE tons > 500"),
    1: ("SELECT name FROM ships WHERE strftime('%m', built) IN ('07', '08')",
        "SELECT name FROM ships WHERE built >= '1987-07-01' AND built <= '1987-09-01'"),
    2: ("SELECT c.name, COUNT(*) FROM crews AS c LEFT JOIN ships AS s ON c.id = s.crew_id "
        "GROUP BY c.id",
        "SELECT c.name, COUNT(DISTINCT s.state) FROM crews AS c JOIN ships AS s "
        "ON c.id = s.crew_id GROUP BY c.id"),
    3: ("SELECT name FROM ships WHERE tons >= (SELECT AVG(tons) FROM ships)",
        "SELECT name FROM ships WHERE tons > (SELECT AVG(id) FROM ships)"),
    4: ("SELECT name FROM ships WHERE state IN (SELECT MAX(state) FROM ships)",
        "SELECT name FROM ships WHERE state IN (SELECT state FROM ships GROUP BY state "
        "HAVING COUNT(*) > 1)"),
    5: ("SELECT name FROM crews WHERE id IN (SELECT crew_id FROM ships WHERE state = 'afloat')",),
    6: ("SELECT ship_id FROM stays GROUP BY ship_id HAVING COUNT(*) >= 2",
        "SELECT ship_id FROM stays GROUP BY ship_id HAVING COUNT(*) > 3"),
    8: ("SELECT name FROM ships WHERE name LIKE '%an'",
        "SELECT name FROM ships WHERE name LIKE 'an%'"),
    9: ("SELECT name FROM big", "SELECT name FROM ships WHERE state = 'sunk'"),
}  # fmt: skip
"""By the number of the gold."""

RIGHT = {
    0: ("SELECT name FROM ships WHERE tons >= 501", "SELECT name FROM big ORDER BY tons"),
    1: ("SELECT name FROM ships WHERE strftime('%Y-%m', built) BETWEEN '1987-07' AND '1987-08'",
        "SELECT name FROM ships WHERE date(built) BETWEEN '1987-07-01' AND '1987-08-31'"),
    2: ("SELECT COUNT(s.id), c.name FROM ships AS s JOIN crews AS c ON c.id = s.crew_id "
        "GROUP BY c.name ORDER BY 1 DESC",),
    3: ("SELECT name FROM ships, (SELECT AVG(tons) AS mean FROM ships) WHERE tons > mean",),
    6: ("SELECT DISTINCT ship_id FROM stays AS s WHERE (SELECT COUNT(*) FROM stays AS o WHERE "
        "o.ship_id = s.ship_id) >= 3",),
}  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("original") / "harbour.sqlite", HARBOUR)


@pytest.fixture(scope="module")
def harbour_suite(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return populate("harbour", original, GOLDS, tmp_path_factory.mktemp("suites"))


def opened(suite: Suite, name: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{suite.path(name).as_uri()}?mode=ro", uri=True)


def test_several_databases_judge_each_gold_that_runs(harbour_suite: Suite) -> None:
    assert len(harbour_suite.names) >= suites.build.RANDOM_SEEDS
    assert set(harbour_suite.judges) == {gold_id(gold) for gold in GOLDS if gold != GOLDS[7]}
    assert min(len(harbour_suite.judges_of(gold)) for gold in GOLDS if gold != GOLDS[7]) > 1
    assert harbour_suite.judges_of(GOLDS[7]) == ()


def test_mistakes_are_wrong_and_right_queries_right(harbour_suite: Suite, original: Path) -> None:
    judge = SuiteRunners(harbour_suite, original)
    for number, queries in MISTAKES.items():
        for sql in queries:
            assert judge.wrong_on(GOLDS[number], sql) is not None, sql
    for number, queries in RIGHT.items():
        for sql in (GOLDS[number], *queries):
            assert judge.wrong_on(GOLDS[number], sql) is None, sql
    judge.close()


def test_rows_keep_to_the_originals_rules(harbour_suite: Suite, original: Path) -> None:
    with closing(sqlite3.connect(original)) as original_connection:
        schema = schema_of(original_connection)
        domains = {}
        for table in schema.values():
            if table.view:
                continue
            for column in table.columns:
                domain = read_domain(original_connection, table, column)
                domains[table.name, column.name] = domain
    for name in harbour_suite.names:
        with closing(opened(harbour_suite, name)) as connection:
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert connection.execute("SELECT COUNT(*) FROM empty").fetchone()[0] > 0
            for (table_name, column_name), domain in domains.items():
                rows = connection.execute(f"SELECT {column_name} FROM {table_name}")
                values = {value for (value,) in rows}
                assert domain.has_nulls or None not in values, (table_name, column_name)
                for value in values - {None, *domain.values}:
                    assert domain.fits(value), (table_name, column_name, value)


def test_a_suite_is_found_complete_and_made_anew_when_it_is_not(
    harbour_suite: Suite, original: Path
) -> None:
    file = harbour_suite.path("small-0")
    before = file.stat().st_mtime_ns
    assert populate("harbour", original, GOLDS, harbour_suite.folder) == harbour_suite
    assert file.stat().st_mtime_ns == before
    file.unlink()
    again = populate("harbour", original, GOLDS, harbour_suite.folder)
    assert again.digest == harbour_suite.digest
    assert file.is_file()
    assert (
        populate("harbour", original, GOLDS[:3], harbour_suite.folder.parent / "fewer").key
        != harbour_suite.key
    )


def test_rows_do_not_depend_on_hashes(harbour_suite: Suite, original: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from lm_eval_ext.sql.suite import populate;"
        "print(populate('harbour', Path(sys.argv[1]), sys.argv[3:], Path(sys.argv[2])).digest)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(original), str(tmp_path), *GOLDS],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == harbour_suite.digest


def test_shipped_seeds_give_the_same_suite(
    harbour_suite: Suite, original: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "suites.json"
    file.write_text(pack([harbour_suite]))
    assert not any(gold in file.read_text() for gold in GOLDS)
    again = populate("harbour", original, GOLDS, tmp_path / "a", read_shipped(tmp_path))
    assert (again.digest, again.content_hashes) == (
        harbour_suite.digest,
        harbour_suite.content_hashes,
    )
    assert "anew" not in caplog.text
    # Another version of SQLite or sqlglot gives other rows: they are checked anew.
    noted = json.loads(file.read_text())
    noted["databases"][harbour_suite.key]["hashes"][1] = "0" * 16
    file.write_text(json.dumps(noted))
    with caplog.at_level("INFO"):
        rebuilt = populate("harbour", original, GOLDS, tmp_path / "b", read_shipped(tmp_path))
    assert rebuilt.digest == harbour_suite.digest
    assert caplog.text.count("checks run anew") == 1


def test_shipped_rows_make_a_populated_copy(original: Path, tmp_path: Path) -> None:
    rows: AddedRows = {
        "ships": [[5, 5, "Anna", 2, 500, "1987-09-01", "afloat", 1.5]],
        "mixed": [[9, 3, {"blob": "ff"}]],
    }
    suite = populate("harbour", original, GOLDS, tmp_path, Shipped({sha256_of(original): rows}, {}))
    assert suite.names[0] == COPY
    assert COPY in suite.judges_of(GOLDS[0])
    assert suite.path(COPY).name == "harbour.sqlite"
    with closing(opened(suite, COPY)) as connection:
        assert connection.execute("SELECT b FROM mixed WHERE rowid = 9").fetchone() == (b"\xff",)
        assert connection.execute("SELECT COUNT(*) FROM crews").fetchone() == (3,)


def test_content_does_not_depend_on_order_and_case_but_on_every_value() -> None:
    def digest(script: str) -> str:
        with in_memory(script) as connection:
            return content_hash(connection, schema_of(connection))

    reference = digest("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, NULL);")
    assert reference == digest("CREATE TABLE T (B, A); INSERT INTO T VALUES (NULL, 2), ('x', 1);")
    changed = {
        digest(f"CREATE TABLE t (a, b); INSERT INTO t VALUES {rows};")
        for rows in (
            "(1, 'x')", "(1, 'x'), (2, NULL), (2, NULL)", "(1.0, 'x'), (2, NULL)",
            "('1', 'x'), (2, NULL)", "(1, x'78'), (2, NULL)", "(1, 'x'), (2, '')",
            "(1, NULL), (2, 'x')",
        )
    }  # fmt: skip
    assert len({reference, *changed}) == 8


def test_bad_input_is_one_line(original: Path, tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("no database" * 100)
    locked = written(tmp_path / "locked.sqlite", HARBOUR)
    with closing(sqlite3.connect(locked, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        for path, message in (
            (tmp_path / "text.sqlite", "cannot read the database"),
            (locked, "another program is writing to it"),
        ):
            with pytest.raises(DataError, match=message) as caught:
                populate("x", path, GOLDS, tmp_path / "out")
            assert "\n" not in str(caught.value)
    (tmp_path / "file").touch()
    with pytest.raises(LmEvalExtError, match="cannot write"):
        populate("x", original, GOLDS[:1], tmp_path / "file")
    assert not (tmp_path / "out").exists()
