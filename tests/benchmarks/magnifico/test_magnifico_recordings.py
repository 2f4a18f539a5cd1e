"""Recordings of MAGNIFICo: queries with the authors' verdicts, in the authors' form."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.logged import evaluate

from lm_eval_ext import load_results
from lm_eval_ext.benchmarks.magnifico import recordings
from lm_eval_ext.data.recordings import write
from lm_eval_ext.errors import DataError

HEADER = "Question\tPredicted Parse\tGold Parse\tResult\n"
ROW = (
    '"yard: which masts, at noon: tall or ""old"", are lofty? | mast : name , height"\t'
    "SELECT name\n  FROM mast\tselect name from mast where height > 30\t0\n"
).replace("\n  ", "  ")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone with a run in each folder, and a file that is none."""
    for version, names in {
        "old_outputs": ["plausible_fewshot_tall_big"],
        "outputs": ["nonsense_direct_tall_big", "og_big_100", "original_direct_tall_big"],
    }.items():
        folder = tmp_path / "spider" / version
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.tsv").write_text(HEADER + ROW)
    return tmp_path


def test_rows_become_predictions(clone: Path) -> None:
    """Questions lose database and schema; what is no run is left out by name."""
    converted = recordings.convert(clone)
    runs = [(row["version"], row["form"], row["prompt"]) for row in converted.predictions]
    assert runs == [
        ("old_outputs", "plausible", "fewshot"),
        ("outputs", "nonsense", "direct"),
        ("outputs", "original", "direct"),
    ]
    prediction = converted.predictions[0]
    assert prediction["db_id"] == "yard"
    assert prediction["question"] == 'which masts, at noon: tall or "old", are lofty?'
    assert prediction["predicted_sql"] == "SELECT name  FROM mast"
    assert prediction["recorded_correct"] == "0"
    assert converted.remarks == ["left out: outputs/og_big_100.tsv, not a run of a word"]


def test_runs_that_a_task_repeats_become_answers(clone: Path) -> None:
    """Only newer runs of the direct prompt, in forms that are asked; others are left out."""
    (system,) = recordings.convert(clone).systems
    assert (system.name, system.is_partial) == ("big", True)
    (row,) = system.rows
    assert row["doc"] == {
        "db_id": "yard",
        "question": 'which masts, at noon: tall or "old", are lofty?',
        "form": "foreign",
    }


def test_a_file_with_a_broken_row_is_left_out(clone: Path) -> None:
    """A remark names the file and the row; the other files are converted."""
    path = clone / "spider/outputs/nonsense_direct_tall_big.tsv"
    path.write_text(f"{HEADER}which masts are lofty?\tselect 1\tselect 1\t1\n")
    converted = recordings.convert(clone)
    assert len(converted.predictions) == 2
    problem = "the question does not begin with a database"
    assert converted.remarks[0] == f"left out: {path}:2: {problem}"


def test_a_clone_without_any_run_is_refused(clone: Path) -> None:
    """The line names the folders, and the first file that was no run."""
    for file in clone.glob("spider/*/*.tsv"):
        file.rename(file.with_name(f"og_{file.name}"))
    with pytest.raises(DataError, match=r"no runs in spider/old_outputs and spider/outputs; left"):
        recordings.convert(clone)


def test_the_command_writes_predictions_for_sql_score(
    clone: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    """The file is one that sql-score reads, with the authors' verdict as a column."""
    printed = cli("data", "recorded", "magnifico", str(clone), "--output", "recorded").stdout
    assert "lm-eval-ext sql-score" in printed
    lines = (tmp_path / "recorded/predictions.tsv").read_text().splitlines()
    assert lines[0].split("\t")[-1] == "recorded_correct"
    assert len(lines) == 4


def test_all_recorded_predictions_are_converted(shared_data: Path, real_data: Path) -> None:
    """The declared table has 5,923 rows, in the same order, and models with answers."""
    converted = recordings.convert(None)
    assert len(converted.predictions) == 5_923
    counts = {system.name: len(system.rows) for system in converted.systems}
    assert counts == {"davinci": 1_203, "t3": 1_720}


CHANGED_DATABASES = {"hr_1", "college_1", "college_2", "college_3", "wine_1"}
"""Databases to which the authors had added rows that they did not publish."""


@pytest.mark.long
@pytest.mark.usefixtures("populated")
def test_a_recorded_model_has_the_authors_verdicts(
    real_data: Path, tmp_path: Path, run_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 788 documents, 758 have the recorded verdict; the others are on changed databases."""
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
    converted = recordings.convert(None)
    write(converted, tmp_path)
    settings = yaml.safe_load((tmp_path / "models/davinci.yaml").read_text())
    evaluate(
        tmp_path / "results",
        settings["model"],
        ["magnifico_direct"],
        model_args=settings["model_args"],
    )
    recorded = {}
    for prediction in converted.predictions:
        is_replayed = prediction["version"] == "outputs" and prediction["prompt"] == "direct"
        if prediction["model"] == "davinci" and is_replayed:
            form = recordings.FORMS[prediction["form"]]
            key = (prediction["db_id"], prediction["question"], form)
            recorded[key] = prediction["recorded_correct"] == "1"

    same, different = 0, Counter[str]()
    samples = load_results(tmp_path / "results").samples("magnifico_direct")
    samples = samples.dropna(subset=["rows"])  # documents without an answer
    for document, rows in zip(samples["doc"], samples["rows"], strict=True):
        originals = [row["correct"] for row in rows if row.get("database") == "original"]
        verdict = recorded[document["db_id"], document["question"], document["form"]]
        if (originals == [1.0]) is verdict:
            same += 1
        else:
            different[document["db_id"]] += 1
    assert (same, sum(different.values())) == (758, 30)
    assert set(different) <= CHANGED_DATABASES | {"voter_2"}
