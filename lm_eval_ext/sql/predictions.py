"""Files of predictions, with a row for each, in one of three formats.

- ``.csv`` and ``.tsv``: UTF-8, a header, a comma or a tab between cells; cells that hold either, a
  line break or a quotation mark stand in quotation marks (:mod:`.delimited`). Bytes that are not
  UTF-8 pass through unchanged.
- ``.jsonl``: UTF-8, one object per line.

A row that cannot be read ends the command with one line that names the file's line: a row that is
left out would change an accuracy without a trace.
"""

import codecs
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from lm_eval_ext.errors import DataError, OptionError, nearest
from lm_eval_ext.sql.delimited import TableError, TableReader, TableRow, quoted_cell
from lm_eval_ext.sql.values import Prediction
from lm_eval_ext.text import one_line

DB_ID, GOLD, PREDICTED = COLUMNS = ("db_id", "gold_sql", "predicted_sql")
"""The columns that are read; a file may have any others."""

DELIMITERS = {".csv": ",", ".tsv": "\t"}
FORMATS = (*DELIMITERS, ".jsonl")

_OTHER_DELIMITERS = {";": "semicolons", ",": "commas", "\t": "tabs", "|": "bars"}
_SHOWN_VALUE = 50
_SHOWN_NAMES = 300

Record = Mapping[str, object]
"""All columns of a row: texts, or any values of JSON."""


@dataclass(frozen=True)
class PredictionRow:
    """A row of a file of predictions.

    Attributes:
        number: Its number, from 1; a header does not count.
        line: The number of the line on which it begins, from 1.
        record: All of its columns.
        prediction: What is judged.
    """

    number: int
    line: int
    record: Record
    prediction: Prediction


@dataclass(frozen=True)
class PredictionFile:
    """How a file of predictions is read.

    Attributes:
        path: The file.
        quotes: Whether quotation marks may enclose cells of a .csv or .tsv.
        only_database: The id of the database of all rows if the file has no column ``db_id``;
            "": it must have one.
    """

    path: Path
    quotes: bool = True
    only_database: str = ""

    def rows(self) -> Iterator[PredictionRow]:
        """Yield all rows. Of a .jsonl no more than a line is in memory, of a table its text.

        Raises:
            OptionError: The ending of the file's name is unknown.
            DataError: The file cannot be read, or a row is broken; the message names the line.
        """
        file_format = format_of(self.path)
        try:
            with self.path.open("rb") as file:
                if file_format == ".jsonl":
                    yield from self._json_rows(file)
                else:
                    yield from self._table_rows(file, DELIMITERS[file_format])
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {error.strerror or error}") from error
        except TableError as error:
            raise DataError(f"{self.path}, line {error.line}: {error}") from None

    def _without_mark(self, beginning: bytes) -> bytes:
        """Return the beginning of the file without a byte order mark."""
        if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError(f"{self.path}: the file is in UTF-16; save it in UTF-8")
        return beginning.removeprefix(codecs.BOM_UTF8)

    def _table_rows(self, file: BinaryIO, delimiter: str) -> Iterator[PredictionRow]:
        text = self._without_mark(file.read()).decode("utf-8", "surrogateescape")
        reader = TableReader(text, delimiter, quotes=self.quotes)
        rows = reader.rows()
        first_row = next(rows, None)
        if first_row is None:
            raise DataError(f"{self.path}: empty; the first line must name the columns")
        header = self._header(first_row, delimiter)
        row_test = _RowTest(header, delimiter)
        reader.reads_as_row = row_test.reads_as_row
        number = 0
        for row in rows:
            if not any(row.cells):
                continue  # spreadsheets write such rows at the end
            if len(row.cells) != len(header):
                raise DataError(
                    f"{self.path}, line {row.line}: {len(row.cells)} cells instead of "
                    f"{len(header)}; cells that hold {_OTHER_DELIMITERS[delimiter]}, line breaks "
                    f'or " need " around them'
                )
            record = dict(zip(header, row.cells, strict=True))
            prediction = self._prediction(record, row.line)
            row_test.known_ids.add(prediction.db_id)
            number += 1
            yield PredictionRow(number, row.line, record, prediction)
        if number == 0:
            raise DataError(
                f"{self.path}: no rows; each line below the names of the columns must be a row"
            )

    def _header(self, row: TableRow, delimiter: str) -> list[str]:
        """Return the names of the columns; one without a name is called by its number."""
        names = [name.strip() for name in row.cells]
        header = [name or f"column_{number}" for number, name in enumerate(names, start=1)]
        repeated = [name for name, count in Counter(header).items() if count > 1]
        if repeated:
            raise DataError(
                f"{self.path}, line {row.line}: the column {repeated[0]!r} is there twice"
            )
        hint = ""
        if len(header) == 1:
            hint = _delimiter_hint(header[0], delimiter)
        self._check_columns(row.line, header, hint)
        return header

    def _json_rows(self, file: BinaryIO) -> Iterator[PredictionRow]:
        # Lines of bytes: JSON allows U+2028 and similar characters unescaped within a text.
        number = 0
        for line_number, full_line in enumerate(file, start=1):
            line = full_line.removesuffix(b"\n")
            if line_number == 1:
                line = self._without_mark(line)
            if not line.strip():
                continue
            record = self._json_object(line, line_number)
            self._check_columns(line_number, list(record))
            number += 1
            yield PredictionRow(number, line_number, record, self._prediction(record, line_number))
        if number == 0:
            raise DataError(f"{self.path}: empty; each line must be a JSON object")

    def _json_object(self, line: bytes, line_number: int) -> Record:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{self.path}, line {line_number}: no JSON object in UTF-8: {error}"
            ) from error
        if not isinstance(record, dict):
            json_type = type(record).__name__
            raise DataError(f"{self.path}, line {line_number}: {json_type}, not a JSON object")
        # A million rows share the names of their columns.
        return {sys.intern(name): value for name, value in record.items()}

    def _prediction(self, record: Record, line: int) -> Prediction:
        """Return what is judged; a predicted_sql of null is a model without an answer."""
        db_id = self.only_database
        if DB_ID in record:
            db_id = self._text(record, DB_ID, line)
        predicted = ""
        if record[PREDICTED] is not None:
            predicted = self._text(record, PREDICTED, line)
        return Prediction(db_id, self._text(record, GOLD, line), predicted)

    def _text(self, record: Record, column: str, line: int) -> str:
        value = record[column]
        if not isinstance(value, str):
            shown_value = one_line(repr(value), limit=_SHOWN_VALUE)
            raise DataError(f"{self.path}, line {line}: {column} must be text, not {shown_value}")
        return value

    def _check_columns(self, line: int, names: Sequence[str], hint: str = "") -> None:
        needed = [column for column in COLUMNS if column != DB_ID or not self.only_database]
        missing = [column for column in needed if column not in names]
        if not missing:
            return
        if not hint:
            hint = nearest(missing[0], [name for name in names if name not in COLUMNS])
        available = one_line(", ".join(names), limit=_SHOWN_NAMES) or "none"
        raise DataError(
            f"{self.path}, line {line}: no column {', '.join(missing)}; needed are "
            f"{', '.join(needed)}, available are {available}{hint}"
        )


def _delimiter_hint(header: str, delimiter: str) -> str:
    """Return a remark if a header of one cell has been written with another delimiter."""
    for character, word in _OTHER_DELIMITERS.items():
        if character != delimiter and character in header:
            legal = _OTHER_DELIMITERS[delimiter]
            return f"; cells seem to be separated by {word}, where this ending means {legal}"
    return ""


class _RowTest:
    """Says whether a line that stands within a quoted cell would be a row of its own.

    It would if it has as many cells as the header, and its database is one of the file's, or its
    gold begins as a query. No line of a query that is written over several lines has both, since
    no SELECT stands directly behind a comma. Without a column of databases the prediction, too,
    must begin as a query.
    """

    _QUERY = re.compile(r"[\s\"]*(?:select|with)\b", re.IGNORECASE)
    _QUERY_BEHIND_COMMA = re.compile(r"\"*(?:select|with)\b", re.IGNORECASE)
    """The same without a space before it, which the sentences of an answer have behind a comma. In
    a table that has it, too, no quotation mark opens a cell, so that no row can be swallowed."""

    def __init__(self, header: Sequence[str], delimiter: str) -> None:
        self.known_ids: set[str] = set()
        self._header = header
        self._delimiter = delimiter
        self._query = self._QUERY_BEHIND_COMMA if delimiter == "," else self._QUERY

    def reads_as_row(self, line: str) -> bool:
        """Return whether the line has the shape of a row."""
        cells = line.split(self._delimiter)
        if len(cells) != len(self._header):
            return False
        record = dict(zip(self._header, cells, strict=True))
        has_gold = self._query.match(record[GOLD]) is not None
        if DB_ID not in record:
            return has_gold and self._query.match(record[PREDICTED]) is not None
        db_id = record[DB_ID].strip(' "')
        return bool(db_id) and (has_gold or db_id in self.known_ids)


def read_predictions(path: Path) -> list[PredictionRow]:
    """Return the rows of a file in which all rows name their database.

    Raises:
        OptionError, DataError: As :meth:`PredictionFile.rows`.
    """
    return list(PredictionFile(path).rows())


def format_of(path: Path) -> str:
    """Return the format of a file, which is the ending of its name in lower case.

    Raises:
        OptionError: The ending is unknown.
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        legal = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise OptionError(f"{path}: unknown ending {path.suffix!r}; use {legal}")
    return ending


def columns_of(rows: Sequence[PredictionRow]) -> list[str]:
    """Return the names of all columns, in the order in which they first appear."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row.record))
    return list(names) or list(COLUMNS)


class RecordWriter:
    """Writes rows to an open file.

    Args:
        file: An open file.
        file_format: One of :data:`FORMATS`.
        columns: The columns of a table, written as its header. A row that lacks one has an empty
            cell there; JSON Lines need no columns.
    """

    def __init__(self, file: TextIO, file_format: str, columns: Sequence[str]) -> None:
        self._file = file
        self._columns = columns
        self._delimiter = DELIMITERS.get(file_format)
        if self._delimiter is not None:
            self._write_cells([_cell(column) for column in columns])

    def write(self, record: Record) -> None:
        """Write one row."""
        if self._delimiter is None:
            self._file.write(_json_line(record) + "\n")
        else:
            self._write_cells([_cell(record.get(column)) for column in self._columns])

    def _write_cells(self, cells: Sequence[str]) -> None:
        delimiter = self._delimiter or ""
        self._file.write(delimiter.join(quoted_cell(cell, delimiter) for cell in cells) + "\n")


def _json_line(record: Record) -> str:
    line = json.dumps(record, ensure_ascii=False)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can only hold escaped
        return json.dumps(record)
    return line


def _cell(value: object) -> str:
    """Return a value as a cell: text unchanged, "" for null, JSON for other values."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Lone surrogates that stand for bytes become these; others, from JSON, are replaced.
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text
