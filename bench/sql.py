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
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.data import originals
from bench.rows import DifferError, Row, in_turn
from lm_eval_ext.sql import Databases, Executor, Limits
from lm_eval_ext.sql.predictions import read_predictions

SIZE = 4000
WORKERS = 2
LIMITS = Limits(timeout_s=10.0)
SKIPPED = ("prediction_timeout", "gold_error", "database_missing")


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yields a row for predictions that are spread over all runs."""
    databases = originals("spider_databases")
    predictions = originals("magnifico/recorded_predictions/runs.tsv")
    size = max(10, round(SIZE * share))
    every = [row.prediction for row in read_predictions(predictions)]
    # More than needed, since some are skipped.
    examples = every[:: max(1, len(every) // (size * 5 // 4))]
    with Executor(databases, workers=WORKERS, limits=LIMITS) as executor:
        statuses = [v.status for v in executor.score(examples, semantics="reference")]
    kept = [e for e, s in zip(examples, statuses, strict=True) if s not in SKIPPED]
    with tempfile.TemporaryDirectory() as folder:
        found = Databases(databases)
        copies: dict[str, Path] = {}
        for name in {row.db_id for row in kept}:
            copies[name] = Path(folder) / f"{len(copies)}.sqlite"
            place = found.find(name)
            if place is None:
                raise LookupError(f"no database {name!r}")
            shutil.copyfile(place.address, copies[name])
        chosen = kept[:: max(1, len(kept) // size)][:size]

        def theirs() -> list[bool]:
            return [authors_way(copies[row.db_id], row.gold, row.predicted) for row in chosen]

        def ours() -> list[bool]:
            with Executor(databases, workers=WORKERS, limits=LIMITS) as executor:
                return [v.correct for v in executor.score(chosen, semantics="reference")]

        times, one, other = in_turn(rounds, theirs, ours)
    if one != other:
        raise DifferError("the authors' verdicts and ours differ")
    work = f"verdicts on recorded predictions, {WORKERS} workers"
    yield Row(work, len(chosen), "the authors' way", *times, "verdicts identical")


def authors_way(database: Path, gold: str, predicted: str) -> bool:
    """Returns the verdict as the authors' code computes it."""
    results = []
    for sql in (gold, predicted):
        with closing(sqlite3.connect(database)) as connection:
            connection.text_factory = lambda raw: raw.decode(errors="ignore")
            try:
                results.append(connection.execute(sql).fetchall())
                connection.commit()
            except (sqlite3.Error, sqlite3.Warning):
                return False
    first, second = results
    return len(first) == len(second) and all(
        set(a) == set(b) for a, b in zip(first, second, strict=True)
    )
