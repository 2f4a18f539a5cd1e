"""Verdicts per second: this package beside the authors' way, same rows, same run.

    python benchmarks_perf/sql_verdicts.py PREDICTIONS.tsv DATABASES [--workers 2] [--timeout 10]

The authors' way: for each row a new read-write connection for the gold and another one for the
prediction, then the comparison, one row after the other, nothing cached, nothing guarded. Since
it writes, it runs on a copy of the databases. A query that would run for minutes there would
drown the rest, so rows that end in prediction_timeout here are left out on both sides (their
number is printed). Ours pays for everything: starting the workers, all guards, one run.
"""

import argparse
import csv
import shutil
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from lm_eval_ext.sql import Databases, Example, Executor, Limits
from lm_eval_ext.sql.files import example_of, read_predictions

# ruff: noqa: T201 (a script that prints)


def authors_way(database: Path, gold: str, predicted: str) -> bool:
    """Returns the authors' verdict, in their way."""
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


def main() -> None:
    """Prints both speeds and their ratio."""
    parser = argparse.ArgumentParser(description="Verdicts per second, ours and the authors'.")
    parser.add_argument("predictions", type=Path)
    parser.add_argument("databases", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=10.0)
    parser.add_argument("--semantics", default="reference")
    args = parser.parse_args()
    csv.field_size_limit(1 << 30)
    limits = Limits(timeout_s=args.timeout)

    examples = [example_of(record) for record in read_predictions(args.predictions)]
    with Executor(args.databases, workers=args.workers, limits=limits) as executor:
        statuses = [v.status for v in executor.score(examples, semantics=args.semantics)]
    left_out = ("prediction_timeout", "gold_error", "database_missing")
    rows = [e for e, s in zip(examples, statuses, strict=True) if s not in left_out]
    print(f"{len(rows):,} rows; {len(examples) - len(rows):,} left out ({', '.join(left_out)})")

    began = time.perf_counter()
    with Executor(args.databases, workers=args.workers, limits=limits) as executor:
        ours = [v.correct for v in executor.score(rows, semantics=args.semantics)]
    our_seconds = time.perf_counter() - began

    with tempfile.TemporaryDirectory() as folder:
        theirs, their_seconds = _authors(rows, args.databases, Path(folder))

    agree = sum(a == b for a, b in zip(ours, theirs, strict=True))
    print(f"ours:        {len(rows) / our_seconds:8,.0f} verdicts/s ({our_seconds:.2f} s)")
    print(f"the authors' {len(rows) / their_seconds:8,.0f} verdicts/s ({their_seconds:.2f} s)")
    print(f"ratio:       {their_seconds / our_seconds:8.1f}")
    print(f"same verdict on {agree:,} of {len(rows):,} rows")


def _authors(rows: list[Example], databases: Path, folder: Path) -> tuple[list[bool], float]:
    found = Databases(databases)
    copies: dict[str, Path] = {}
    for db_id in {row.db_id for row in rows}:
        source = found.find(db_id)
        if source is None:
            sys.exit(f"no database {db_id!r}")
        copies[db_id] = folder / f"{len(copies)}.sqlite"
        shutil.copyfile(source, copies[db_id])
    began = time.perf_counter()
    verdicts = [authors_way(copies[row.db_id], row.gold, row.predicted) for row in rows]
    return verdicts, time.perf_counter() - began


if __name__ == "__main__":
    main()
