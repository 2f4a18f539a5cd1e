"""Files of predictions, with a row for each, in one of two formats.

- ``.tsv``: UTF-8, a header, tab between cells, ``"`` around cells that need it (doubled
  inside), as Python's csv and spreadsheets write it. Invalid bytes pass through unchanged.
- ``.jsonl``: UTF-8, one object per line.
"""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.values import Example, Status

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
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Lone surrogates that stand for bytes become these; others, from JSON, are replaced.
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def _read_tsv(path: Path) -> list[Record]:
    limit = csv.field_size_limit((1 << 31) - 1)  # the most that every system takes
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
