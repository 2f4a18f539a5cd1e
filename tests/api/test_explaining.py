"""``sql explain --results``: the verdict on a logged sample, with the rows that show it."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lm_eval_ext
from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import LmEvalExtError

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("explained samples")]

TASK = "magnifico_mini"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results on four documents: a right answer, one with another comparison, an error, none."""
    docs = [doc for doc in lm_eval_ext.load_documents(TASK) if " = " in doc["query"]][:4]
    right, wrong = docs[0]["query"], docs[1]["query"].replace(" = ", " > ", 1)
    folder = tmp_path_factory.mktemp("results")
    lm_eval_ext.score(TASK, docs, [right, wrong, "SELECT x FROM y", "No idea."], output=folder)
    return folder


def logged(results: Path) -> list[dict[str, dict[str, str]]]:
    (file,) = results.rglob("samples_*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def explain(*arguments: str | Path) -> str:
    texts = [str(argument) for argument in arguments]
    result = CliRunner().invoke(app, ["sql", "explain", *texts])
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.mark.parametrize("position", range(4), ids=["right", "wrong", "error", "no-query"])
def test_the_verdict_is_that_of_the_run(results: Path, position: int) -> None:
    """A sample judged again has the logged verdict, and a wrong one the rows that show it."""
    sample = logged(results)[position]
    document = sample["doc"]["id"]
    explanation = json.loads(explain("--results", results, "--doc", document, "--json"))
    assert explanation.items() >= sample["verdict"].items()
    assert document in explanation["title"]
    assert (explanation["smallest"] is not None) is (explanation["status"] == "wrong")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--results needs --doc ID"),
        (["--doc", "nothing/0/base"], "--doc nothing/0/base: magnifico_mini has no such sample"),
        (["--doc", "0", "--model", "x"], "--model x: not in the results, which have answers"),
        (["--doc", "0", "--task", "x"], "--task x: not in the results, which have magnifico_mini"),
    ],
)
def test_a_sample_that_is_not_there_is_one_line(
    results: Path, options: list[str], message: str
) -> None:
    """The line says what the results have."""
    with pytest.raises(LmEvalExtError, match=message):
        explain("--results", results, *options)


def test_an_id_that_is_the_number_of_another_sample_is_an_id(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path, dirs_exist_ok=True)
    samples = logged(tmp_path)
    number = str(samples[0]["doc_id"])
    samples[3]["doc"]["id"] = number
    (file,) = tmp_path.rglob("samples_*.jsonl")
    file.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    explanation = json.loads(explain("--results", tmp_path, "--doc", number, "--json"))
    assert explanation["title"].startswith(f"{number} of magnifico_mini")
    assert explanation["status"] == samples[3]["verdict"]["status"]
    assert explanation["status"] != samples[0]["verdict"]["status"]
    last_number = str(samples[3]["doc_id"])
    by_number = json.loads(explain("--results", tmp_path, "--doc", last_number, "--json"))
    assert by_number["title"] == explanation["title"]


def test_a_line_that_is_no_sample_is_named(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path, dirs_exist_ok=True)
    (file,) = tmp_path.rglob("samples_*.jsonl")
    file.write_text('{"doc_id": 0}\n')
    with pytest.raises(LmEvalExtError, match=r"jsonl:1: not a sample that lm_eval logged"):
        explain("--results", tmp_path, "--doc", "0")


def test_a_sample_is_judged_again_with_the_options_of_its_run(tmp_path: Path) -> None:
    """The databases, the questions and the rule that ``--metadata`` named are those of the run."""
    database = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(
            "CREATE TABLE item (name TEXT, price INTEGER);"
            "INSERT INTO item VALUES ('lamp', 3), ('desk', 9);"
        )
    questions = tmp_path / "shop.tsv"
    questions.write_text(
        "interpretation\tword\tmeaning\tquestion\tbase_question\tquery\n"
        "dear\tlofty\ta price above 5\tWhat is lofty?\tWhat costs more than 5?\t"
        "SELECT name FROM item WHERE price > 5\n"
    )
    options: dict[str, Any] = {
        "magnifico_databases": str(database),
        "magnifico_file": str(questions),
        "magnifico_semantics": "bird",
    }
    docs = lm_eval_ext.load_documents("magnifico_own_desc", **options)
    answers = ["SELECT name FROM item"] * len(docs)
    lm_eval_ext.score("magnifico_own_desc", docs, answers, output=tmp_path / "run", **options)

    explanation = explain("--results", tmp_path / "run", "--doc", docs[0]["id"])
    assert "wrong on the original, by the rule bird" in explanation
    assert "2 rows instead of 1" in explanation
