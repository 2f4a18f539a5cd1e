"""Verdicts on predictions of real models, beside the authors' code.

The authors' way: for each row a new read-write connection for the gold and another one for the
prediction, then the comparison, one row after the other, nothing cached, nothing guarded. Since
it writes, it runs on a copy of the databases. A query that runs for minutes there would hide the
rest, so rows that end in ``prediction_timeout`` here, or have no gold result, are skipped on
both sides. Our times include everything: starting the workers and all guards.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from bench.data import originals
from bench.rows import DifferError, Row, in_turn
from lm_eval_ext.sql import Databases, Executor, Limits
from lm_eval_ext.sql.predictions import read_predictions
from lm_eval_ext.sql.values import Prediction

SIZE = 4000
WORKERS = 2
LIMITS = Limits(timeout_s=10.0)
SKIPPED = ("prediction_timeout", "gold_error", "database_missing")


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yield a row for predictions that are spread over all runs."""
    databases = originals("spider_databases")
    predictions = chosen_predictions(databases, max(10, round(SIZE * share)))
    with tempfile.TemporaryDirectory() as folder:
        copies = copied_databases(databases, predictions, Path(folder))

        def theirs() -> list[bool]:
            verdicts = []
            for prediction in predictions:
                database = copies[prediction.db_id]
                verdicts.append(authors_way(database, prediction.gold, prediction.predicted))
            return verdicts

        def ours() -> list[bool]:
            with Executor(databases, workers=WORKERS, limits=LIMITS) as executor:
                verdicts = executor.score(predictions, semantics="reference")
                return [verdict.correct for verdict in verdicts]

        measured = in_turn(rounds, theirs, ours)
    if measured.their_result != measured.our_result:
        raise DifferError("the authors' verdicts and ours differ")
    yield Row(
        work=f"verdicts on recorded predictions, {WORKERS} workers",
        size=len(predictions),
        baseline="the authors' way",
        theirs=measured.theirs,
        ours=measured.ours,
        same="verdicts identical",
    )


def chosen_predictions(databases: Path, size: int) -> list[Prediction]:
    """Return about as many recorded predictions, without those that are skipped."""
    recorded = read_predictions(originals("magnifico/recorded_predictions/runs.tsv"))
    # More than needed, since some are skipped.
    step = max(1, len(recorded) // (size * 5 // 4))
    candidates = [row.prediction for row in recorded[::step]]
    kept = []
    with Executor(databases, workers=WORKERS, limits=LIMITS) as executor:
        verdicts = executor.score(candidates, semantics="reference")
        for prediction, verdict in zip(candidates, verdicts, strict=True):
            if verdict.status not in SKIPPED:
                kept.append(prediction)
    return kept[:: max(1, len(kept) // size)][:size]


def copied_databases(
    databases: Path, predictions: Sequence[Prediction], folder: Path
) -> dict[str, Path]:
    """Copy the databases of predictions into a folder; return the copies by database id."""
    originals_by_id = Databases(databases)
    copies: dict[str, Path] = {}
    for db_id in {prediction.db_id for prediction in predictions}:
        location = originals_by_id.find(db_id)
        if location is None:
            raise LookupError(f"no database {db_id!r}")
        copies[db_id] = folder / f"{len(copies)}.sqlite"
        shutil.copyfile(location.address, copies[db_id])
    return copies


def authors_way(database: Path, gold: str, predicted: str) -> bool:
    """Return the verdict as the authors' code computes it."""
    results = []
    for sql in (gold, predicted):
        with closing(sqlite3.connect(database)) as connection:
            connection.text_factory = lambda raw: raw.decode(errors="ignore")
            try:
                results.append(connection.execute(sql).fetchall())
                connection.commit()
            except (sqlite3.Error, sqlite3.Warning):
                return False
    gold_rows, predicted_rows = results
    if len(gold_rows) != len(predicted_rows):
        return False
    for gold_row, predicted_row in zip(gold_rows, predicted_rows, strict=True):
        if set(gold_row) != set(predicted_row):
            return False
    return True
