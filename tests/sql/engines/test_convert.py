"""SQLite databases on DuckDB: types, keys, rows; queries that are kept; MAGNIFICo on it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from converted_cases import (
    DUCKDB_NOTES,
    KEPT,
    MORE,
    check_keys,
    check_queries,
    check_rows,
    converted,
    fair,
    with_keys,
)
from support.tasks import load_task
from typer.testing import CliRunner

from lm_eval_ext.benchmarks.magnifico import converted as on_engine
from lm_eval_ext.benchmarks.magnifico import documents, load
from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql import Failure, QueryError, Rows
from lm_eval_ext.sql.convert import store
from lm_eval_ext.sql.convert.columns import Type, chosen
from lm_eval_ext.sql.convert.outcomes import Translated, as_text, counted

pytest.importorskip("duckdb")


@pytest.mark.parametrize(
    ("declared", "values", "written"),
    [
        ("INTEGER", [1, -5], "INTEGER"),
        ("smallint unsigned", [40_000], "INTEGER"),
        ("int", [1 << 40], "BIGINT"),
        ("INTEGER", [1, 2.5], "DOUBLE"),
        ("INTEGER", [1, "n/a"], "TEXT"),
        ("number(7,2)", [1, 99_999.25], "DECIMAL(7,2)"),
        ("number(7,2)", [100_000], "INTEGER"),
        ("numeric(5,1)", [0.25], "DOUBLE"),
        ("NUMERIC", [1, 2], "INTEGER"),
        ("BOOLEAN", [0, 1], "BOOLEAN"),
        ("BOOLEAN", [0, 2], "INTEGER"),
        ("bool", ["true"], "TEXT"),
        ("DATE", ["2024-02-29"], "DATE"),
        ("DATE", ["2023-02-29"], "TEXT"),
        ("DATE", ["2023-2-9"], "TEXT"),
        ("DATE", [2023], "INTEGER"),
        ("datetime", ["2023-01-01 10:00:00.5"], "TIMESTAMP"),
        ("datetime", ["2023-01-01 10:00:00.50"], "TEXT"),
        ("time", ["23:59:59"], "TIME"),
        ("TIME", ["24:00:00"], "TEXT"),
        ("REAL", [1.0, 2], "DOUBLE"),
        ("double", [(1 << 53) + 1], "BIGINT"),
        ("blob", [b"x"], "BLOB"),
        ("blob", [], "BLOB"),
        ("blob", ["y"], "TEXT"),
        ("blob", [b"x", "y"], "BLOB"),
        ("", [b"x", 1], "BLOB"),
        ("text", ["a\0b"], "BLOB"),
        ("text", ["\udcff"], "BLOB"),
        ("", [], "TEXT"),
        ("varchar(3)", [], "TEXT"),
    ],
)
def test_a_type_holds_all_values_or_is_wider(
    declared: str, values: list[Any], written: str
) -> None:
    assert chosen(declared, values)[0].written("duckdb") == written


def test_lengths_and_names_of_types_are_the_engines() -> None:
    assert Type("text", 3).written("postgresql") == "VARCHAR(3)"
    assert chosen("char(3)", ["abcd"])[0].written("postgresql") == "TEXT"
    assert Type("double").written("postgresql") == "DOUBLE PRECISION"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[store.Source, Any]]:
    folder = tmp_path_factory.mktemp("fair")
    target = store.DuckDBFolder(folder / "out")
    source = fair(folder)
    assert converted(source, target) == DUCKDB_NOTES
    yield source, target


def test_rows_are_copied_as_they_are(there: tuple[store.Source, Any]) -> None:
    check_rows(*there)


def test_queries_are_kept_or_not(there: tuple[store.Source, Any]) -> None:
    check_queries(*there)


def test_keys_are_kept_or_not(tmp_path: Path) -> None:
    check_keys(tmp_path, store.DuckDBFolder(tmp_path / "out"))


DIGEST = """
import sys
from pathlib import Path
from lm_eval_ext.sql.convert.drafts import Tally, plan
path, tally = Path(sys.argv[1]), Tally()
for draft in plan([path], "duckdb").drafts(path, tally):
    list(draft.rows)
print(tally.digest)
"""


def test_a_digest_is_the_same_in_every_process(tmp_path: Path) -> None:
    """It stands in signatures; the order of sets depends on the seed of hashes."""
    path, digests = with_keys(tmp_path), set()
    for seed in "123":
        command = [sys.executable, "-c", DIGEST, str(path)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
        digests.add(done.stdout)
    assert len(digests) == 1


def test_what_is_there_is_not_written_again(
    there: tuple[store.Source, Any], tmp_path: Path
) -> None:
    source, target = there
    file = Path(target.place("fair", "populated").address)
    before = file.stat().st_mtime_ns
    assert dict(store.convert([source], target)) == target.reports()
    assert file.stat().st_mtime_ns == before
    changed = store.Source("fair", {"original": fair(tmp_path).parts["populated"]})
    other = store.DuckDBFolder(tmp_path / "out")
    first = dict(store.convert([changed], other))["fair"]
    assert first.digest != target.reports()["fair"].digest
    assert first.rows == 16
    assert json.loads((tmp_path / "out" / "report.json").read_text())["fair"]["rows"] == 16


def test_places_to_convert_to(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot convert to 'mysql'"):
        store.target_at("mysql", tmp_path)
    with pytest.raises(OptionError, match="PGPASSWORD"):
        store.target_at("postgresql://me:secret@localhost/x", tmp_path)
    server = store.Server("postgresql://r@/db?host=%2Ftmp&options=-cjit%3Doff", prefix="m_")
    assert server.place("a b", "populated").address == (
        "postgresql://r@/db?host=%2Ftmp&options=-cjit%3Doff%20-csearch_path%3D%22m_a%5C%20b_populated%22"
    )


def test_the_command_converts_and_translates(tmp_path: Path) -> None:
    source, out = fair(tmp_path), tmp_path / "out"
    golds = tmp_path / "golds.csv"
    golds.write_text(
        f'db_id,query\nFair,"{KEPT["a whole quotient"]}"\nfair,SELECT age FROM helper\n'
    )
    arguments = ["sql", "convert", "--databases", str(source.parts["original"]), "--to", "duckdb",
                 "-o", str(out), "--golds", str(golds)]  # fmt: skip
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "fair: 6 tables, 15 rows" in done.stdout
    assert "helper.age: INTEGER is TEXT (it holds integers" in done.stdout
    assert "1 of 2 gold queries can be scored on DuckDB (50.0%)" in done.stdout
    lines = (out / "golds.tsv").read_text().splitlines()
    assert lines[1].split("\t")[2:] == ["SELECT sale_id, pieces // 2 FROM sale", "", ""]
    assert lines[2].split("\t")[3] == "differs_original"
    market = source.parts["original"].rename(tmp_path / "market.sqlite")
    done = CliRunner().invoke(app, [*arguments[:3], str(market), *arguments[4:-2]])
    assert done.exit_code == 0
    assert json.loads((out / "report.json").read_text()).keys() == {"fair", "market"}
    market.rename(source.parts["original"])
    golds.write_text("db_id,query\nfoul,SELECT 1\n")
    with pytest.raises(DataError, match="no database 'foul'"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    more = [*arguments[:-2], "--populated", str(out)]
    with pytest.raises((DataError, OptionError)):
        CliRunner().invoke(app, more, catch_exceptions=False)


class Stub:
    """Another result each time, but none where NULL is put first."""

    asked = 0

    def __init__(self, **_: int) -> None: ...

    def __enter__(self) -> "Stub":
        return self

    def __exit__(self, *_: object) -> None: ...

    def query(self, _: object, sql: str) -> Rows:
        Stub.asked += 1
        if "NULLS FIRST" in sql:
            raise QueryError(Failure("timeout", "took too long"), sql)
        return Rows(("rank",), [(self.asked,)] * self.asked)


def test_a_check_with_a_timeout_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_engine, "Executor", Stub)
    source, target = fair(tmp_path), store.DuckDBFolder(tmp_path)
    places = {part: {"fair": target.place("fair", part)} for part in source.parts}
    file = tmp_path / "golds.json"
    for more, kept in (("", True), (" ORDER BY rank", False)):
        golds = {"fair": [f"SELECT DISTINCT rank FROM Stall{more}", "SELECT 1"]}
        found = on_engine._translated(file, [source], golds, places, target)
        assert {one.reason for one in found.values()} == {"differs_original"}
        assert file.exists() == kept
        file.unlink(missing_ok=True)


def test_counts_by_reason() -> None:
    made = [Translated("a", "a"), Translated("b", "", "types", "x"), Translated("c", "", "types")]
    assert counted(made) == {"types": 2}
    assert as_text(made, "DuckDB").splitlines()[0].endswith("on DuckDB (33.3%)")


@pytest.mark.usefixtures("kept_cache")
def test_magnifico_mini_is_asked_in_duckdb() -> None:
    task = load_task("magnifico_mini", magnifico_engine="duckdb")
    docs = list(task.dataset["test"])
    assert len(docs) == 192
    assert all("Using valid DuckDB" in doc["prompt"] for doc in docs)
    assert all("CREATE TABLE" in doc["prompt"] for doc in docs)
    assert task.not_scorable() == {}
    signature = task.dump_config()["metadata"]["signature"]
    assert signature["engine"].startswith("duckdb:")
    assert signature["conversion"].startswith(f"v{store.CONVERT_VERSION}-")
    assert signature["populated"].startswith("v")
    assert "server" not in signature
    for doc in docs[::16]:
        right = task.process_results(doc, [doc["query"]])
        wrong = task.process_results(doc, ["SELECT 42"])
        for part in ("original", "populated"):
            name = f"{part}/execution_accuracy:{'base' if doc['form'] == 'base' else 'novel'}"
            assert (right[name], wrong[name]) == (1.0, 0.0)
    dialect = task.process_results(docs[0], ["SELECT count(*)::text FROM range(3)"])
    assert dialect["original/error"] == 0.0


@pytest.mark.usefixtures("kept_cache")
def test_the_same_seed_draws_the_same_words_on_every_engine() -> None:
    asked = [
        {doc["question"] for doc in load.dataset(
            magnifico_corpus="mini", magnifico_seed=7, magnifico_engine=engine)["test"]}
        for engine in ("sqlite", "duckdb")
    ]  # fmt: skip
    assert asked[0] == asked[1]


@pytest.mark.usefixtures("kept_cache")
def test_what_is_not_translated_is_left_out_and_named() -> None:
    ready = load.prepare("mini")
    corpus = ready.corpus
    example = corpus.examples[0]
    (lost,) = {
        (one.db_id, one.query) for one in corpus.examples if one.template == example.template
    }
    golds = {
        (db_id, query): Translated(query, f"{query} ", "types" if (db_id, query) == lost else "")
        for db_id, queries in corpus.golds().items()
        for query in queries
    }
    made = on_engine.Converted(
        {"original": {key: one.place for key, one in corpus.databases.items()}, "populated": {}},
        golds, "duckdb:2", "v1-x",
    )  # fmt: skip
    docs, left_out = documents.documents(
        made.corpus(corpus), documents.Setting(), ready.blocks.__getitem__, {}, made.reasons({})
    )
    named = left_out["not_translated: types"]
    assert {name.rpartition("/")[0] for name in named} >= {example.template}
    assert all(doc["query"].endswith(" ") for doc in docs)
    assert len(docs) + len(named) == 192


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"magnifico_engine": "mysql"}, "use sqlite, duckdb, postgresql"),
        ({"magnifico_engine": "postgresql"}, "needs a server"),
        ({"magnifico_server": "postgresql://r@h/d"}, "leave it out"),
        (
            {"magnifico_corpus": "own", "magnifico_engine": "postgresql",
             "magnifico_server": "postgresql://r@h/d"},
            "use duckdb for SQLite files of yours, or name a server in magnifico_databases",
        ),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        load.dataset(**{"magnifico_corpus": "mini", **options})


def test_the_populated_rows_decide_about_types_too(tmp_path: Path) -> None:
    assert "2021-1-1" in MORE
    source = fair(tmp_path)
    alone = store.Source("fair", {"original": source.parts["original"]})
    ((_, report),) = store.convert([alone], store.DuckDBFolder(tmp_path / "out"))
    assert not any("opened" in note for note in report.notes)
