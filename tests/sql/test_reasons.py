"""Why a text is no query that may be run: the same words in every command, on SQLite and DuckDB."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from support.databases import written
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.sql import Place, SqlJudge
from lm_eval_ext.sql.reasons import (
    EMPTY,
    NO_QUERY,
    NO_RESULT,
    NOT_AUTHORIZED,
    SEVERAL_STATEMENTS,
)

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO customer VALUES (1, 'Anna'), (2, 'Ben'), (3, 'Clara'), (4, 'David');
"""
GOLD = "SELECT count(*) FROM customer"

TEXTS = {
    "empty": ("", EMPTY),
    "blank": (" \n", EMPTY),
    "comment": ("-- nothing", NO_RESULT),
    "delete": ("DELETE FROM customer", NOT_AUTHORIZED),
    "drop": ("DROP TABLE customer", NOT_AUTHORIZED),
    "insert": ("INSERT INTO customer SELECT * FROM customer", NOT_AUTHORIZED),
    "explain": ("EXPLAIN SELECT count(*) FROM customer", NOT_AUTHORIZED),
    "explain behind a comment": ("/* a plan */ -- *\nexplain SELECT 4", NOT_AUTHORIZED),
    "pragma": ("PRAGMA table_info(customer)", NOT_AUTHORIZED),
    "pragma that full-text search reads": ("PRAGMA data_version", NOT_AUTHORIZED),
    "pragma behind a comment": ("-- version\npragma data_version", NOT_AUTHORIZED),
    "description": ("DESCRIBE SELECT count(*) FROM customer", NOT_AUTHORIZED),
    "summary": ("summarize customer", NOT_AUTHORIZED),
    "vacuum": ("VACUUM", NOT_AUTHORIZED),
    "two": ("SELECT 4; SELECT 4", SEVERAL_STATEMENTS),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reasons")
    written(folder / "shop.sqlite", SHOP)
    return folder


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def explained(folder: Path, *options: str) -> dict[str, Any]:
    """Return what sql explain says."""
    shown = run("sql", "explain", "--databases", folder / "shop.sqlite", *options, "--json")
    explanation: dict[str, Any] = json.loads(shown)
    return explanation


def scored(folder: Path, texts: dict[str, str], *options: str) -> dict[str, dict[str, str]]:
    """Return the rows that sql-score writes about some predictions."""
    file = folder / "texts.csv"
    with file.open("w", newline="") as unwritten:
        table = csv.writer(unwritten)
        table.writerow(["name", "gold_sql", "predicted_sql"])
        table.writerows([name, GOLD, text] for name, text in texts.items())
    run(
        "sql-score", "--databases", folder / "shop.sqlite", "--predictions", file, "-o",
        folder / "out.csv", *options,
    )  # fmt: skip
    with (folder / "out.csv").open(newline="") as written_rows:
        return {row["name"]: row for row in csv.DictReader(written_rows)}


def explained_row(folder: Path, number: int, *options: str) -> dict[str, Any]:
    """Return what sql explain says of a row of the same file."""
    row = ["--predictions", str(folder / "texts.csv"), "--row", str(number)]
    return explained(folder, *row, *options)


def test_both_commands_give_the_same_reason(folder: Path) -> None:
    """A refused statement says what is allowed."""
    rows = scored(folder, {name: text for name, (text, _) in TEXTS.items()})
    expected = {name: reason for name, (_, reason) in TEXTS.items()}
    assert {name: row["reason"] for name, row in rows.items()} == expected
    reasons = [explained_row(folder, number + 1)["reason"] for number in range(len(TEXTS))]
    assert reasons == list(expected.values())


@pytest.mark.parametrize(
    ("answer", "reason"), [("I do not know.", NO_QUERY), ("", EMPTY)], ids=["prose", "empty"]
)
def test_an_answer_without_a_query_has_the_same_reason_in_both(
    folder: Path, answer: str, reason: str
) -> None:
    """sql explain shows the answer, too; an empty one is empty."""
    rows = scored(folder, {"answer": answer}, "--extract")
    assert rows["answer"]["reason"] == reason
    explanation = explained_row(folder, 1, "--extract")
    assert explanation["reason"] == reason
    assert explanation["predicted_result"]["message"] == reason
    assert explanation["answer"] == answer


def test_a_prediction_without_a_file_is_read_as_an_answer(folder: Path) -> None:
    """--extract with --gold and --predicted."""
    answer = f"Sure:\n```sql\n{GOLD}\n```"
    explanation = explained(folder, "--gold", GOLD, "--predicted", answer, "--extract")
    assert explanation["status"] == "correct"
    assert (explanation["predicted"], explanation["answer"]) == (GOLD, answer)


FENCED = f"```sql\n{GOLD}\nWHERE name <> 'Anna' AND name <> 'Ben' AND name <> 'Clara'\n```"


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_reason_does_not_repeat_a_fenced_answer(
    folder: Path, tmp_path: Path, engine: str
) -> None:
    """To the parsers it is one token: a name between accents."""
    database = folder / "shop.sqlite"
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        database = tmp_path / "shop.duckdb"
        with duckdb.connect(str(database)) as connection:
            connection.execute("CREATE TABLE customer (id INTEGER, name TEXT)")
    texts = ["--gold", GOLD, "--predicted", FENCED]
    reason = json.loads(run("sql", "explain", "--databases", database, *texts, "--json"))["reason"]
    assert "syntax error" in reason
    assert "Anna" not in reason
    assert '"```sql SELECT' in reason
    assert '```"' in reason


def test_a_query_plan_is_no_result_of_a_query(folder: Path) -> None:
    """Only SQLite has EXPLAIN QUERY PLAN; a column may be called explain."""
    texts = {
        "plan": "EXPLAIN QUERY PLAN SELECT count(*) FROM customer",
        "column": "SELECT count(*) AS explain FROM customer",
    }
    rows = scored(folder, texts)
    assert (rows["plan"]["status"], rows["plan"]["reason"]) == ("prediction_error", NOT_AUTHORIZED)
    assert rows["column"]["status"] == "correct"


def test_duckdb_gives_the_reasons_of_sqlite(tmp_path: Path) -> None:
    """One statement, which is no SELECT, is refused by DuckDB's own parser."""
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE customer (id INTEGER, name TEXT)")
    predictions = [("shop", GOLD, text) for text, _ in TEXTS.values()]
    with SqlJudge({"shop": Place("duckdb", str(path))}, workers=1) as judge:
        verdicts = judge.judge_all(predictions, progress=None)
    reasons = {name: verdict.reason for name, verdict in zip(TEXTS, verdicts, strict=True)}
    assert reasons == {name: reason for name, (_, reason) in TEXTS.items()}
