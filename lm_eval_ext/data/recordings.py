"""What the authors of a benchmark recorded of models, as files that ``--model recorded`` reads.

A benchmark with such recordings has a module ``recordings``, whose ``convert`` reads the authors'
files (:class:`lm_eval_ext.registry.Benchmark`). The rows that are written are those of
docs/chat.md#recorded-responses.
"""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError
from lm_eval_ext.text import one_line

ResponseRow: TypeAlias = Mapping[str, object]
"""A short row of docs/chat.md#recorded-responses."""

MODELS_FOLDER = "models"
RESPONSES_FOLDER = "responses"
PREDICTIONS_FILE = "predictions.tsv"
"""What a folder of converted recordings has; the last is for ``sql-score``."""


@dataclass(frozen=True)
class RecordedSystem:
    """What one system answered.

    Attributes:
        name: Its name, in tables and of its files.
        rows: Its responses, each with the fields of its document.
        is_partial: Whether documents without a response are left out of scores.
    """

    name: str
    rows: Sequence[ResponseRow]
    is_partial: bool = False


@dataclass(frozen=True)
class Recordings:
    """All recordings of a benchmark.

    Attributes:
        systems: The systems that were recorded.
        tasks: The tasks that they answered.
        predictions: Rows for ``lm-eval-ext sql-score``, with the same columns.
        remarks: Lines about the authors' files.
    """

    systems: Sequence[RecordedSystem]
    tasks: Sequence[str]
    predictions: Sequence[Mapping[str, str]] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class AuthorsRow:
    """A row of an authors' table.

    Attributes:
        position: The file and the line, for errors.
        cells: The cells by column.
    """

    position: str
    cells: Mapping[str, str]

    def number(self, column: str) -> float:
        """Return a cell as a number.

        Raises:
            DataError: The cell is no number.
        """
        text = self.cells[column]
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise DataError(one_line(f"{self.position}: {column} is no number: {text!r:.80}"))
        return number


def read_table(path: Path, columns: Sequence[str], delimiter: str = ",") -> list[AuthorsRow]:
    """Read a table of the authors', which may have more columns.

    Raises:
        DataError: The file cannot be read, lacks a column, or has a row of another length.
    """
    rows: list[AuthorsRow] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, delimiter=delimiter)
            missing = [column for column in columns if column not in (reader.fieldnames or ())]
            if missing:
                raise DataError(f"{path}: no column {missing[0]!r}; is this the authors' file?")
            for cells in reader:
                position = f"{path}:{reader.line_num}"
                # The csv module fills up a short row with None, and puts what is too much there.
                if None in cells or None in cells.values():
                    raise DataError(f"{position}: not as many cells as the header has")
                rows.append(AuthorsRow(position, cells))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(one_line(f"{path}: cannot be read ({error})")) from None
    return rows


def folder_in(clone: Path, path: str, homepage: str) -> Path:
    """Return a folder of a clone of the authors' repository.

    Raises:
        DataError: The clone lacks it.
    """
    folder = clone / path
    if not folder.is_dir():
        raise DataError(f"{clone}: no folder {path}; name a clone of {homepage}")
    return folder


def write(recordings: Recordings, folder: Path) -> None:
    """Write responses, and a model's file for each system, which ``run --models`` takes.

    Raises:
        DataError: The folder cannot be written.
    """
    models = folder / MODELS_FOLDER
    responses = folder / RESPONSES_FOLDER
    try:
        models.mkdir(parents=True, exist_ok=True)
        responses.mkdir(exist_ok=True)
        for system in recordings.systems:
            file = responses / f"{system.name}.jsonl"
            with atomic_text(file) as lines:
                for row in system.rows:
                    lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            with atomic_text(models / f"{system.name}.yaml") as model_file:
                yaml.safe_dump(_model_settings(system, file), model_file, sort_keys=False)
        if recordings.predictions:
            _write_predictions(recordings.predictions, folder / PREDICTIONS_FILE)
    except OSError as error:
        raise DataError(one_line(f"{folder}: cannot be written ({error.strerror})")) from None


def _model_settings(system: RecordedSystem, file: Path) -> dict[str, object]:
    """Return the content of a system's model file."""
    arguments = {"path": str(file.absolute()), "match": "doc"}
    if system.is_partial:
        arguments["missing"] = "skip"
    return {"display_name": system.name, "model": "recorded", "model_args": arguments}


def _write_predictions(predictions: Sequence[Mapping[str, str]], path: Path) -> None:
    with atomic_text(path) as lines:
        writer = csv.writer(lines, delimiter="\t", lineterminator="\n")
        writer.writerow(predictions[0])
        for row in predictions:
            writer.writerow(row.values())
