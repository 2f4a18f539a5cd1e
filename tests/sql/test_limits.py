"""LIMIT, OFFSET and ORDER BY with numbers that no SQLite integer can hold."""

from pathlib import Path

import pytest
from support.databases import written

from lm_eval_ext.sql import Prediction, SqlJudge

NUMBERS = "CREATE TABLE numbers (n INTEGER); INSERT INTO numbers VALUES (1), (2), (3);"
LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("limit", "status"),
    [
        pytest.param("LIMIT 3", "correct", id="small"),
        pytest.param(f"LIMIT {LARGEST}", "correct", id="largest-integer"),
        pytest.param(f"LIMIT {LARGEST + 1}", "prediction_error", id="one-more"),
        pytest.param("LIMIT " + "9" * 5_000, "prediction_error", id="5000-digits"),
        pytest.param("LIMIT 1e300", "prediction_error", id="real"),
        pytest.param("LIMIT 3 OFFSET " + "0" * 5_000, "correct", id="5000-zeros"),
        pytest.param(f"LIMIT 3 OFFSET {LARGEST}", "wrong", id="offset-behind-all-rows"),
    ],
)
@pytest.mark.parametrize("semantics", ["reference", "strict", "spider", "bird"])
def test_numbers_of_a_limit(tmp_path: Path, limit: str, status: str, semantics: str) -> None:
    written(tmp_path / "numbers.sqlite", NUMBERS)
    gold = "SELECT n FROM numbers ORDER BY n LIMIT 3"
    prediction = Prediction("numbers", gold, f"SELECT n FROM numbers ORDER BY n {limit}")
    with SqlJudge(tmp_path, semantics=semantics) as judge:
        verdict = judge.judge_all([prediction], progress=None)[0]
    assert verdict.status == status, verdict.reason


def test_a_gold_with_a_long_limit_is_judged(tmp_path: Path) -> None:
    written(tmp_path / "numbers.sqlite", NUMBERS)
    gold = "SELECT n FROM numbers ORDER BY n LIMIT 3 OFFSET " + "0" * 5_000
    prediction = Prediction("numbers", gold, "SELECT n FROM numbers ORDER BY n")
    with SqlJudge(tmp_path, semantics="strict") as judge:
        verdict = judge.judge_all([prediction], progress=None)[0]
    assert verdict.status == "correct", verdict.reason


@pytest.mark.parametrize(
    "number",
    [
        pytest.param("9" * 5_000, id="5000-digits"),
        pytest.param("0" * 5_000 + "1", id="5000-zeros"),
        pytest.param(str(LARGEST + 1), id="one-more-than-an-integer"),
    ],
)
@pytest.mark.parametrize("semantics", ["strict", "spider", "sets"])
def test_a_gold_ordered_by_a_long_number_is_judged(
    tmp_path: Path, number: str, semantics: str
) -> None:
    """The number is an expression to SQLite, or the result column that it leads with zeros to."""
    written(tmp_path / "numbers.sqlite", NUMBERS)
    gold = f"SELECT n FROM numbers ORDER BY {number}"
    prediction = Prediction("numbers", gold, "SELECT n FROM numbers")
    with SqlJudge(tmp_path, semantics=semantics) as judge:
        verdict = judge.judge_all([prediction], progress=None)[0]
    assert verdict.status == "correct", verdict.reason
