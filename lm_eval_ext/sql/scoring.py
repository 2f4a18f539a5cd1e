"""Scoring a file of predictions, the work of ``lm-eval-ext sql-score``.

Files have a row per prediction, in one of two formats:

- ``.tsv``: UTF-8, a header, tab between cells, ``"`` around cells that need it (doubled
  inside), as Python's csv and spreadsheets write it. Invalid bytes pass through unchanged.
- ``.jsonl``: UTF-8, one object per line.
"""

import csv
import hashlib
import json
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.compare import find_semantics
from lm_eval_ext.sql.engines.places import Databases, OneDatabase, databases_at
from lm_eval_ext.sql.executor import DEFAULT_WORKERS, Executor
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import NOT_SCORABLE, STATUSES, Example, Status

COLUMNS = ("db_id", "gold_sql", "predicted_sql")
FORMATS = (".tsv", ".jsonl")

Record = dict[str, Any]


def format_of(path: Path) -> str:
    """Returns the format by a file's ending.

    Raises:
        OptionError: The ending is unknown.
    """
    if path.suffix.lower() not in FORMATS:
        raise OptionError(f"{path}: unknown ending {path.suffix!r}; use {' or '.join(FORMATS)}")
    return path.suffix.lower()


def read_predictions(path: Path) -> list[Record]:
    """Returns the rows of a file; each has text in the columns db_id, gold_sql, predicted_sql.

    A predicted_sql of null (JSON Lines) is allowed for a model without an answer.

    Raises:
        OptionError: The ending is unknown.
        DataError: The file cannot be read, or a row is broken; the message has the line.
    """
    read = _read_tsv if format_of(path) == ".tsv" else _read_jsonl
    try:
        return read(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def example_of(record: Record) -> Example:
    """Returns a row's part that is scored."""
    db_id, gold, predicted = (record[column] for column in COLUMNS)
    return Example(db_id, gold, predicted or "")


class Writer:
    """Writes rows with their status.

    Args:
        file: An open file.
        kind: ``.tsv`` or ``.jsonl``.
        columns: The columns of a .tsv; ``status`` is put at the end unless it is one of them.
    """

    def __init__(self, file: TextIO, kind: str, columns: Sequence[str]) -> None:
        self._file = file
        self._table = None
        if kind == ".tsv":
            fields = [*columns] if "status" in columns else [*columns, "status"]
            # "" for a column that a row of JSON Lines lacks.
            self._table = csv.DictWriter(
                file, fields, restval="", delimiter="\t", lineterminator="\n"
            )
            self._table.writeheader()

    def write(self, record: Record, status: Status) -> None:
        """Writes one row."""
        record = {**record, "status": status}
        if self._table is not None:
            self._table.writerow({key: _cell(value) for key, value in record.items()})
            return
        line = json.dumps(record, ensure_ascii=False)
        try:
            line.encode("utf-8")
        except UnicodeEncodeError:  # half a surrogate pair, which JSON can only hold escaped
            line = json.dumps(record)
        self._file.write(line + "\n")


def _cell(value: Any) -> str:
    """Returns a value as a cell: text unchanged, "" for null, JSON for other values."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # Lone surrogates that stand for bytes become these; others, from JSON, are replaced.
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if _lone(text) else text


def _lone(text: str) -> bool:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return True
    return False


def _read_tsv(path: Path) -> list[Record]:
    limit = csv.field_size_limit(sys.maxsize if sys.maxsize < 1 << 31 else (1 << 31) - 1)
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            reader = csv.reader(file, delimiter="\t")
            header = next(reader, None)
            if header is None:
                raise DataError(f"{path}: empty; the first line must name the columns")
            _check_columns(path, 1, header)
            if doubled := sorted({name for name in header if header.count(name) > 1}):
                raise DataError(f"{path}: the column {doubled[0]!r} is there twice")
            records = []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise DataError(
                        f"{path}, line {reader.line_num}: {len(row)} cells instead of "
                        f'{len(header)}; cells that hold tabs, newlines or " need " around them'
                    )
                records.append(dict(zip(header, row, strict=True)))
            return records
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}") from error
    finally:
        csv.field_size_limit(limit)


def _read_jsonl(path: Path) -> list[Record]:
    records = []
    # Not splitlines(): JSON allows U+2028 and similar characters unescaped within a text.
    for number, raw in enumerate(path.read_bytes().split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            record = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: no JSON object in UTF-8: {error}") from error
        if not isinstance(record, dict):
            raise DataError(f"{path}, line {number}: {type(record).__name__}, not a JSON object")
        _check_columns(path, number, list(record))
        for column in COLUMNS:
            value = record[column]
            if not isinstance(value, str) and not (value is None and column == "predicted_sql"):
                raise DataError(f"{path}, line {number}: {column} must be text, not {value!r:.50}")
        records.append(record)
    return records


def _check_columns(path: Path, line: int, found: list[str]) -> None:
    missing = [column for column in COLUMNS if column not in found]
    if missing:
        raise DataError(
            f"{path}, line {line}: no column {', '.join(missing)}; needed are "
            f"{', '.join(COLUMNS)}, found are {', '.join(found) or 'none'}"
        )


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
