"""Populated copies of DuckDB and PostgreSQL, from the columns' types to the tasks' scores."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from drafted import drafts
from hypothesis import given
from hypothesis import strategies as st
from support.generated import built
from support.postgres import Server, served
from support.tasks import load_task

from lm_eval_ext.benchmarks.magnifico import gold_files, near_misses, own
from lm_eval_ext.benchmarks.magnifico.generate import folder
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql import Executor, Limits, Place
from lm_eval_ext.sql.engines.writing import write_duckdb, write_postgresql
from lm_eval_ext.sql.mirrored.build import workspace
from lm_eval_ext.sql.mirrored.copies import _given
from lm_eval_ext.sql.mirrored.dialect import from_sqlite, to_sqlite
from lm_eval_ext.sql.mirrored.reading import _plain, mirror
from lm_eval_ext.sql.mirrored.speaking import Speaking
from lm_eval_ext.sql.mirrored.types import carried
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.schema import schema_of

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("psycopg")
from lm_eval_ext.sql.engines.duckdb import plain  # noqa: E402

pytestmark = pytest.mark.slow

SHOP = """
CREATE TABLE brand (name VARCHAR PRIMARY KEY, since DATE NOT NULL);
INSERT INTO brand VALUES ('Ash', '1931-05-01'), ('Birch', '1978-01-31'), ('Cedar', '1990-12-24');
CREATE TABLE lamp (id INTEGER PRIMARY KEY, brand VARCHAR NOT NULL REFERENCES brand (name),
  price NUMERIC(8, 2) CHECK (price > 0), seen TIMESTAMP WITH TIME ZONE, lit BOOLEAN,
  tags VARCHAR[] NOT NULL, much NUMERIC(30, 5));
INSERT INTO lamp SELECT i, CASE i % 3 WHEN 0 THEN 'Ash' WHEN 1 THEN 'Birch' ELSE 'Cedar' END,
  i * 10.5, TIMESTAMPTZ '2020-01-01 00:00:00+00' + i * INTERVAL '7 hours', i % 2 = 0,
  ARRAY['a'], 12345678901234567.25 FROM generate_series(1, 12) t(i);
CREATE VIEW dear AS SELECT id, price FROM lamp WHERE price > 60;
"""
TWICE = "ALTER TABLE lamp ADD twice NUMERIC NOT NULL GENERATED ALWAYS AS (price * 2) STORED"
GOLDS = (
    "SELECT id FROM lamp WHERE price > 63 AND lit ORDER BY id",
    "SELECT count(*) FROM lamp WHERE seen >= TIMESTAMPTZ '2020-01-02 00:00:00+00'",
    "SELECT count(*) FROM brand WHERE extract(year FROM since) < 1978",
)
BEYOND = "SELECT tags FROM lamp"
LEFT_OUT = ["lamp.tags: the type ", "lamp.much: SQLite cannot hold all of its values ("]
OWN = ["interpretation\tword\tmeaning\tquestion\tbase_question\tquery"] + [
    f"w{number}\tword{number}\tm\tWhich word{number}?\tWhich {number}?\t{gold}"
    for number, gold in enumerate((*GOLDS, BEYOND))
]


def read(rows: Any, table: str) -> list[str]:
    return sorted(map(str, rows.execute(f"SELECT * FROM {table}").fetchall()))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("populated")
    (home / "own.tsv").write_text("\n".join(OWN))
    return home


@pytest.fixture(scope="module")
def shop(home: Path) -> Iterator[Path]:
    """A DuckDB file that keeps its bytes."""
    with duckdb.connect(str(home / "shop.duckdb")) as made:
        made.execute(SHOP)
    before = sha256((home / "shop.duckdb").read_bytes()).hexdigest()
    yield home / "shop.duckdb"
    assert sha256((home / "shop.duckdb").read_bytes()).hexdigest() == before


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """The original belongs to ``admin``; ``reader`` may only read it."""
    statements = (
        "CREATE ROLE reader LOGIN", "CREATE ROLE writer LOGIN", "CREATE DATABASE shop",
        "CREATE DATABASE copy OWNER writer", "CREATE DATABASE made OWNER writer",
    )  # fmt: skip
    with served(*statements, missing=pytest.skip) as server:
        with server.admin("shop") as admin:
            admin.execute(SHOP)
            admin.execute(TWICE)
            admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
            before = read(admin, "lamp"), read(admin, "brand")
        yield server
        with server.admin("shop") as admin:
            assert (read(admin, "lamp"), read(admin, "brand")) == before


def populated(source: str, golds: Path, out: Path, into: str = "") -> Any:
    _, wanted = gold_files.wanted(source, golds)
    (report,) = near_misses.build(wanted, out, into=into, progress=False).values()
    return report


def check_report(report: Any, *left_out: str) -> None:
    """Both rates: near misses that are caught, right rewrites that stay right."""
    golds = {gold.gold: gold for gold in report.golds}
    assert sorted(golds) == sorted((*GOLDS, BEYOND))
    assert golds[BEYOND].error == "no such column: tags"
    ran = [golds[gold] for gold in GOLDS]
    assert sum(gold.near_misses for gold in ran) >= 15
    assert [gold.open_ties for gold in ran] == [()] * 3
    assert sum(sum(gold.rewrites.values()) for gold in ran) >= 10
    assert [gold.broken for gold in ran] == [()] * 3
    for found, begin in zip(sorted(report.left_out), sorted([*LEFT_OUT, *left_out]), strict=True):
        assert found.startswith(begin)
    assert report.added.keys() <= {"lamp", "brand"}


def check_scores(source: str, copy: str, schema: str, home: Path) -> str:
    """Scores golds and wrong queries; returns what the signature says of the copy."""
    task = load_task(
        "magnifico_own_desc", magnifico_databases=source, magnifico_populated=copy,
        magnifico_file=str(home / "own.tsv"),
    )  # fmt: skip
    docs = {doc["query"]: doc for doc in task.dataset["test"] if doc["form"] == "plausible"}
    for gold, query, expected in (
        *((gold, gold, (1, 1)) for gold in (*GOLDS, BEYOND)),
        (GOLDS[0], GOLDS[0].replace("lamp", f"{schema}.lamp"), (1, 1)),
        (GOLDS[1], GOLDS[1].replace(">=", ">"), (0, 1)),
        (GOLDS[1], "SELECT 4", (0, 0)),
    ):
        scores = task.process_results(docs[gold], [query])
        found = [scores[f"{name}/execution_accuracy:novel"] for name in ("populated", "original")]
        assert (found[0], found[1]) == expected, query
    return str(task.dump_config()["metadata"]["signature"]["populated"])


def test_a_duckdb_file_is_populated(
    shop: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = populated(str(shop), home / "own.tsv", home / "out")
    check_report(report)
    _, wanted = gold_files.wanted(str(shop), home / "own.tsv")
    (before,) = near_misses.examine(wanted, semantics="strict").values()
    assert sum(len(gold.open_ties) for gold in before.golds) >= 3  # so the rows are needed
    copy = home / "out" / "shop" / "shop.duckdb"
    noted = json.loads(copy.with_name("shop.report.json").read_text())
    assert noted["sha256"] == sha256(copy.read_bytes()).hexdigest()
    assert populated(str(shop), home / "own.tsv", home / "out") == report  # it is kept
    with duckdb.connect() as both:
        both.execute(f"ATTACH '{shop}' AS one (READ_ONLY); ATTACH '{copy}' AS two (READ_ONLY)")
        lost = "SELECT * FROM one.lamp EXCEPT SELECT * FROM two.lamp"
        assert both.execute(lost).fetchall() == []
        ((rows, tags, much),) = both.execute(
            "SELECT count(*), count(DISTINCT tags), count(DISTINCT much) FROM two.lamp"
        ).fetchall()
        assert (rows, tags, much) == (12 + report.added["lamp"], 1, 1)
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(home / "cache"))
    rows_of_copy = check_scores(str(shop), str(copy), "main", home)
    assert rows_of_copy.startswith("v2,rows-")


def test_a_server_s_database_is_populated(server: Server, home: Path) -> None:
    into = server.url("copy", "writer")
    report = populated(server.url("shop"), home / "own.tsv", home / "out", into)
    check_report(report, "lamp.twice: generated")
    with server.admin("shop") as one, server.admin("copy") as two:
        lost = set(one.execute("SELECT l::text FROM lamp l").fetchall())
        assert lost < set(two.execute("SELECT l::text FROM lamp l").fetchall())
        twice = "SELECT count(*), count(*) FILTER (WHERE twice = price * 2) FROM lamp"
        assert two.execute(twice).fetchone() == (12 + report.added["lamp"],) * 2
    rows = check_scores(server.url("shop"), server.url("copy"), "public", home)
    assert rows.startswith("v2,rows-")
    place, sums = Place("postgresql", server.url("copy")), []
    with Executor(workers=1) as executor, server.admin("copy") as two:
        for pay in (0, 1):
            two.execute("UPDATE lamp SET price = price + %s WHERE id = 1", [pay])
            sums.append(own.digest_of_rows(executor, place))
    assert sums[0] != sums[1]


def test_a_view_without_an_end_is_left_out(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT i FROM range(1000) r(i)")
        made.execute("CREATE VIEW short AS SELECT max(a.i) AS most FROM t a, t b")
        made.execute("CREATE VIEW endless AS SELECT max(a.i) AS most FROM t a, t b, t c, t d")
    found = mirror(Place("duckdb", str(tmp_path / "a.duckdb")), tmp_path / "a.sqlite")
    assert found.left_out == ("endless: a view that SQLite cannot show",)


TYPES: dict[str, st.SearchStrategy[Any]] = {
    "TINYINT": st.integers(-128, 127),
    "BIGINT": st.integers(-(1 << 63), (1 << 63) - 1),
    "HUGEINT": st.integers(-(1 << 66), 1 << 66),
    "UBIGINT": st.integers(0, (1 << 64) - 1),
    "BOOLEAN": st.booleans(),
    "DOUBLE": st.floats(),
    "DECIMAL(8,2)": st.decimals(-999_999, 999_999, places=2),
    "DECIMAL(30,5)": st.decimals(-(10**24), 10**24, places=5),
    "VARCHAR": st.text(st.characters(codec="utf-8"), max_size=5),
    "DATE": st.dates(),
    "TIMESTAMP": st.datetimes(),
    "TIMESTAMP WITH TIME ZONE": st.datetimes().map(lambda at: f"{at}+00"),
    "TIME": st.times(),
    "UUID": st.uuids(),
    "ENUM('a', 'b{}', 'c''d')": st.sampled_from(["a", "b{}", "c'd"]),
    "BLOB": st.binary(max_size=4),
}


@pytest.fixture(scope="module")
def memory() -> Iterator[Any]:
    with duckdb.connect() as engine, closing(sqlite3.connect(":memory:")) as sqlite:
        engine.execute("SET TimeZone = 'UTC'")
        yield engine, sqlite


@given(st.data())
def test_a_value_is_carried_unaltered_or_not_at_all(memory: Any, data: st.DataObject) -> None:
    engine, sqlite = memory
    kind = data.draw(st.sampled_from(sorted(TYPES)))
    found = carried(kind)
    assert found is not None
    engine.execute(f"CREATE OR REPLACE TABLE t (v {kind})")
    engine.execute("INSERT INTO t VALUES ($1)", [data.draw(TYPES[kind])])
    shown, exact = found.read.format("v"), found.exact or "true"
    ((value, same),) = engine.execute(f"SELECT {shown}, {exact.format('v')} FROM t").fetchall()
    raw = _plain(plain(value), found.zone)
    sqlite.execute("DROP TABLE IF EXISTS raw")
    sqlite.execute("CREATE TABLE raw (v)")
    sqlite.execute("INSERT INTO raw VALUES (?)", [raw])
    (fits,) = sqlite.execute(f"SELECT {found.check.format('v')} FROM raw").fetchone()
    if kind in ("TINYINT", "BOOLEAN", "DATE", "DECIMAL(8,2)") or kind.startswith("ENUM"):
        assert fits
        assert same
    if fits and same:
        sqlite.execute("DROP TABLE IF EXISTS kept")
        sqlite.execute(f"CREATE TABLE kept (v {found.declared} CHECK ({found.check.format('v')}))")
        sqlite.execute("INSERT INTO kept SELECT v FROM raw")
        (held,) = sqlite.execute("SELECT v FROM kept").fetchone()
        back = f"SELECT v IS NOT DISTINCT FROM CAST($1 AS {kind}) FROM t"
        assert engine.execute(back, [_given(found, held)]).fetchall() == [(True,)]


@pytest.mark.parametrize("kind", ["INTEGER[]", "STRUCT(a INTEGER)", "jsonb", "interval", "money",
                                  "MAP(VARCHAR, INTEGER)", "tsvector", "int4range"])  # fmt: skip
def test_other_types_are_not_carried(kind: str) -> None:
    assert carried(kind) is None


@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
@pytest.mark.parametrize(
    ("theirs", "sqlite"),
    [
        ("SELECT id FROM main.lamp WHERE seen < '2020-01-02T10:00:00Z'",
         "SELECT id FROM lamp WHERE seen < '2020-01-02 10:00:00'"),
        ("SELECT count(*) FROM lamp WHERE extract(year FROM born) = 1978",
         "SELECT COUNT(*) FROM lamp WHERE (born >= '1978-01-01' AND born < '1979-01-01')"),
        ("SELECT gone - born FROM lamp", "SELECT JULIANDAY(gone) - JULIANDAY(born) FROM lamp"),
        ("SELECT stddev(id) FROM lamp", "SELECT STDEV(id) FROM lamp"),
    ],
)  # fmt: skip
def test_queries_in_sqlites_dialect(engine: Any, theirs: str, sqlite: str) -> None:
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute(
            'CREATE TABLE lamp (id INTEGER, born DATE, gone DATE, seen TIMESTAMP, "Order")'
        )
        schema = schema_of(made)
    assert to_sqlite(theirs, engine, schema) == sqlite
    assert to_sqlite(from_sqlite(sqlite, engine, schema), engine, schema) == sqlite
    assert from_sqlite('SELECT "order" FROM LAMP', engine, schema) == 'SELECT "Order" FROM lamp'
    with pytest.raises(UnparsedQuery):
        to_sqlite("DELETE FROM lamp", engine, schema)


def test_questions_are_made_on_both(shop: Path, server: Server, home: Path) -> None:
    """DuckDB's are told from near misses in the folder's copy; PostgreSQL's run there."""
    table = built("shop", home)
    tables = drafts(table)
    write_duckdb(home / "store.duckdb", tables)
    made, said = folder.generate(str(home / "store.duckdb"), home / "made", seed=5, questions=3)
    assert said["database"]["engine"] == "DuckDB"
    copy = home / "made" / "populated" / "store" / "store.duckdb"
    with (
        duckdb.connect(str(copy)) as populated_copy,
        duckdb.connect(str(home / "made" / "store.duckdb")) as original,
    ):
        assert made.asked
        for one in made.asked:
            assert original.execute(one.gold).fetchall(), one.gold
            assert populated_copy.execute(one.gold).fetchall(), one.gold
    task = (home / "made" / "magnifico_generated_store.yaml").read_text()
    assert f"magnifico_populated: {copy}" in task
    write_postgresql(server.url("made", "writer"), "public", tables, readers=["reader"])
    place = Place("postgresql", server.url("made"))
    with workspace(place) as (executor, where):
        there = Speaking(executor, mirror(place, where / "made.sqlite"), None)
        assert [there.problem(one.gold) for one in made.asked] == [None] * len(made.asked)
        assert there.problem("SELECT nothing FROM Product") == "fails in PostgreSQL"
        assert 'FROM "Product"' in there.say("SELECT * FROM Product")


def test_what_cannot_be_populated_is_one_line(
    shop: Path, server: Server, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golds, url = home / "own.tsv", server.url("shop")
    (tmp_path / "none").mkdir()
    (tmp_path / "file").touch()
    cases: list[tuple[str, Path, str, str]] = [
        (url, tmp_path, "", "name the database of the copy: --into postgresql://writer@"),
        (url, tmp_path, server.url("copy"), "be another one than that which writes"),
        (url, tmp_path, "postgresql://writer:x@host/copy", "--into holds a password"),
        (url, tmp_path, "postgresql://writer@host/copy?password=x", "--into holds a password"),
        (url, tmp_path, "copy", "--into copy: write postgresql://writer@host/DATABASE"),
        (url, tmp_path, server.url("nowhere", "writer"), 'database "nowhere" does not exist'),
        (url, tmp_path, server.url("shop", "writer"), "the schema public exists and holds"),
        (server.url("shop", "admin"), tmp_path, server.url("made", "writer"), "is a superuser"),
        (str(shop), tmp_path, server.url("made", "writer"), "copies of files go into --out"),
        (str(shop), tmp_path / "file", "", "cannot make the folder"),
        (str(tmp_path / "none"), tmp_path, "", "no database in the folder"),
        (server.url("a/b"), tmp_path, server.url("made", "writer"), "'a/b': must be a plain name"),
    ]
    for source, out, into, message in cases:
        with pytest.raises((DataError, OptionError)) as raised:
            populated(source, golds, out, into)
        assert message in str(raised.value), source
        assert "\n" not in str(raised.value)
    users = tmp_path.with_name("users.sqlite")
    with closing(sqlite3.connect(users)) as made:
        made.executescript("CREATE TABLE brand (name); INSERT INTO brand VALUES ('Yew')")
    before = users.read_bytes()
    led = home / "led.jsonl"
    for db_id in (str(users.with_suffix("")), "data/shop", "../x", "..", "a\0b"):
        led.write_text(json.dumps({"db_id": db_id, "query": GOLDS[0]}))
        with pytest.raises(OptionError, match="must be a plain name, without a path"):
            populated(str(shop), led, tmp_path)
    assert users.read_bytes() == before
    for copy, message in (
        (str(shop), "has no copy of shop"),
        (server.url("made"), "is no populated copy of"),
    ):
        named = {"magnifico_databases": url, "magnifico_populated": copy}
        with pytest.raises(DataError, match=message):
            load_task("magnifico_own_desc", magnifico_file=str(golds), **named)
    monkeypatch.setattr("lm_eval_ext.sql.mirrored.reading.WIDE", Limits(max_rows=11))
    with pytest.raises(DataError, match="a table has over 200,000 rows"):
        populated(str(shop), golds, tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "none"]
