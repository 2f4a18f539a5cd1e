"""Every hostile prediction ends within its limits, and the next query is answered."""

from pathlib import Path
from typing import Any

import pytest
from support.databases import written
from support.hostile_cases import CASES, Case, cases
from support.small_databases import (
    GOLD,
    MIB,
    PATIENT,
    PEOPLE,
    TIGHT,
    check_hostile,
    score_one,
    state_of,
)

from lm_eval_ext.sql import Executor, Verdict
from lm_eval_ext.sql.pool import WorkerProcess

pytestmark = pytest.mark.slow

LATE = "text search"
"""A case that nothing but the end of its process stops: two seconds each time."""


@pytest.mark.parametrize("engines", [("sqlite",), ("both", "duckdb"), ("both", "postgresql")])
def test_the_corpus_is_large_enough_and_says_each_thing_once(engines: tuple[str, ...]) -> None:
    corpus = cases(*engines)
    assert len({case.name for case in corpus}) == len({case.sql for case in corpus}) == len(corpus)
    assert len(corpus) >= 120


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_prediction_does_no_harm(case: Case, fitting: Executor, databases: Path) -> None:
    check_hostile(case, fitting, databases, 96 * MIB)  # with the interpreter's own
    assert not list(databases.rglob("*stolen*"))
    assert not list(Path().glob("*stolen*"))


def test_as_one_stream_they_change_nothing_and_stay_apart(tmp_path: Path) -> None:
    written(tmp_path / "people.sqlite", PEOPLE)
    before = state_of(tmp_path)
    quick = [case for case in CASES if not case.can_be_late]
    rows = []
    for case in quick:
        rows += [("people", GOLD, sql) for sql in (case.sql, "SELECT 6", "SELECT 5")]
    with Executor(tmp_path, workers=2, limits=PATIENT) as executor:
        verdicts = list(executor.score(rows))
    triples = zip(quick, verdicts[::3], verdicts[1::3], verdicts[2::3], strict=True)
    for case, hostile, right, wrong in triples:
        assert hostile.status in case.statuses, (case.name, hostile)
        assert right.status == "correct", (case.name, right)
        assert wrong.status == "wrong", (case.name, wrong)
    assert state_of(tmp_path) == before


SHORT_CASES = [case for case in CASES if len(case.sql) < 5_000]
GOLD_CASES = [case for case in SHORT_CASES[::5] if case.name != LATE]
"""Every fifth case with a short text."""

STATUS_OF_GOLD = {"wrong": "wrong", "correct": "wrong"}
"""The status of a wrong prediction where a gold runs; any other gold has an error."""


@pytest.mark.parametrize("case", GOLD_CASES, ids=lambda case: case.name)
def test_a_hostile_gold_is_a_gold_error(case: Case, fitting: Executor) -> None:
    """The gold is no more trusted than the prediction."""
    verdict = score_one(fitting, "people", case.sql, "SELECT 'no gold says this'")
    assert verdict.status in {STATUS_OF_GOLD.get(status, "gold_error") for status in case.statuses}


def test_a_gold_that_kills_its_worker_does_so_once(
    databases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[WorkerProcess] = []
    initialize = WorkerProcess.__init__

    def initialize_and_note(worker: WorkerProcess, *arguments: Any) -> None:
        started.append(worker)
        initialize(worker, *arguments)

    monkeypatch.setattr(WorkerProcess, "__init__", initialize_and_note)
    (late,) = [case.sql for case in CASES if case.name == LATE]
    rows = [("people", late, f"SELECT {i}") for i in range(20)]
    with Executor(databases, workers=1, limits=TIGHT) as executor:
        verdicts = list(executor.score([*rows, ("people", GOLD, "SELECT 6")]))
    assert [v.status for v in verdicts] == ["gold_error"] * 20 + ["correct"]
    assert verdicts[0] == Verdict("gold_error", "timeout: killed after 2 s without an answer")
    assert len(started) == 2
