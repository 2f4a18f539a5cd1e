"""The Python interface: documents, scores, data frames; and the page that shows it."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import lm_eval_ext
from lm_eval_ext.errors import LmEvalExtError, OptionError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TASK = "cogs_mini_id"

Documents = list[dict[str, Any]]
"""A task's documents, as ``load_documents`` returns them."""


@pytest.fixture(scope="module")
def documents() -> Documents:
    """All documents of the task."""
    return lm_eval_ext.load_documents(TASK)


def headline(results: lm_eval_ext.Results) -> dict[str, Any]:
    """Return the row of a single task's headline."""
    figures = results.to_dataframe()
    rows: list[dict[str, Any]] = figures[figures.headline].to_dict("records")
    (row,) = rows
    return row


def test_public_names_are_imported_when_they_are_used() -> None:
    """Nothing heavy is imported then either; test_autoload.py tests the import itself."""
    code = (
        "import sys, lm_eval_ext\n"
        "[getattr(lm_eval_ext, name) for name in lm_eval_ext.__all__]\n"
        "print(*{name for name in sys.modules if '.' not in name})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "pandas", "datasets", "lm_eval", "torch", "sqlglot"}
    assert not heavy & set(done.stdout.split())


def test_some_documents_can_be_scored_in_any_order_and_without_all_answers(
    documents: Documents,
) -> None:
    chosen = [documents[index] for index in (40, 3, 7, 120)]
    answers = [chosen[0]["form"], "x", None, chosen[3]["form"]]
    results = lm_eval_ext.score(TASK, chosen, answers)
    row = headline(results)
    assert row["value"] == pytest.approx(2 / 3)
    assert (row["scored"], row["total"], row["clusters"]) == (3, len(documents), 3)
    assert (row["task"], row["metric"]) == (TASK, "exact_match")
    assert "|docs:3/200|" in row["signature"]
    assert results.samples(TASK)["doc_id"].tolist() == [3, 7, 40, 120]
    table = results.rows(TASK)
    assert {"model", "task", "document", "cluster", "type"} <= set(table)
    scores = {chosen[0]["id"]: 1.0, chosen[1]["id"]: 0.0, chosen[3]["id"]: 1.0}
    assert table.set_index("id")["exact_match"].to_dict() == scores


def test_several_requests_of_a_document_are_scored() -> None:
    docs = lm_eval_ext.load_documents("conceptual_mini")
    golds = [[doc["answer"], "no such answer"] for doc in docs]
    results = lm_eval_ext.score("conceptual_mini", docs, golds)
    accuracy = results.rows("conceptual_mini").groupby("demonstrations")["accuracy"].mean()
    assert (accuracy["random"], accuracy["concept"]) == (1.0, 0.0)
    assert results.to_dataframe().set_index("metric").value["gain/accuracy"] == -1.0
    figures = results.to_dataframe(metrics=["score"], value="accuracy", by="demonstrations")
    assert dict(zip(figures.demonstrations, figures.value, strict=True)) == dict(accuracy)
    with pytest.raises(OptionError, match="no demonstrations none; available: concept, random"):
        results.to_dataframe(metrics=["score"], where=["demonstrations=none"])


def test_log_probabilities_are_scored() -> None:
    docs = lm_eval_ext.load_documents("lieder_mini")
    felicitous = []
    for doc in docs:
        likely = set(doc["felicitous"])
        felicitous.append([-1.0 if name in likely else -9.0 for name in doc["condition"]])
    assert headline(lm_eval_ext.score("lieder_mini", docs, felicitous))["value"] == 1.0


def test_scores_with_a_folder_are_read_like_a_run(documents: Documents, tmp_path: Path) -> None:
    answers = [document["form"] if number % 3 else "x" for number, document in enumerate(documents)]
    scored = lm_eval_ext.score(TASK, documents, answers, output=tmp_path, model="some/model")
    lm_eval_ext.score(TASK, documents[:9], answers[:9], output=tmp_path, model="some/model")
    read = lm_eval_ext.load_results([tmp_path, *tmp_path.glob("*/*.json")])
    assert read.overview()["task"].tolist() == [TASK]
    figures = read.to_dataframe()
    assert figures.model.unique().tolist() == ["some/model"]
    pd.testing.assert_frame_equal(figures, scored.to_dataframe())
    pd.testing.assert_frame_equal(read.rows(TASK), scored.rows(TASK))
    with pytest.raises(OptionError, match="no task 'other' in these results"):
        read.samples("other")
    for figure in lm_eval_ext.plot(tmp_path):
        assert figure._repr_svg_().startswith("<svg")


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        pytest.param(
            "cogs_mini_idd",
            {},
            "no task 'cogs_mini_idd'; did you mean cogs_mini_id",
            id="a misspelt task",
        ),
        pytest.param("cogs_mini", {}, "no task 'cogs_mini'; did you mean", id="a group"),
        pytest.param(TASK, {"cog_seed": 7}, "cog_seed", id="a misspelt option"),
    ],
)
def test_unknown_tasks_and_options_are_named(
    task: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(LmEvalExtError, match=message):
        lm_eval_ext.load_documents(task, **options)


@pytest.mark.parametrize(
    ("count", "answers", "message"),
    [
        pytest.param(1, [], "1 documents, 1 of them .* and 0 answers", id="no answer"),
        pytest.param(0, [], "0 documents", id="no document"),
        pytest.param(2, ["x", "y"], "2 documents, 1 of them", id="a document twice"),
        pytest.param(1, [["x", "y"]], "2 to a document with 1 requests", id="two answers"),
        pytest.param(1, [-1.0], "is not a text", id="a number"),
    ],
)
def test_documents_and_answers_that_do_not_fit_are_refused(
    documents: Documents, count: int, answers: list[Any], message: str
) -> None:
    """The documents are so many copies of the first one."""
    copies = [documents[0] for _ in range(count)]
    with pytest.raises(OptionError, match=message):
        lm_eval_ext.score(TASK, copies, answers)


def test_a_document_of_another_task_is_refused(documents: Documents) -> None:
    changed = {**documents[0], "sentence": "?"}
    with pytest.raises(OptionError, match="1 documents, 0 of them"):
        lm_eval_ext.score(TASK, [changed], ["x"])


def test_sql_in_a_frame(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "d.sqlite") as database:
        database.execute("create table t (a integer)")
        database.execute("insert into t values (1), (2)")
    wrong = [None, float("nan"), "SELECT b FROM t"]
    frame = pd.DataFrame(
        {
            "db_id": "d",
            "gold_sql": "SELECT 2",
            "predicted_sql": ["SELECT max(a) FROM t", "SELECT a FROM t", *wrong],
        },
        index=[5, 4, 3, 2, 1],
    )
    scored = lm_eval_ext.score_sql(frame, tmp_path, workers=1)
    errors = dict.fromkeys((3, 2, 1), "prediction_error")
    assert scored.status.to_dict() == {5: "correct", 4: "wrong", **errors}
    assert "status" not in frame
    assert scored.attrs["signature"].startswith("reference-v")
    with pytest.raises(OptionError, match="no column gold_sql"):
        lm_eval_ext.score_sql(frame.drop(columns="gold_sql"), tmp_path)


def test_the_page_shows_the_output_of_its_code() -> None:
    module = runpy.run_path(str(ROOT / "docs" / "execute.py"))
    page = module["PAGE"].read_text(encoding="utf-8")
    assert len(module["BLOCK"].findall(page)) > 5
    assert module["executed"](page) == page
