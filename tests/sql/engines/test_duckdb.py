"""DuckDB: its walls, its values, files and folders, and own databases from prompt to score."""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from engine_cases import DUCKDB, PEOPLE, STRICT, VALUES, check_strict, check_value
from hostile_cases import Case
from own_yard import check_own
from small_databases import GOLD, MIB, check_hostile, score_one, state_of
from support.databases import written

from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.sql import (
    DIALECTS,
    Databases,
    Executor,
    Limits,
    Rows,
    Verdict,
    databases_at,
    sqlite_path,
)

duckdb = pytest.importorskip("duckdb")

pytestmark = pytest.mark.slow

TIGHT = Limits(
    timeout_s=1.0, max_rows=2_000, max_result_bytes=2_000_000, max_memory_bytes=192 * MIB
)
PATIENT = replace(TIGHT, timeout_s=120.0)


def write(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A database whose folder must hold the same bytes after the tests, and nothing else."""
    path = write(tmp_path_factory.mktemp("duckdb") / "people.duckdb", PEOPLE)
    before = state_of(path.parent)
    yield path
    assert state_of(path.parent) == before


@pytest.fixture(scope="module")
def executor(people: Path) -> Iterator[Executor]:
    with Executor(databases_at(people), workers=1, limits=PATIENT) as executor:
        yield executor


@pytest.fixture(scope="module")
def impatient(people: Path) -> Iterator[Executor]:
    with Executor(databases_at(people), workers=1, limits=TIGHT) as executor:
        yield executor


@pytest.mark.long
@pytest.mark.parametrize("case", DUCKDB, ids=lambda case: case.name)
def test_hostile_query(case: Case, fitting: Executor, people: Path) -> None:
    check_hostile(case, fitting, people.parent, 320 * MIB)  # with the driver's own


# Some leave memory behind that the process does not give back; one needs more than there is.
HUNGRY = [
    *(f"SELECT length(repeat('x', {size}000000))" for size in (20, 40, 60, 80)),
    "SELECT length(string_agg(x, '')) FROM (SELECT repeat('x', 90000) AS x FROM range(300))",
    "SELECT i, i + 1, i + 2, i + 3 FROM range(99000) t(i)",
    "SELECT repeat('x', 50000) || i FROM range(600) t(i)",
]


@pytest.mark.long
def test_a_verdict_does_not_depend_on_what_ran_before(people: Path) -> None:
    limits = Limits(timeout_s=120, max_memory_bytes=192 * MIB)

    def asked(queries: Iterable[str], workers: int = 1) -> dict[str, Verdict]:
        with Executor(databases_at(people), workers=workers, limits=limits) as executor:
            rows = [("people", GOLD, query) for query in queries]
            return dict(zip(queries, executor.score(rows), strict=True))

    alone = {query: asked([query])[query] for query in HUNGRY}
    assert {verdict.status for verdict in alone.values()} == {"wrong", "prediction_too_large"}
    assert asked(HUNGRY) == asked(HUNGRY[::-1]) == asked(HUNGRY, workers=2) == alone
    with Executor(databases_at(people), workers=1, limits=limits) as executor:
        golds = list(executor.score([("people", query, query + " ") for query in HUNGRY[::-1]]))
    assert [verdict.status for verdict in golds] == [
        "gold_error" if alone[query].status != "wrong" else "correct" for query in HUNGRY[::-1]
    ]


def test_a_query_needs_no_new_thread(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose stack a query that takes all memory would not leave."""
    engine = DIALECTS["duckdb"].engine(TIGHT)

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert engine.run(str(people), GOLD) == Rows(("count_star()",), [(3,)])
    engine.close()


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        *VALUES, ("CAST(3 AS TINYINT)", 3), ("CAST(2 AS HUGEINT) ** 0 * 5", 5.0),
        ("CAST(9 AS HUGEINT) * 10000000000000000000", 9 * 10**19),
        ("INTERVAL 1 DAY", "1 day, 0:00:00"),
        ("BLOB '\\xAA'", b"\xaa"), ("[1, NULL, 2.5]", "[1, null, 2.5]"),
        ("{'a': true, 'd': DATE '2020-01-01'}", '{"a": 1, "d": "2020-01-01"}'),
        ("MAP {'k': [BLOB '\\x01']}", '{"k": ["01"]}'),
        ("CAST('12345678-1234-5678-1234-567812345678' AS UUID)",
         "12345678-1234-5678-1234-567812345678"),
        ("DATE '9999-12-31'", "9999-12-31"),
        ("TIMESTAMP '9999-12-31 23:59:59.999999'", "9999-12-31 23:59:59.999999"),
        ("TIMESTAMP 'infinity'", "infinity"), ("TIMESTAMPTZ '-infinity'", "-infinity"),
        ("DATE 'infinity'; -- open", "infinity"), ("DATE '0001-01-01'", "0001-01-01"),
    ],
)  # fmt: skip
def test_values(executor: Executor, sql: str, value: object) -> None:
    check_value(executor, sql, value)


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [*STRICT, ("SELECT CAST('nan' AS DOUBLE)", "SELECT CAST('nan' AS FLOAT)", "SELECT NULL")],
)
def test_strict_semantics(executor: Executor, gold: str, right: str, wrong: str) -> None:
    check_strict(executor, gold, right, wrong)


def test_what_cannot_be_used_is_one_line(people: Path, tmp_path: Path) -> None:
    cases: dict[str, str] = {
        "nowhere.duckdb": "does not exist",
        "empty": "no database in the folder",
        "tables": "docs/sql.md makes one of Parquet or CSV files",
        "text.duckdb": "neither a SQLite nor a DuckDB database",
        "log.duckdb": "unmerged changes in log.duckdb.wal",
        "mysql://me@host/db": "mysql://... is no database that can be used",
    }
    for folder in ("empty", "tables"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tables" / "a.csv").write_text("a\n1\n")
    (tmp_path / "text.duckdb").write_text("no database")
    (tmp_path / "log.duckdb").write_bytes(people.read_bytes())
    (tmp_path / "log.duckdb.wal").write_text("rows")
    for name, message in cases.items():
        source = name if "://" in name else str(tmp_path / name)
        with pytest.raises(LmEvalExtError) as raised:
            databases_at(source)
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)
    (tmp_path / "log.duckdb.wal").unlink()
    known = databases_at(tmp_path / "log.duckdb")
    with (
        duckdb.connect(str(tmp_path / "log.duckdb")),
        Executor(known, workers=1) as executor,
        pytest.raises(DataError, match=r"cannot open it .*lock"),
    ):
        executor.query("log", GOLD)


def test_engines_are_not_mixed(people: Path, tmp_path: Path) -> None:
    (tmp_path / "people.duckdb").write_bytes(people.read_bytes())
    written(tmp_path / "other.sqlite", "CREATE TABLE t (a)")
    with Executor(tmp_path, workers=1) as executor:
        assert score_one(executor, "other", "SELECT 1", "SELECT 1").correct
        with pytest.raises(OptionError, match="a database of duckdb among those of sqlite"):
            score_one(executor, "people", GOLD, GOLD)
    place = Databases(tmp_path).find("people")
    assert place is not None
    with pytest.raises(OptionError, match=r"people\.duckdb: only SQLite databases can be used"):
        sqlite_path(place)


def test_without_the_driver_its_extra_is_named(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lm_eval_ext.errors.find_spec", lambda _: None)
    with pytest.raises(OptionError, match=r"pip install '\.\[duckdb\]'"):
        databases_at(people)
    with pytest.raises(OptionError, match=r"pip install '\.\[postgres\]'"):
        databases_at("postgresql://reader@localhost/shop")


def test_an_own_database_is_asked_and_scored(
    tmp_path: Path, yard_sql: str, kept_cache: Path
) -> None:
    database = write(tmp_path / "yard.duckdb", yard_sql)
    before = database.read_bytes()
    prompt = check_own(str(database), tmp_path, "duckdb")
    assert "CREATE VIEW spare AS SELECT" in prompt
    assert "-- Using valid DuckDB, answer" in prompt
    assert "fore\t28.5\t1931" in prompt
    assert database.read_bytes() == before
