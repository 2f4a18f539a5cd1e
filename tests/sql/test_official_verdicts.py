"""Against the verdicts of Spider's official evaluator on predictions of published systems."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lm_eval_ext.sql import Prediction, SqlJudge, Verdict

pytestmark = [pytest.mark.slow]

SYSTEMS = ("codex-din-sql", "gpt-4-few-shot")
COLUMNS = {"spider": "official_default", "spider-distinct": "official_keep_distinct"}


class Judged(NamedTuple):
    """A prediction with our verdict and the official one."""

    prediction: Prediction
    verdict: Verdict
    official: bool


def judged(folder: Path, system: str, semantics: str) -> Iterator[Judged]:
    lines = (folder / "predictions" / f"{system}.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    predictions = [
        Prediction(record["db_id"], record["gold_sql"], record["predicted_sql"])
        for record in records
    ]
    with SqlJudge(folder / "databases", semantics=semantics) as judge:
        verdicts = judge.judge_all(predictions, progress=None)
    official_column = COLUMNS.get(semantics, "official_keep_distinct")
    for record, prediction, verdict in zip(records, predictions, verdicts, strict=True):
        yield Judged(prediction, verdict, record[official_column] == 1)


@pytest.mark.parametrize("semantics", COLUMNS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_spider_agrees_with_the_official_evaluator(
    shared_data: Path, system: str, semantics: str
) -> None:
    """Every verdict is the official one, with DISTINCT kept and without."""
    rows = list(judged(shared_data / "spider_dev", system, semantics))
    assert len(rows) == 972
    differing = [row for row in rows if row.verdict.correct != row.official]
    assert differing == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_wrong_prediction_has_a_reason(shared_data: Path, system: str) -> None:
    """And no right one has."""
    for row in judged(shared_data / "spider_dev", system, "strict"):
        assert bool(row.verdict.reason) is not row.verdict.correct, row
