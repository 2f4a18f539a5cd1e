"""DuckDB: its walls, its values, files and folders, and own databases from prompt to score."""

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.databases import written
from support.engine_cases import DUCKDB, PEOPLE, STRICT, VALUES, check_strict, check_value
from support.hostile_cases import Case
from support.own_yard import check_own
from support.small_databases import GOLD, MIB, check_hostile, pids, score_one, state_of

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
from lm_eval_ext.sql.engines.base import QueryClock

duckdb = pytest.importorskip("duckdb")

pytestmark = pytest.mark.slow

TIGHT = Limits(
    timeout_s=1.0, max_rows=2_000, max_result_bytes=2_000_000, max_memory_bytes=192 * MIB
)
PATIENT = replace(TIGHT, timeout_s=120.0)

OWN_MACROS = """
CREATE MACRO half(x) AS x / 2;
CREATE MACRO everybody() AS TABLE FROM people;
CREATE MACRO wait_for(seconds) AS pg_sleep(seconds);
CREATE MACRO wait_twice() AS wait_for(1) IS NULL AND wait_for(1) IS NULL;
CREATE MACRO rows_of(name) AS TABLE FROM query_table(name);
CREATE VIEW sleepy AS SELECT pg_sleep(1000) AS slept;
"""


def write(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A database whose folder must hold the same bytes after the tests, and nothing else."""
    path = write(tmp_path_factory.mktemp("duckdb") / "people.duckdb", PEOPLE + OWN_MACROS)
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
def test_a_hostile_query_does_no_harm(case: Case, fitting: Executor, people: Path) -> None:
    check_hostile(case, fitting, people.parent, 320 * MIB)  # with the driver's own


def test_a_query_that_sleeps_is_stopped_and_its_worker_goes_on(impatient: Executor) -> None:
    """Nothing that a query may call sleeps, so a view of the owner does here."""
    assert score_one(impatient, "people", GOLD, GOLD).correct
    workers = pids(impatient)
    verdict = score_one(impatient, "people", GOLD, "SELECT slept FROM sleepy")
    assert (verdict.status, verdict.reason) == ("prediction_timeout", "stopped after 1 s")
    assert pids(impatient) == workers


@pytest.mark.parametrize(
    ("processor", "real", "counted"),
    [
        pytest.param(3.0, 3.0, 3.0, id="works all the time"),
        pytest.param(3.0, 5.0, 3.0, id="shares a processor"),
        pytest.param(0.0, 5.0, 2.5, id="sleeps"),
        pytest.param(1.0, 5.0, 2.5, id="mostly sleeps"),
    ],
)
def test_the_clock_of_a_query(
    processor: float, real: float, counted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {"process_time": 100.0, "monotonic": 200.0}
    monkeypatch.setattr(time, "process_time", lambda: now["process_time"])
    monkeypatch.setattr(time, "monotonic", lambda: now["monotonic"])
    clock = QueryClock()
    now["process_time"] += processor
    now["monotonic"] += real
    assert clock() == counted


def test_no_view_function_or_setting_shows_where_files_lie(people: Path) -> None:
    """Whatever DuckDB offers: all its views, functions of no or one argument, and settings."""
    with duckdb.connect(str(people), read_only=True) as connection:
        views = connection.execute(
            "SELECT format('{}.{}', schema_name, view_name) FROM duckdb_views() WHERE internal"
        ).fetchall()
        functions = connection.execute(
            "SELECT DISTINCT function_name, function_type FROM duckdb_functions() "
            "WHERE function_name ~ '^\\w+$'"
        ).fetchall()
        settings = connection.execute("SELECT name FROM duckdb_settings()").fetchall()
    queries = [f"FROM {view}" for (view,) in views]
    queries += [f"SELECT current_setting('{setting}')" for (setting,) in settings]
    for function, function_type in functions:
        select = "FROM" if function_type.startswith("table") else "SELECT"
        arguments = ("", "'people'", "'duckdb_databases'")
        queries += [f"{select} {function}({argument})" for argument in arguments]
    engine = DIALECTS["duckdb"].engine(replace(TIGHT, max_rows=100_000))
    outcomes = {query: str(engine.run(str(people), query)) for query in queries}
    engine.close()
    assert len(outcomes) > 1_500
    assert "'people'" in outcomes["SELECT current_database()"]
    for query, outcome in outcomes.items():
        assert str(people.parent) not in outcome, query
        assert str(Path.home() / ".duckdb") not in outcome, query


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

    def verdicts_of(queries: Iterable[str], workers: int = 1) -> dict[str, Verdict]:
        with Executor(databases_at(people), workers=workers, limits=limits) as executor:
            rows = [("people", GOLD, query) for query in queries]
            return dict(zip(queries, executor.score(rows), strict=True))

    alone = {query: verdicts_of([query])[query] for query in HUNGRY}
    assert {verdict.status for verdict in alone.values()} == {"wrong", "prediction_too_large"}
    assert verdicts_of(HUNGRY) == alone
    assert verdicts_of(HUNGRY[::-1]) == alone
    assert verdicts_of(HUNGRY, workers=2) == alone
    backwards = HUNGRY[::-1]
    with Executor(databases_at(people), workers=1, limits=limits) as executor:
        as_golds = executor.score([("people", query, query + " ") for query in backwards])
        for query, verdict in zip(backwards, as_golds, strict=True):
            runs = alone[query].status == "wrong"
            assert verdict.status == ("correct" if runs else "gold_error"), query


def test_a_query_needs_no_new_thread(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that takes all memory would leave no stack to an ordinary thread."""
    engine = DIALECTS["duckdb"].engine(TIGHT)

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert engine.run(str(people), GOLD) == Rows(("count_star()",), [(3,)])
    engine.close()


DUCKDB_VALUES = [
    ("CAST(3 AS TINYINT)", 3),
    ("CAST(2 AS HUGEINT) ** 0 * 5", 5.0),
    ("CAST(9 AS HUGEINT) * 10000000000000000000", 9 * 10**19),
    ("CAST(5 AS BIGNUM)", 5),
    ("INTERVAL 1 DAY", "1 day, 0:00:00"),
    ("BLOB '\\xAA'", b"\xaa"),
    ("[1, NULL, 2.5]", "[1, null, 2.5]"),
    ("[1.0, 2.50]", "[1, 2.5]"),
    ("{'a': true, 'd': DATE '2020-01-01'}", '{"a": 1, "d": "2020-01-01"}'),
    ("{'a': [{'t': TIMESTAMP '2020-01-01 00:00'}]}", '{"a": [{"t": "2020-01-01"}]}'),
    ("MAP {'k': [BLOB '\\x01']}", '{"k": ["\\\\x01"]}'),
    ("MAP {[DATE 'infinity']: 1}", '{"key": [["infinity"]], "value": [1]}'),
    ("ROW(1, TIMESTAMPTZ '2020-01-01 02:00:00+02')", '[1, "2020-01-01"]'),
    ("union_value(day := DATE 'infinity')", "infinity"),
    ("CAST([1.50] AS VARIANT)", "[1.5]"),
    ("CAST('a' AS VARIANT)", "a"),
    (
        "CAST('12345678-1234-5678-1234-567812345678' AS UUID)",
        "12345678-1234-5678-1234-567812345678",
    ),
    ("DATE '9999-12-31'", "9999-12-31"),
    ("TIMESTAMP '9999-12-31 23:59:59.999999'", "9999-12-31 23:59:59.999999"),
    ("TIMESTAMP '20000-01-01 00:00:00'", "20000-01-01"),
    ("TIMESTAMP 'infinity'", "infinity"),
    ("TIMESTAMPTZ '-infinity'", "-infinity"),
    ("DATE 'infinity'; -- open", "infinity"),
    ("DATE '0001-01-01'", "0001-01-01"),
    ("TIME '10:00:00.120'", "10:00:00.12"),
    ("TIME '24:00:00'", "24:00:00"),
]


@pytest.mark.parametrize(("sql", "value"), [*VALUES, *DUCKDB_VALUES])
def test_an_expression_has_the_value_that_sqlite_would_store(
    executor: Executor, sql: str, value: object
) -> None:
    check_value(executor, sql, value)


# What Python's values would not tell apart, or would tell apart although DuckDB calls it equal.
DUCKDB_STRICT = [
    ("CAST('nan' AS DOUBLE)", "CAST('nan' AS FLOAT)", "NULL"),
    ("DATE '9999-12-31'", "DATE '9999-12-30' + 1", "DATE 'infinity'"),
    ("TIMESTAMP '-infinity'", "CAST(DATE '-infinity' AS TIMESTAMP)", "TIMESTAMP '0001-01-01'"),
    ("[DATE '9999-12-31']", "[DATE '9999-12-30' + 1]", "[DATE 'infinity']"),
    ("{'d': DATE 'infinity'}", "{'d': TIMESTAMP 'infinity'}", "{'d': DATE '9999-12-31'}"),
    ("MAP {1: DATE 'infinity'}", "MAP {1: TIMESTAMP 'infinity'}", "MAP {1: DATE '9999-12-31'}"),
    (
        "MAP {DATE 'infinity': 1, DATE '9999-12-31': 2}",
        "MAP {TIMESTAMP 'infinity': 1, TIMESTAMP '9999-12-31': 2}",
        "MAP {DATE '9999-12-31': 2}",
    ),
    ("[[TIMESTAMPTZ 'infinity']]", "[[TIMESTAMP 'infinity']]", "[[TIMESTAMPTZ '-infinity']]"),
    (
        "TIMESTAMP_NS '2020-01-01 10:00:00.000000001'",
        "TIMESTAMP_NS '2020-01-01 10:00:00.0000000010'",
        "TIMESTAMP_NS '2020-01-01 10:00:00.000000002'",
    ),
    ("TIMESTAMP_NS '2020-01-01'", "DATE '2020-01-01'", "TIMESTAMP_NS '2020-01-01 00:00:01'"),
    ("TIME_NS '10:00:00.12'", "TIME '10:00:00.120'", "TIME_NS '10:00:00.120000001'"),
    (
        "[CAST('1234567890123456789.01' AS DECIMAL(38, 2))]",
        "[CAST('1234567890123456789.010' AS DECIMAL(38, 3))]",
        "[CAST('1234567890123456789.02' AS DECIMAL(38, 2))]",
    ),
    ("[0.1]", "[CAST(0.1 AS DOUBLE)]", "[0.11]"),
    ("[CAST(2 AS DOUBLE)]", "[2]", "[2.5]"),
    ("[CAST(-0.0 AS DOUBLE)]", "[CAST(0 AS DOUBLE)]", "[CAST('nan' AS DOUBLE)]"),
    ("[BLOB 'aa']", "['aa'::BLOB]", "['6161']"),
    ("INTERVAL 1 MONTH", "INTERVAL 30 DAY", "INTERVAL 31 DAY"),
    ("CAST(7 AS BIGNUM)", "7", "CAST(8 AS BIGNUM)"),
    (
        "CAST('170141183460469231731687303715884105727' AS HUGEINT)",
        "CAST('170141183460469231731687303715884105727' AS UHUGEINT)",
        "CAST('170141183460469231731687303715884105726' AS HUGEINT)",
    ),
    ("TIMETZ '10:00:00+02'", "TIMETZ '10:00:00+02:00'", "TIMETZ '08:00:00+00'"),
    ("CAST('101' AS BIT)", "CAST('101' AS BIT)", "CAST('1101' AS BIT)"),
]


def selected(expressions: tuple[str, str, str]) -> tuple[str, ...]:
    """Return queries for expressions."""
    return tuple(f"SELECT {expression}" for expression in expressions)


@pytest.mark.parametrize(("gold", "right", "wrong"), [*STRICT, *map(selected, DUCKDB_STRICT)])
def test_the_strict_rule_accepts_the_right_and_no_wrong_prediction(
    executor: Executor, gold: str, right: str, wrong: str
) -> None:
    check_strict(executor, gold, right, wrong)


def test_a_database_that_cannot_be_used_is_one_line(people: Path, tmp_path: Path) -> None:
    cases: dict[str, str] = {
        "nowhere.duckdb": "does not exist",
        "empty": "no database in the folder",
        "tables": "docs/sql_score.md makes one of Parquet or CSV files",
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
    databases = databases_at(tmp_path / "log.duckdb")
    with (
        duckdb.connect(str(tmp_path / "log.duckdb")),
        Executor(databases, workers=1) as executor,
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
    database = Databases(tmp_path).find("people")
    assert database is not None
    with pytest.raises(OptionError, match=r"people\.duckdb: only SQLite databases can be used"):
        sqlite_path(database)


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
