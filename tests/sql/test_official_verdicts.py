"""Against the verdicts of Spider's official evaluator on predictions of published systems."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from lm_eval_ext.sql import Prediction, SqlJudge, Verdict
from lm_eval_ext.sql.suite import populate

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


RowNumbers = Mapping[str, Mapping[str, Sequence[int]]]
"""Rows of files of predictions, by system and database."""

SLIPS_OF_SYSTEMS: RowNumbers = {
    "codex-din-sql": {"flight_2": (215, 216, 237, 238)},
    "gpt-4-few-shot": {"flight_2": (215, 216, 237, 238), "world_1": (694,)},
}
"""Rows of predictions that are right on the original by chance.

They compare an airline's number with its name where nothing is counted on the original, or rank
languages by a sum of percentages.
"""

RIGHT_REWRITES_OF_SYSTEMS: RowNumbers = {
    "codex-din-sql": {"world_1": (702, 703)},
    "gpt-4-few-shot": {"world_1": (702, 703)},
}
"""Rows of predictions that exclude countries by their code where the gold uses their names."""


@pytest.mark.parametrize("db_id", ["flight_2", "world_1"])
def test_suites_reject_slips_of_systems_and_keep_their_rewrites(
    shared_data: Path, tmp_path: Path, db_id: str
) -> None:
    folder = shared_data / "spider_dev"
    rows_by_system = {}
    for system in SYSTEMS:
        lines = (folder / "predictions" / f"{system}.jsonl").read_text(encoding="utf-8")
        rows_by_system[system] = [json.loads(line) for line in lines.splitlines()]
    golds = [row["gold_sql"] for row in rows_by_system[SYSTEMS[0]] if row["db_id"] == db_id]
    databases = folder / "databases"
    suite = populate(db_id, databases / db_id / f"{db_id}.sqlite", golds, tmp_path)
    with SqlJudge(databases, semantics="strict", suites={db_id: suite}) as judge:
        for expected, rows_of_systems in (
            (False, SLIPS_OF_SYSTEMS),
            (True, RIGHT_REWRITES_OF_SYSTEMS),
        ):
            for system, numbers in rows_of_systems.items():
                for number in numbers.get(db_id, ()):
                    row = rows_by_system[system][number]
                    prediction = Prediction(db_id, row["gold_sql"], row["predicted_sql"])
                    verdict = judge.judge_all([prediction], progress=None)[0]
                    assert verdict.correct is expected, (system, number, verdict.reason)
                    assert verdict.original_status == "correct", (system, number)
