"""The path from documents to scores: loaded once, judged once, and each verdict with its answer."""

import copy
import json
import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.tasks import load_task

import lm_eval_ext
from lm_eval_ext.benchmarks.magnifico import databases, load, score
from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.judged import JudgedText
from lm_eval_ext.sql import Executor, SqlJudge, Verdict

pytestmark = pytest.mark.usefixtures("kept_cache")

TASK = "magnifico_mini"
WRONG = "SELECT COUNT(*) FROM sqlite_master WHERE 1 = 0"


@pytest.fixture(scope="module")
def logged(run_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the logged samples of answers that are right, wrong, broken and empty in turn."""
    folder = tmp_path_factory.mktemp("logged")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
        documents = lm_eval_ext.load_documents(TASK)[:8]
        answers = []
        for number, document in enumerate(documents):
            choices = [document["query"], WRONG, "SELECT no_such_column FROM nowhere", ""]
            answers.append(choices[number % len(choices)])
        lm_eval_ext.score(TASK, documents, answers, output=folder)
    (file,) = folder.rglob("samples_*.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_databases_are_loaded_once_for_all_tasks_of_a_corpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The task gets the very databases that the loading function found."""
    load._with_databases.cache_clear()
    load._complete.cache_clear()
    calls = []
    build_suites = databases._build_suites

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return build_suites(*arguments)

    monkeypatch.setattr(databases, "_build_suites", counted)
    monkeypatch.setattr(load.dataset, "_kept", {})
    described = load_task(TASK)
    direct = load_task(TASK, magnifico_prompt="direct")
    assert len(calls) == 1
    assert described.resources is direct.resources
    assert described.resources is load.prepared(described.options).scoring


def test_all_answers_are_judged_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scoring a document afterwards runs no query."""
    batches: list[int] = []
    judge_all = SqlJudge.judge_all

    def counted(self: SqlJudge, predictions: Sequence[Any], **options: Any) -> list[Verdict]:
        batches.append(len(predictions))
        return judge_all(self, predictions, **options)

    monkeypatch.setattr(SqlJudge, "judge_all", counted)
    documents = lm_eval_ext.load_documents(TASK)[:6]
    lm_eval_ext.score(TASK, documents, [document["query"] for document in documents])
    assert batches == [6]


EXPECTED = {
    "right": (0, "correct", "^$"),
    "wrong": (1, "wrong", "."),
    "broken": (2, "prediction_error", "no such table: nowhere"),
    "empty": (3, "prediction_error", "."),
}


@pytest.mark.parametrize(("number", "status", "reason"), EXPECTED.values(), ids=EXPECTED)
def test_a_logged_sample_says_why(
    logged: list[dict[str, Any]], number: int, status: str, reason: str
) -> None:
    """The verdict stands beside the rows, with the rule and the database that decided."""
    verdict = logged[number]["verdict"]
    assert verdict["status"] == status
    assert verdict["original_status"] in {status, "correct"}
    assert re.search(reason, verdict["reason"])
    assert verdict["rule"].startswith(("reference", "sets"))
    assert verdict["database"]


def test_rows_say_the_same_as_the_verdict(logged: list[dict[str, Any]]) -> None:
    """A row for each database has the verdict's status, and one tells of an empty answer."""
    for sample in logged:
        correct_on = {}
        for row in sample["rows"]:
            if "database" in row:
                correct_on[row["database"]] = row["correct"]
        verdict = sample["verdict"]
        assert correct_on == {
            "populated": float(verdict["status"] == "correct"),
            "original": float(verdict["original_status"] == "correct"),
        }


def test_scoring_is_a_pure_function_of_document_and_verdict() -> None:
    """No task, database or judge is needed to score a verdict."""
    document = {"interpretation": "tall", "form": "plausible", "category": "basic"}
    verdict = Verdict("wrong", "1 of 2 rows is missing", "sets-v1", "small-3", "correct")
    answer = JudgedText("SELECT 1", verdict)
    rows = score.by_execution(document, [answer], has_suite=True)
    assert [row.get("database") for row in rows] == ["populated", "original", None]
    assert [row.get("correct") for row in rows] == [0.0, 1.0, None]
    assert rows == score.by_execution(document, [answer], has_suite=True)
    alone = score.by_execution(document, [answer], has_suite=False)
    assert [row.get("database") for row in alone] == ["original", None]


def test_a_judged_answer_is_the_text_for_everybody_else() -> None:
    """Ranks gather it pickled, logs hold it as JSON, and both keep or need nothing more."""
    answer = JudgedText("SELECT 1", Verdict("correct"))
    assert answer == "SELECT 1"
    assert json.loads(json.dumps([answer])) == ["SELECT 1"]
    for copied in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
        assert copied == answer
        assert copied.verdict == answer.verdict


def test_a_database_that_goes_away_ends_no_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Answers that are not judged are excluded, which is said once; earlier verdicts stay."""
    task = load_task(TASK)
    judged, *not_judged = list(task.eval_docs)[:3]
    assert task.process_results(judged, [judged["query"]])["verdict"]["status"] == "correct"

    def gone(*_: Any, **__: Any) -> Any:
        raise DataError("the server went away")

    monkeypatch.setattr(Executor, "score", gone)
    for document in not_judged:
        assert task.process_results(document, [document["query"]]) == {}
    excluded_ids = [document["id"] for document in not_judged]
    assert task.excluded()["database_unavailable"] == excluded_ids
    assert caplog.text.count("the server went away") == 1


def test_predictions_only_need_no_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """--predict_only logs answers and scores nothing, so no query is run."""
    task = load_task(TASK)
    task.override_metric("bypass")
    monkeypatch.setattr(SqlJudge, "judge_all", None)
    task.build_all_requests(limit=2, rank=0, world_size=1)
    for instance in task.instances:
        instance.resps.append(" 1")
    task.apply_filters()
    assert len(task.instances) == 2
    for instance in task.instances:
        assert not isinstance(instance.filtered_resps["query"], JudgedText)
