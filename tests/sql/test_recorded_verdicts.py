"""Against the verdicts that the authors' own evaluator recorded for 5,923 real predictions."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.sql.predictions import read_predictions
from lm_eval_ext.sql.scoring import JudgeOptions, score_file

CHANGED_BY_THE_AUTHORS = {"hr_1", "college_1", "college_2", "college_3", "wine_1"}
"""Databases to which the authors had added rows that they did not publish."""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("recorded verdicts")]


@pytest.fixture(scope="module")
def scored(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    predictions = shared_data / "magnifico/recorded_predictions/runs.tsv"
    out = tmp_path_factory.mktemp("recorded") / "out.tsv"
    # Seconds enough: one prediction would need more than any.
    options = JudgeOptions(shared_data / "spider_databases", timeout_s=3)
    summary = score_file(predictions, options, out)
    rows = [dict(row.record) for row in read_predictions(out)]
    original_rows = [dict(row.record) for row in read_predictions(predictions)]
    assert summary.rows == len(rows) == 5_923
    verdicts = dict.fromkeys(("status", "reason"), "")
    assert [row | verdicts for row in rows] == [row | verdicts for row in original_rows]
    return rows


def agrees(row: dict[str, Any]) -> bool:
    return (row["status"] == "correct") is (row["recorded_correct"] == "1")


@pytest.mark.parametrize(("runs", "min_agreement"), [("old_outputs", 0.995), ("outputs", 0.975)])
def test_reference_agrees_with_the_recorded_verdicts(
    scored: list[dict[str, Any]], runs: str, min_agreement: float
) -> None:
    rows = [
        row
        for row in scored
        if row["run"].startswith(f"{runs}/") and row["status"] != "database_missing"
    ]
    assert len(rows) > 2_500
    assert sum(map(agrees, rows)) / len(rows) >= min_agreement


def test_disagreements_lie_where_the_authors_changed_the_databases(
    scored: list[dict[str, Any]],
) -> None:
    where = Counter(
        row["db_id"] for row in scored if row["status"] != "database_missing" and not agrees(row)
    )
    elsewhere = {db_id: n for db_id, n in where.items() if db_id not in CHANGED_BY_THE_AUTHORS}
    assert sum(elsewhere.values()) <= 2, elsewhere


def test_the_predictions_that_cannot_be_scored_are_known(scored: list[dict[str, Any]]) -> None:
    missing = {row["db_id"] for row in scored if row["status"] == "database_missing"}
    assert missing == {"baseball_1"}
    # One gold holds a doubled quotation mark that is no SQL.
    assert [row["db_id"] for row in scored if row["status"] == "gold_error"] == ["club_1"]
    assert sum(row["status"] == "prediction_timeout" for row in scored) <= 1
