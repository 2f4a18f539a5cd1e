"""Scoring a file of predictions, the work of ``lm-eval-ext sql-score``."""

import glob
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text, sha256_of_json
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
from lm_eval_ext.sql.values import NOT_SCORABLE, STATUSES, Place, Status, Verdict


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
        signature: What the verdicts depend on other than the files.
    """

    rows: int
    scored: int
    correct: int
    accuracy: float | None
    counts: dict[Status, int]
    seconds: float
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
            f"{self.rows:,} rows in {self.seconds:.1f} s",
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
) -> Summary:
    """Writes a file's rows with their status, in the same order, and returns a summary.

    Everything is checked before the first query, and ``out`` appears only when it is complete.
    Until then statuses are kept beside it, and whatever ends the process, the same command goes on
    from there, unless the rows, the databases or the options have changed.

    Args:
        predictions: A .tsv or .jsonl file with db_id, gold_sql and predicted_sql.
        databases: A database or a folder of them
            (:data:`~lm_eval_ext.sql.engines.places.LEGAL`).
        out: The file to write, .tsv or .jsonl; may be ``predictions`` itself.
        semantics: When results count as equal.
        timeout_s: Seconds of processor time per query; None: the default of :class:`Limits`.
        workers: Worker processes.

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
    known = databases_at(databases, option="--databases")
    with Executor(known, workers=workers, limits=limits) as executor:
        # A server that is not there, or a role that is refused, is said before anything is scored.
        engine = engine_of(executor, known, (str(record["db_id"]) for record in records))
        signature = f"{rule.signature}|timeout:{limits.timeout_s:g}s|{engine}"
        part = _Part(out, records, known, signature)
        began = time.perf_counter()
        statuses = part.statuses()
        verdicts = executor.score(map(example_of, records[len(statuses) :]), semantics=rule.name)
        with tqdm(
            total=len(records),
            initial=len(statuses),
            unit="row",
            desc="sql-score",
            disable=None,
        ) as bar:
            for status in part.kept(len(statuses), verdicts):
                statuses.append(status)
                bar.update()
        seconds = time.perf_counter() - began
    with atomic_text(out, errors="surrogateescape") as file:
        writer = Writer(file, kind, columns)
        for record, status in zip(records, statuses, strict=True):
            writer.write(record, status)
    part.remove()
    return _summary(Counter(statuses), seconds, signature)


def engine_of(executor: Executor, known: Databases | OneDatabase, db_ids: Iterable[str]) -> str:
    """The engine of the databases that rows name, for the signature; SQLite's if there are none.

    Raises:
        DataError: The first database cannot be used.
    """
    for db_id in dict.fromkeys(db_ids):
        if (place := known.find(db_id)) is not None:
            return executor.engine_at(place)
    return f"sqlite:{sqlite3.sqlite_version}"


class _Part:
    """The statuses of the rows so far, in a file beside the one to be written.

    Its name has a checksum of everything that they depend on, so that another command neither
    goes on with them nor writes among them. A line per row has its number, so that two of the
    same commands may write at once.
    """

    def __init__(
        self, out: Path, records: list[Record], known: Databases | OneDatabase, signature: str
    ) -> None:
        rows = [[record[key] for key in COLUMNS] for record in records]
        states = [_state(known.find(db_id)) for db_id in sorted({db_id for db_id, *_ in rows})]
        digest = sha256_of_json([signature, rows, states])[:12]
        self._out = out
        self._path = out.with_name(f"{out.name}.{digest}.part")

    def statuses(self) -> list[Status]:
        """Those of the first rows that an earlier command has scored."""
        try:
            lines = self._path.read_text(encoding="utf-8").split("\n")[:-1]
        except OSError:
            return []
        found = dict(line.partition(" ")[::2] for line in lines)
        statuses: list[Any] = []
        while (status := found.get(str(len(statuses)))) in STATUSES:
            statuses.append(status)
        return statuses

    def kept(self, first: int, verdicts: Iterator[Verdict]) -> Iterator[Status]:
        """Passes on statuses, and keeps each, from the row ``first``.

        Raises:
            DataError: A database cannot be used any more.
            OptionError: The file cannot be written.
        """
        done = first
        try:
            # Line by line to the system: a killed process loses no row that was scored.
            with self._path.open("a", encoding="utf-8", buffering=1) as file:
                for verdict in verdicts:
                    file.write(f"{done} {verdict.status}\n")
                    done += 1
                    yield verdict.status
        except DataError as error:
            raise DataError(
                f"{error}; the first {done:,} rows are scored and kept in "
                f"{self._path.name}: the same command goes on from there"
            ) from None
        except OSError as error:
            raise OptionError(f"cannot write {self._out}: {error.strerror}") from None

    def remove(self) -> None:
        """Removes the file, and those of other commands for the same output."""
        for path in self._out.parent.glob(f"{glob.escape(self._out.name)}.*.part"):
            path.unlink(missing_ok=True)


def _state(place: Place | None) -> list[Any]:
    """What changes if a database's file does; of a server only where it is."""
    if place is None or not Path(place.address).is_file():
        return [place]
    found = Path(place.address).stat()
    return [place, found.st_size, found.st_mtime_ns]


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
        signature=signature,
    )
