"""Populated copies of DuckDB and PostgreSQL, from the columns' types to the tasks' scores."""

import json
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.postgres import Missing, Server
from support.tasks import load_task

from lm_eval_ext.benchmarks.magnifico import gold_files, near_misses, own
from lm_eval_ext.benchmarks.magnifico.generate import folder
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.sql import Executor, NamedDatabases, Place, databases_at
from lm_eval_ext.sql.mirrored.build import workspace
from lm_eval_ext.sql.mirrored.copies import _given
from lm_eval_ext.sql.mirrored.dialect import from_sqlite, to_sqlite
from lm_eval_ext.sql.mirrored.reading import mirror
from lm_eval_ext.sql.mirrored.types import carried
from lm_eval_ext.sql.schema import Schema, Table

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("psycopg")
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


def read(rows: Any, table: str, of: str = "") -> str:
    order = "ORDER BY 1"
    return str(sorted(map(str, rows.execute(f"SELECT * FROM {of}{table} {order}").fetchall())))


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
    try:
        server = Server()
    except Missing as reason:
        pytest.skip(str(reason))
    try:
        with server.admin("postgres") as admin:
            for command in (
                "CREATE ROLE reader LOGIN", "CREATE ROLE writer LOGIN", "CREATE DATABASE shop",
                "CREATE DATABASE copy OWNER writer", "CREATE DATABASE made OWNER writer",
            ):  # fmt: skip
                admin.execute(command)
        with server.admin("shop") as admin:
            admin.execute(SHOP)
            admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
            before = read(admin, "lamp"), read(admin, "brand")
        yield server
        with server.admin("shop") as admin:
            assert (read(admin, "lamp"), read(admin, "brand")) == before
    finally:
        server.stop()


def populated(source: str, golds: Path, out: Path, into: str = "") -> tuple[Any, Any]:
    """The report, and what a count on the original finds."""
    _, wanted = gold_files.wanted(source, golds)
    (report,) = near_misses.build(wanted, out, into=into, progress=False).values()
    (before,) = near_misses.examine(wanted, semantics="strict").values()
    return report, before


def check_report(report: Any, before: Any) -> None:
    """Both rates: near misses that are caught, right rewrites that stay right."""
    golds = {gold.gold: gold for gold in report.golds}
    assert sorted(golds) == sorted((*GOLDS, BEYOND))
    assert golds[BEYOND].error == "no such column: tags"
    ran = [golds[gold] for gold in GOLDS]
    assert sum(gold.near_misses for gold in ran) >= 15
    assert [gold.open_ties for gold in ran] == [()] * 3
    assert sum(len(gold.open_ties) for gold in before.golds) >= 3  # so the rows are needed
    assert sum(sum(gold.rewrites.values()) for gold in ran) >= 10
    assert [gold.broken for gold in ran] == [()] * 3
    for found, begin in zip(report.left_out, LEFT_OUT, strict=True):
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
    report, before = populated(str(shop), home / "own.tsv", home / "out")
    check_report(report, before)
    copy = home / "out" / "shop" / "shop.duckdb"
    noted = json.loads(copy.with_name("shop.report.json").read_text())
    assert noted["sha256"] == sha256(copy.read_bytes()).hexdigest()
    assert populated(str(shop), home / "own.tsv", home / "out")[0] == report  # it is kept
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
    report, before = populated(server.url("shop"), home / "own.tsv", home / "out", into)
    check_report(report, before)
    with server.admin("shop") as one, server.admin("copy") as two:
        lost = set(one.execute("SELECT l::text FROM lamp l").fetchall())
        assert lost < set(two.execute("SELECT l::text FROM lamp l").fetchall())
    rows = check_scores(server.url("shop"), server.url("copy"), "public", home)
    with server.admin("copy") as two:
        two.execute("UPDATE lamp SET price = price + 1 WHERE id = 1")
    with pytest.raises(OptionError, match="the schema public exists and holds something"):
        populated(server.url("shop"), home / "own.tsv", home / "out", into)
    assert own.digest_of_rows(Place("postgresql", server.url("copy")))[:12] not in rows
