"""The judge: which database decides, by which rule, and why."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.databases import written
from support.small_databases import PATIENT

from lm_eval_ext.sql import Prediction, SqlJudge, Verdict

STAFF = """
CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT NOT NULL, pay INTEGER NOT NULL);
INSERT INTO staff VALUES (1, 'Ada', 10), (2, 'Bob', 20), (3, 'Cy', 20);
"""
ONE_MORE = STAFF + "INSERT INTO staff VALUES (4, 'Dee', 30);"
GOLD = "SELECT name FROM staff WHERE pay > 10"


@dataclass(frozen=True)
class TwoDatabases:
    """A suite of two databases, of which each judges every gold."""

    folder: Path
    names: tuple[str, ...]
    digest: str = "the hash of all rows"

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.sqlite"

    def judges_of(self, gold: str) -> tuple[str, ...]:
        assert gold
        return self.names


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judge")
    written(folder / "originals" / "Staff.sqlite", STAFF)
    written(folder / "small-0.sqlite", STAFF)
    written(folder / "small-1.sqlite", ONE_MORE)
    return folder


@pytest.fixture(scope="module")
def judge(folder: Path) -> Iterator[SqlJudge]:
    suite = TwoDatabases(folder, ("small-0", "small-1"))
    with SqlJudge(
        folder / "originals", suites={"staff": suite}, workers=1, limits=PATIENT
    ) as judge:
        yield judge


VERDICTS = {
    "right on all databases": (
        Prediction("staff", GOLD, "SELECT name FROM staff WHERE pay >= 11"),
        Verdict("correct", "", "sets-v1", "small-1", "correct"),
    ),
    "wrong on the original": (
        Prediction("staff", GOLD, "SELECT name FROM staff WHERE pay > 20"),
        Verdict("wrong", "no rows instead of 2", "reference-v1", "original", "wrong"),
    ),
    "wrong on a database of the suite": (
        Prediction("staff", GOLD, "SELECT name FROM staff WHERE pay = 20"),
        Verdict("wrong", "2 rows instead of 3: 1 missing", "sets-v1", "small-1", "correct"),
    ),
    "fails": (
        Prediction("staff", GOLD, "SELECT nom FROM staff"),
        Verdict(
            "prediction_error",
            "no such column: nom",
            "reference-v1",
            "original",
            "prediction_error",
        ),
    ),
    "the gold fails": (
        Prediction("staff", "SELECT nom FROM staff", GOLD),
        Verdict(
            "gold_error",
            "error: no such column: nom",
            "reference-v1",
            "original",
            "gold_error",
        ),
    ),
    "no such database": (
        Prediction("small-0/staff", GOLD, GOLD),
        Verdict(
            "database_missing",
            "no database 'small-0/staff'",
            "reference-v1",
            "original",
            "database_missing",
        ),
    ),
}


@pytest.mark.parametrize(("prediction", "verdict"), VERDICTS.values(), ids=VERDICTS)
def test_a_verdict_names_reason_rule_and_database(
    judge: SqlJudge, prediction: Prediction, verdict: Verdict
) -> None:
    """A verdict names its reason, its rule, and the database that decided."""
    assert judge.judge_all([prediction], progress=None) == [verdict]


def test_verdicts_come_in_the_order_of_the_predictions(judge: SqlJudge) -> None:
    """Verdicts come in the order of the predictions, all at once or one by one."""
    predictions = [prediction for prediction, _ in VERDICTS.values()]
    verdicts = [verdict for _, verdict in VERDICTS.values()]
    assert judge.judge_all(predictions[::-1]) == verdicts[::-1]
    assert list(judge.judge_iter(predictions)) == verdicts


def test_a_suite_database_with_a_broken_gold_decides_nothing(folder: Path, tmp_path: Path) -> None:
    """The verdict is that of the other databases."""
    written(tmp_path / "small-0.sqlite", "CREATE TABLE staff (id)")
    written(tmp_path / "small-1.sqlite", ONE_MORE)
    suite = TwoDatabases(tmp_path, ("small-0", "small-1"))
    predictions = [
        Prediction("staff", GOLD, "SELECT name FROM staff WHERE pay >= 11"),
        Prediction("staff", GOLD, "SELECT name FROM staff WHERE pay = 20"),
    ]
    with SqlJudge(folder / "originals", suites={"staff": suite}, limits=PATIENT) as judge:
        verdicts = judge.judge_all(predictions, progress=None)
    assert [(verdict.status, verdict.database) for verdict in verdicts] == [
        ("correct", "small-1"),
        ("wrong", "small-1"),
    ]


def test_an_explanation_has_both_results_and_their_difference(judge: SqlJudge) -> None:
    """The results on the deciding database, and the rows in which they differ."""
    explanation = judge.explain(("staff", GOLD, "SELECT name FROM staff WHERE pay = 20"))
    assert explanation.verdict.database == "small-1"
    assert explanation.gold == (("name",), [("Bob",), ("Cy",), ("Dee",)])
    assert explanation.predicted == (("name",), [("Bob",), ("Cy",)])
    assert (list(explanation.missing), list(explanation.extra)) == ([("Dee",)], [])


def test_a_signature_has_the_rule_and_the_suites(judge: SqlJudge, folder: Path) -> None:
    """Without suites it is the rule's own; with suites it has their rule and hash."""
    assert judge.signature.startswith("reference-v1|suites:sets-v1,")
    with SqlJudge(folder / "originals", semantics="strict") as plain:
        assert plain.signature == "strict-v2"
