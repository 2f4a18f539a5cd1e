"""PostgreSQL: its walls, its values, a server that goes away, own databases and their scores."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.asking import pick
from support.engine_cases import PEOPLE, POSTGRESQL, STRICT, VALUES, check_strict, check_value
from support.hostile_cases import Case
from support.own_yard import check_own, documents_of, own_task
from support.postgres import Server, served
from support.small_databases import GOLD, MIB, check_hostile, score_one, wait_for

from lm_eval_ext.benchmarks.magnifico import own
from lm_eval_ext.benchmarks.magnifico.records import Database
from lm_eval_ext.errors import DataError, LmEvalExtError
from lm_eval_ext.sql import Executor, Limits, Place, Verdict, databases_at
from lm_eval_ext.sql.values import Exact, Failure

pytest.importorskip("psycopg")
from lm_eval_ext.sql.engines.postgresql import PostgreSQLEngine
from lm_eval_ext.sql.engines.postgresql_sessions import GRANTS

pytestmark = pytest.mark.slow

TIGHT = Limits(timeout_s=1.0, max_rows=2_000, max_result_bytes=2_000_000)
PATIENT = replace(TIGHT, timeout_s=120.0)

ROLES = """
CREATE ROLE reader LOGIN; CREATE ROLE app LOGIN; CREATE ROLE secret LOGIN PASSWORD 'right';
CREATE ROLE files LOGIN; GRANT pg_read_server_files TO files;
CREATE ROLE maker LOGIN CREATEROLE; CREATE ROLE super_member LOGIN; GRANT admin TO super_member;
CREATE ROLE creator LOGIN; GRANT CREATE ON DATABASE people TO creator;
CREATE ROLE few LOGIN CONNECTION LIMIT 0; CREATE ROLE owner LOGIN;
CREATE ROLE schemer LOGIN; CREATE SCHEMA mine AUTHORIZATION schemer;
"""
MORE = """
CREATE TABLE wages (id INTEGER, wage INTEGER); INSERT INTO wages VALUES (1, 100);
CREATE FUNCTION raise_pay() RETURNS int LANGUAGE sql AS 'UPDATE people SET pay = 0; SELECT 3';
CREATE FUNCTION pay_of(people) RETURNS float8 LANGUAGE sql AS 'SELECT $1.pay';
CREATE FUNCTION wage_sum() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
  AS 'SELECT sum(wage) FROM wages';
CREATE FUNCTION head_count() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM people';
DO $$ BEGIN CREATE EXTENSION dblink; EXCEPTION WHEN OTHERS THEN NULL; END $$;
GRANT SELECT ON people, pets, adults TO reader, secret, files, creator, schemer;
GRANT INSERT ON pets TO app; CREATE TABLE owned (a INTEGER); ALTER TABLE owned OWNER TO owner;
"""


LONG = "raise_" + "x" * 57  # 63 bytes: a longer spelling means the same function
OWN_FUNCTIONS = f"""
CREATE FUNCTION leak(a int, b int) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT 1';
CREATE FUNCTION hidden(a int, b int) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT 1';
REVOKE EXECUTE ON FUNCTION hidden(int, int) FROM PUBLIC;
CREATE FUNCTION tame(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a + b';
CREATE OPERATOR @+@ (leftarg = int, rightarg = int, function = tame);
CREATE OPERATOR @-@ (leftarg = int, rightarg = int, function = hidden);
CREATE AGGREGATE leaks(int) (sfunc = leak, stype = int, initcond = '0');
CREATE AGGREGATE hides(int) (sfunc = hidden, stype = int, initcond = '0');
CREATE AGGREGATE tames(int) (sfunc = tame, stype = int, initcond = '0');
CREATE FUNCTION "{LONG}"() RETURNS int LANGUAGE sql AS 'SELECT 3';
CREATE FUNCTION "odd "" name"() RETURNS int LANGUAGE sql AS 'SELECT 3';
CREATE FUNCTION "Call me"() RETURNS int LANGUAGE sql STABLE AS 'SELECT 3';
CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE TABLE days (id int, felt mood); INSERT INTO days VALUES (1, 'glad'), (2, 'sad');
CREATE FUNCTION level_of(mood) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1';
CREATE CAST (mood AS int) WITH FUNCTION level_of(mood);
CREATE FUNCTION first_day() RETURNS mood LANGUAGE sql STABLE AS 'SELECT felt FROM days LIMIT 1';
CREATE FUNCTION held_back() RETURNS int LANGUAGE sql AS 'SELECT 3';
REVOKE EXECUTE ON FUNCTION held_back() FROM PUBLIC;
GRANT SELECT ON days TO reader;
"""


@pytest.fixture(scope="module")
def server(yard_sql: str) -> Iterator[Server]:
    databases = {"people": PEOPLE + ROLES, "yard": yard_sql}
    statements = (f"CREATE DATABASE {database}" for database in databases)
    with served(*statements) as server:
        for database, script in databases.items():
            with server.admin(database) as connection:
                connection.execute(script)
                connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        with server.admin() as connection:
            for statement in (MORE + OWN_FUNCTIONS).strip().removesuffix(";").split(";\n"):
                connection.execute(statement)
        yield server
        assert "terminated by signal" not in server.log


@pytest.fixture(scope="module")
def executor(server: Server) -> Iterator[Executor]:
    before = state(server)
    with Executor(databases_at(server.url()), workers=1, limits=PATIENT) as executor:
        yield executor
    assert state(server) == before
    assert [path.name for path in server.folder.iterdir() if "stolen" in path.name] == []
    wait_for_none(server, OTHERS)  # the backends of killed workers, too


@pytest.fixture(scope="module")
def impatient(server: Server, executor: Executor) -> Iterator[Executor]:
    """With a short limit of time; closed before ``executor``, which looks at what is left."""
    with Executor(executor.databases, workers=1, limits=TIGHT) as impatient:
        yield impatient


OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader'"
BUSY = f"{OTHERS} AND state <> 'idle'"
LOCKS = """
SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.usename = 'reader'
"""
STATE = """
SELECT (SELECT array_agg(p ORDER BY id) FROM people p)::text,
  (SELECT array_agg(p ORDER BY id) FROM pets p)::text,
  (SELECT array_agg(relname ORDER BY oid) FROM pg_class WHERE relnamespace >= 2200)::text,
  (SELECT array_agg(proname ORDER BY oid) FROM pg_proc WHERE pronamespace = 2200)::text,
  (SELECT array_agg(r) FROM pg_roles r WHERE rolname IN ('reader', 'stolen'))::text,
  (SELECT last_value FROM ticket),
  (SELECT count(*) FROM pg_largeobject_metadata), (SELECT count(*) FROM pg_db_role_setting)
"""


def wait_for_none(server: Server, *counts: str) -> None:
    """Waits until what queries count is over; a backend needs a moment to end."""
    with server.admin() as connection:
        wait_for(lambda: all(connection.execute(query).fetchone() == (0,) for query in counts))


def state(server: Server) -> Any:
    with server.admin() as connection:
        return connection.execute(STATE).fetchone()


@pytest.mark.long
@pytest.mark.parametrize("case", POSTGRESQL, ids=lambda case: case.name)
def test_a_hostile_query_does_no_harm(case: Case, fitting: Executor, server: Server) -> None:
    check_hostile(case, fitting, server.folder, TIGHT.max_memory_bytes + 128 * MIB)
    if case.statuses not in (("wrong",), ("correct",)):
        wait_for_none(server, BUSY, LOCKS)


@pytest.mark.parametrize(
    ("sql", "function"),
    [
        ("SELECT leaks(id) FROM people", "leaks"),
        ("SELECT LEAKS (id) FROM people", "LEAKS"),
        ("SELECT sum(id), leaks(id) OVER () FROM people GROUP BY id", "leaks"),
        ("SELECT hides(id) FROM people", "hides"),
        (f"SELECT {LONG}()", LONG),
        (f"SELECT {LONG}yz()", f"{LONG}yz"),
        (f'SELECT "{LONG}yz"()', f"{LONG}yz"),
        (f'SELECT "{LONG} and ""more"""()', LONG),
        ('SELECT "odd "" name"()', "odd"),
        ('SELECT \'"\', public."odd "" name" ()', "odd"),
        ("SELECT (p)./* */pay_of FROM people p", "pay_of"),
        ('SELECT (p). --\n "pay_of" FROM people p', "pay_of"),
    ],
)
def test_an_owners_function_by_any_spelling(executor: Executor, sql: str, function: str) -> None:
    verdict = score_one(executor, "people", GOLD, sql)
    assert verdict.status == "prediction_error"
    assert f"the function {function}" in verdict.reason
    assert "is not allowed: it is volatile" in verdict.reason


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT 1 @+@ 2", 3),
        ("SELECT tames(id) FROM people", 6),
        ('SELECT "Call me"()', 3),
        ("SELECT count(*) FROM days", 2),
        ("SELECT felt FROM days ORDER BY felt LIMIT 1", "glad"),
        ("SELECT count(*) FROM days WHERE felt = 'sad'", 1),
        ("SELECT felt::int FROM days WHERE id = 1", 1),
        ("SELECT '2'::int - 1", 1),
        ("SELECT CAST(age AS int) FROM people WHERE id = 1", 36),
        ("SELECT 1 = 1 AND 2 <> 1", 1),
        ("SELECT id AS leak FROM people WHERE id = 2", 2),
        ("SELECT first_day()", "glad"),
        ("SELECT max(kind) FROM pets", "owl"),
        ("SELECT 1 + count(*) FROM people", 4),
        ("SELECT 'leak' || 's'", "leaks"),
        ("SELECT 7 - -1", 8),
        ("SELECT pay_of FROM (SELECT 4 AS pay_of) x", 4),
    ],
)
def test_a_query_that_only_looks_like_such_a_call_is_legal(
    executor: Executor, sql: str, value: object
) -> None:
    assert executor.query("people", sql).rows == [(value,)]


INDIRECT_CALLS = [
    pytest.param(
        "CREATE OPERATOR === (leftarg = int, rightarg = int, function = noisy)",
        "the operator ===(integer,integer) calls the function noisy(integer,integer)",
        "SELECT 1 === 2",
        id="operator",
    ),
    pytest.param(
        "CREATE OPERATOR + (leftarg = pets, rightarg = int, function = noisy)",
        "the operator +(pets,integer) calls the function noisy(pets,integer)",
        "SELECT p + 1 FROM pets p",
        id="operator of rows",
    ),
    pytest.param(
        "CREATE CAST (pets AS int) WITH FUNCTION noisy(pets)",
        "the cast of pets to integer calls the function noisy(pets)",
        "SELECT p::int FROM pets p",
        id="cast",
    ),
    pytest.param(
        "CREATE CAST (pets AS int) WITH FUNCTION noisy(pets) AS IMPLICIT",
        "the cast of pets to integer calls the function noisy(pets)",
        "SELECT abs(p) FROM pets p",
        id="cast that is not written",
    ),
]
NOISY = """
CREATE TABLE pets (id int);
CREATE FUNCTION noisy(int, int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT $2';
CREATE FUNCTION noisy(pets, int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT $2';
CREATE FUNCTION noisy(pets) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT 1';
INSERT INTO pets VALUES (1);
GRANT SELECT ON pets TO reader;
"""


@pytest.mark.parametrize(("statement", "problem", "sql"), INDIRECT_CALLS)
def test_a_database_whose_functions_are_called_without_their_names(
    server: Server, statement: str, problem: str, sql: str
) -> None:
    """It is refused as a whole; after the REVOKE that the message names, the server refuses."""
    with server.admin("postgres") as admin:
        admin.execute("CREATE DATABASE indirect")
    try:
        with server.admin("indirect") as connection:
            connection.execute(NOISY)
            assert accepts(server.url("indirect"))
            connection.execute(statement)
            message = refusal(server.url("indirect"))
            assert problem in message
            revoke = message[message.index("REVOKE EXECUTE") :]
            connection.execute(revoke)
            connection.execute(revoke.replace("PUBLIC", "reader"))
        engine = PostgreSQLEngine(TIGHT)
        outcome = engine.run(server.url("indirect"), sql)
        engine.close()
        assert outcome == Failure("error", "permission denied for function noisy")
    finally:
        with server.admin("postgres") as admin:
            admin.execute("DROP DATABASE indirect WITH (FORCE)")


def accepts(url: str) -> bool:
    """Return whether an ordinary query runs there."""
    engine = PostgreSQLEngine(TIGHT)
    outcome = engine.run(url, "SELECT count(*) FROM pets")
    engine.close()
    return not isinstance(outcome, Failure)


def test_an_operator_whose_function_the_role_may_not_execute(executor: Executor) -> None:
    """Such an operator is no reason to refuse the database."""
    verdict = score_one(executor, "people", GOLD, "SELECT 1 @-@ 2")
    assert (verdict.status, verdict.reason) == (
        "prediction_error",
        "permission denied for function hidden",
    )


def test_a_function_that_the_role_may_not_call_is_refused_by_the_server(executor: Executor) -> None:
    verdict = score_one(executor, "people", GOLD, "SELECT held_back()")
    assert verdict == Verdict("prediction_error", "permission denied for function held_back")


def refusal(url: str) -> str:
    """Why a URL cannot be used, as a worker says it."""
    engine = PostgreSQLEngine(TIGHT)
    outcome = engine.run(url, "SELECT 1")
    engine.close()
    assert isinstance(outcome, Failure)
    assert outcome.kind == "unavailable"
    assert "\n" not in outcome.message
    return outcome.message


MAY = {
    "admin": "is a superuser",
    "super_member": "is a member of admin",
    "files": "is a member of pg_read_server_files",
    "maker": "may create roles, databases or replicas",
    "creator": "may create schemas in the database",
    "app": "may change public.pets",
    "owner": "may change public.owned",
    "schemer": "may create tables in the schema mine",
}


@pytest.mark.parametrize("role", MAY)
def test_a_role_that_may_more_than_read_is_refused(server: Server, role: str) -> None:
    message = refusal(server.url(role=role))
    assert f"the role {role} {MAY[role]}" in message
    assert "GRANT CONNECT ON DATABASE people TO reader; GRANT USAGE ON SCHEMA" in message


def test_the_grants_that_are_named_are_enough(server: Server) -> None:
    with server.admin() as connection:
        connection.execute(GRANTS.format(database="people").replace("reader", "granted"))
    with Executor(databases_at(server.url(role="granted")), workers=1) as executor:
        assert executor.query("people", GOLD).rows == [(3,)]


@pytest.mark.parametrize(
    ("url", "message"),
    [("postgresql://me:pass@host/shop", "the URL holds a password"),
     ("postgresql://me@host/shop?password=x", "the URL holds a password"),
     ("postgresql://me@host", "names no database")],
)  # fmt: skip
def test_a_url_that_is_refused(url: str, message: str) -> None:
    with pytest.raises(LmEvalExtError, match=message):
        databases_at(url)


def test_who_cannot_connect_is_told_why(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = {
        server.url(role="nobody"): 'role "nobody" does not exist',
        server.url("nowhere"): 'database "nowhere" does not exist',
        f"postgresql://reader@/people?host={server.folder}/none": "No such file or directory",
        server.url(role="few"): "each worker needs one: lower --workers",
        server.url(role="secret"): "set PGPASSWORD, or write the password to ~/.pgpass",
    }
    monkeypatch.setenv("PGPASSWORD", "wrong")
    for url, message in cases.items():
        assert message in refusal(url)
    monkeypatch.setenv("PGPASSWORD", "right")
    with Executor(databases_at(url), workers=1) as executor:
        assert executor.query("people", GOLD).rows == [(3,)]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        *VALUES, ("CAST(3 AS smallint)", 3), ("CAST(9 AS numeric) * 10000000000000000000",
         9 * 10**19), ("-0.5", Exact("-0.5")),
        ("1.0 / 3", 1 / 3), ("avg(id) / 7 FROM people", 2 / 7), ("100.0 / 3", 100 / 3),
        ("CAST(1.0 / 3 AS numeric(30, 20))", Exact("0.33333333333333333333")),
        ("CAST(0.1 AS real)", 0.1), ("CAST('NaN' AS numeric)", "NaN"),
        ("repeat('7', 400)::numeric", "7" * 400), ("DATE '0044-03-15 BC'", "0044-03-15 BC"),
        ("INTERVAL '1 month'", "30 days, 0:00:00"), ("'\\xaa'::bytea", b"\xaa"),
        ("ARRAY[1, NULL]", "{1,NULL}"), ("ROW(1, 'a')", "(1,a)"),
        ("'{\"a\": 1}'::json", '{"a": 1}'),
    ],
)  # fmt: skip
def test_an_expression_has_the_value_that_sqlite_would_store(
    executor: Executor, sql: str, value: object
) -> None:
    check_value(executor, sql, value)


def test_rows_come_in_batches_up_to_the_limit(executor: Executor) -> None:
    rows = executor.query("people", "SELECT g FROM generate_series(1, 1999) g ORDER BY g DESC").rows
    assert rows == [(number,) for number in range(1999, 0, -1)]
    empty = executor.query("people", "SELECT id, name FROM people WHERE false")
    assert empty == (("id", "name"), [])


POSTGRESQL_STRICT = [
    (
        "SELECT name FROM people",
        "SELECT name FROM people ORDER BY 1 DESC",
        "SELECT lower(name) FROM people",
    ),
    ("SELECT INTERVAL '1 day 12 hours'", "SELECT INTERVAL '36:00:00'", "SELECT INTERVAL '1 day'"),
    ("SELECT INTERVAL '1 year'", "SELECT INTERVAL '12 months'", "SELECT INTERVAL '365 days'"),
    ("SELECT INTERVAL '-1:30'", "SELECT INTERVAL '-90 min'", "SELECT INTERVAL '1:30'"),
    (
        "SELECT INTERVAL '1 mon -1 days +02:00:00.5'",
        "SELECT INTERVAL '29 days 2 hours 500 milliseconds'",
        "SELECT INTERVAL '1 mon 1 days 02:00:00.5'",
    ),
    ("SELECT INTERVAL '9000000 years'", "SELECT INTERVAL '9000000 years'", "SELECT INTERVAL '0'"),
    ("SELECT DATE 'infinity'", "SELECT TIMESTAMP 'infinity'", "SELECT DATE '9999-12-31'"),
    ("SELECT TIMETZ '10:00+02'", "SELECT TIMETZ '10:00:00.0+02'", "SELECT TIMETZ '08:00+00'"),
    ("SELECT -0.0::float8", "SELECT 0::float8", "SELECT 'nan'::float8"),
]


@pytest.mark.parametrize(("gold", "right", "wrong"), [*STRICT, *POSTGRESQL_STRICT])
def test_the_strict_rule_accepts_the_right_and_no_wrong_prediction(
    executor: Executor, gold: str, right: str, wrong: str
) -> None:
    check_strict(executor, gold, right, wrong)


def test_a_table_that_another_session_locks_is_no_verdict(
    server: Server, impatient: Executor
) -> None:
    with server.admin() as connection, connection.transaction():
        connection.execute("LOCK TABLE people IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DataError, match="locked by another session"):
            impatient.query("people", GOLD)


def test_an_own_database_is_asked_and_scored(server: Server, tmp_path: Path) -> None:
    prompt = check_own(server.url("yard"), tmp_path, "postgresql")
    assert "CREATE TABLE mast (\n    name text NOT NULL,\n    height real," in prompt
    assert "CREATE VIEW spare AS\n SELECT" in prompt
    assert "-- Using valid PostgreSQL, answer" in prompt
    assert "fore\t28.5\t1931" in prompt


def test_any_row_decides_about_the_data_s_checksum(server: Server) -> None:
    yard = {"yard": Database(Place("postgresql", server.url("yard")))}
    sums = [own.digest(yard)]
    with server.admin("yard") as connection:
        for height in (1, -1):
            connection.execute("UPDATE mast SET height = height + %s WHERE name = 'fore'", [height])
            sums.append(own.digest(yard))
    assert sums[0] == sums[2] != sums[1]


def test_a_server_that_goes_away_ends_no_run(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    docs = list(documents_of(server.url("yard"), tmp_path))
    task = own_task(server.url("yard"), tmp_path)
    before = task.process_results(docs[0], [docs[0]["query"]])
    assert pick(before["rows"], "correct", database="original") == 1
    with server.away():
        for doc in docs[1:4]:
            scores = task.process_results(doc, [f"SELECT '{doc['id']}'"])
            assert not scores.get("rows")
        again = task.process_results(docs[0], [docs[0]["query"]])
    assert pick(again["rows"], "correct", database="original") == 1
    assert task.excluded()["database_unavailable"] == [doc["id"] for doc in docs[1:4]]
    assert caplog.text.count("score this run's samples again with --model recorded") == 1


def test_a_restart_is_waited_for(server: Server) -> None:
    with Executor(databases_at(server.url()), workers=1) as executor:
        assert executor.query("people", GOLD).rows == [(3,)]
        with server.away():
            pass
        assert executor.query("people", GOLD).rows == [(3,)]
