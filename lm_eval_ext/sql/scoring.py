"""Scoring a file of predictions: what ``lm-eval-ext sql-score`` does."""

import sqlite3
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql.compare import find_semantics
from lm_eval_ext.sql.executor import DEFAULT_WORKERS, Executor
from lm_eval_ext.sql.files import COLUMNS, Writer, example_of, format_of, read_predictions
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import NOT_SCORABLE, STATUSES, Status


@dataclass(frozen=True)
class Summary:
    """What came out of scoring a file.

    Attributes:
        rows: Rows of the file.
        scored: Rows that say something about the model: all but gold_error and
            database_missing. The accuracy's denominator.
        correct: Rows with the status correct.
        accuracy: ``correct / scored``; None if no row could be scored.
        counts: Rows per status, every status named.
        seconds: Real time from the first query to the last verdict, start of workers included.
        verdicts_per_second: ``rows / seconds``.
        signature: All that the verdicts depend on beside the files.
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
        """Returns the summary as JSON can hold it."""
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
    databases: Path,
    out: Path,
    *,
    semantics: str = "reference",
    timeout_s: float | None = None,
    workers: int = DEFAULT_WORKERS,
    progress: bool | None = None,
) -> Summary:
    """Writes a file's rows with their status, same rows, same order, and sums them up.

    Everything is checked before the first query, and ``out`` appears only when it is whole.

    Args:
        predictions: A .tsv or .jsonl file with db_id, gold_sql and predicted_sql.
        databases: A folder of SQLite files.
        out: The file to write, .tsv or .jsonl; may be ``predictions`` itself.
        semantics: When results count as equal.
        timeout_s: Seconds of processor time per query; None: the default of :class:`Limits`.
        workers: Worker processes.
        progress: Whether to show a bar on stderr; None: if stderr is a terminal.

    Raises:
        OptionError: An argument is not legal.
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
    counts: Counter[Status] = Counter()
    with (
        Executor(databases, workers=workers, limits=limits) as executor,
        atomic_text(out, errors="surrogateescape") as file,
        tqdm(
            total=len(records),
            unit="row",
            desc="sql-score",
            disable=None if progress is None else not progress,
        ) as bar,
    ):
        writer = Writer(file, kind, columns)
        began = time.perf_counter()
        verdicts = executor.score(map(example_of, records), semantics=rule.name)
        for record, verdict in zip(records, verdicts, strict=True):
            writer.write(record, verdict.status)
            counts[verdict.status] += 1
            bar.update()
        seconds = time.perf_counter() - began
    return _summary(counts, seconds, f"{rule.signature}|timeout:{limits.timeout_s:g}s")


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
        signature=f"{signature}|sqlite:{sqlite3.sqlite_version}",
    )
