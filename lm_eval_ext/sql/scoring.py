"""Scoring a file of predictions, the work of ``lm-eval-ext sql-score``."""

import hashlib
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.compare import find_semantics
from lm_eval_ext.sql.engines.places import Databases, OneDatabase, databases_at
from lm_eval_ext.sql.executor import DEFAULT_WORKERS, Executor
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.predictions import (
    COLUMNS,
    Record,
    Writer,
    example_of,
    format_of,
    read_predictions,
)
from lm_eval_ext.sql.values import NOT_SCORABLE, STATUSES, Status


@dataclass(frozen=True)
class Summary:
    """The result of scoring a file.

    Attributes:
        rows: Rows of the file.
        scored: Rows that say something about the model: all but gold_error and
            database_missing. The accuracy's denominator.
        correct: Rows with the status correct.
        accuracy: ``correct / scored``; None if no row could be scored.
        counts: Rows per status, every status named.
        seconds: Real time from the first query to the last verdict, with the start of workers.
        verdicts_per_second: ``rows / seconds``.
        signature: What the verdicts depend on other than the files.
    """

    rows: int
    scored: int
    correct: int
    accuracy: float | None
    counts: dict[Status, int]
    seconds: float
    verdicts_per_second: float
    signature: str

    def as_dict(self) -> dict[str, Any]:
        """Returns the summary as JSON values."""
        return asdict(self)

    def as_text(self) -> str:
        """Returns the summary for a reader, in a few lines."""
        left_out = self.rows - self.scored
        accuracy = (
            "none: no row can be scored"
            if self.accuracy is None
            else f"{100 * self.accuracy:.2f} % ({self.correct:,} of {self.scored:,} rows scored)"
        )
        width = max(map(len, self.counts))
        lines = [
            f"accuracy: {accuracy}",
            *(f"  {status:<{width}} {count:>9,}" for status, count in self.counts.items()),
            f"{self.rows:,} rows in {self.seconds:.1f} s, "
            f"{self.verdicts_per_second:,.0f} verdicts per second",
            f"signature: {self.signature}",
        ]
        if left_out:
            lines.insert(1, f"not scored: {left_out:,} rows (gold_error, database_missing)")
        return "\n".join(lines)


def score_file(
    predictions: Path,
    databases: Path | str,
    out: Path,
    *,
    semantics: str = "reference",
    timeout_s: float | None = None,
    workers: int = DEFAULT_WORKERS,
    cache: Path | None = None,
    progress: bool | None = None,
) -> Summary:
    """Writes a file's rows with their status, in the same order, and returns a summary.

    Everything is checked before the first query, and ``out`` appears only when it is complete.

    Args:
        predictions: A .tsv or .jsonl file with db_id, gold_sql and predicted_sql.
        databases: A database or a folder of them
            (:data:`~lm_eval_ext.sql.engines.places.LEGAL`).
        out: The file to write, .tsv or .jsonl; may be ``predictions`` itself.
        semantics: When results count as equal.
        timeout_s: Seconds of processor time per query; None: the default of :class:`Limits`.
        workers: Worker processes.
        cache: Where folders of Parquet and CSV files are converted to.
        progress: Whether to show a bar on stderr; None: if stderr is a terminal.

    Raises:
        OptionError: An argument is invalid.
        DataError: A file cannot be read or written.
    """
    from tqdm import tqdm

    kind = format_of(out)
    rule = find_semantics(semantics)
    limits = Limits() if timeout_s is None else Limits(timeout_s=timeout_s)
    if not out.parent.is_dir():
        raise OptionError(f"{out}: the folder {out.parent} does not exist")
    if out.is_dir():
        raise OptionError(f"{out}: this is a folder; name a file")
    records = read_predictions(predictions)
    columns = list(dict.fromkeys(key for record in records for key in record)) or list(COLUMNS)
    known = databases_at(databases, cache, option="--databases")
    counts: Counter[Status] = Counter()
    with (
        Executor(known, workers=workers, limits=limits) as executor,
        tqdm(
            total=len(records),
            unit="row",
            desc="sql-score",
            disable=None if progress is None else not progress,
        ) as bar,
    ):
        # A server that is not there, or a role that is refused, is said before anything is scored.
        engine = engine_of(executor, known, (str(record["db_id"]) for record in records))
        signature = f"{rule.signature}|timeout:{limits.timeout_s:g}s|{engine}"
        kept = _Kept(out, records, signature)
        with atomic_text(out, errors="surrogateescape") as file:
            writer = Writer(file, kind, columns)
            began = time.perf_counter()
            left = records[len(kept.statuses) :]
            verdicts = executor.score(map(example_of, left), semantics=rule.name)
            statuses = chain(
                kept.statuses[:], kept.following(verdict.status for verdict in verdicts)
            )
            for record, status in zip(records, statuses, strict=True):
                writer.write(record, status)
                counts[status] += 1
                bar.update()
            seconds = time.perf_counter() - began
        kept.path.unlink(missing_ok=True)
    return _summary(counts, seconds, signature)


def engine_of(executor: Executor, known: Databases | OneDatabase, db_ids: Iterable[str]) -> str:
    """The engine of the databases that rows name, for the signature; SQLite's if there are none.

    Raises:
        DataError: The first database cannot be used.
    """
    if isinstance(known, OneDatabase):
        return executor.engine_at(known.place)
    for db_id in dict.fromkeys(db_ids):
        if (place := known.find(db_id)) is not None:
            return executor.engine_at(place)
    return f"sqlite:{sqlite3.sqlite_version}"


class _Kept:
    """What a run scored before its database went away, in a file beside the one to be written.

    Attributes:
        path: Of that file.
        statuses: Those of the first rows, from an earlier run on the same rows.
    """

    def __init__(self, out: Path, records: list[Record], signature: str) -> None:
        self.path = out.with_name(f"{out.name}.kept.json")
        rows = json.dumps([[record[key] for key in COLUMNS] for record in records])
        self._key = hashlib.sha256(f"{signature}\n{rows}".encode()).hexdigest()
        self.statuses: list[Status] = []
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            if kept["key"] == self._key:
                self.statuses = [status for status in kept["statuses"] if status in STATUSES]
        except (OSError, ValueError, KeyError, TypeError):
            return

    def following(self, statuses: Iterator[Status]) -> Iterator[Status]:
        """Passes on the other rows' statuses; keeps all so far if the database goes away."""
        try:
            for status in statuses:
                self.statuses.append(status)
                yield status
        except DataError as error:
            kept = {"key": self._key, "statuses": self.statuses}
            self.path.write_text(json.dumps(kept), encoding="utf-8")
            raise DataError(
                f"{error}; the first {len(self.statuses):,} rows are scored and kept in "
                f"{self.path.name}: the same command goes on from there"
            ) from None


def _summary(counts: "Counter[Status]", seconds: float, signature: str) -> Summary:
    rows = counts.total()
    scored = rows - sum(counts[status] for status in NOT_SCORABLE)
    return Summary(
        rows=rows,
        scored=scored,
        correct=counts["correct"],
        accuracy=counts["correct"] / scored if scored else None,
        counts={status: counts[status] for status in STATUSES},
        seconds=seconds,
        verdicts_per_second=rows / seconds if seconds else 0.0,
        signature=signature,
    )
