"""Judging a part of a file of predictions, for several processes or machines at once.

The verdicts on a part are kept beside the file to be written. The command without a part, which is
:func:`~lm_eval_ext.sql.scoring.score_file`, takes them, judges what is missing and writes the file.
The file is the same, to the byte, in whatever parts its rows were judged.
"""

import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.compare import find_semantics
from lm_eval_ext.sql.parts import FileContent, Part
from lm_eval_ext.sql.scoring import (
    JudgeOptions,
    check_output,
    extracted,
    judged,
    kept_error,
    opened_judge,
    partial_output,
    progress_bar,
    rows_of,
)
from lm_eval_ext.sql.values import Prediction


@dataclass(frozen=True)
class PartSummary:
    """A part whose rows are all judged.

    Attributes:
        part: Its number, from 1.
        parts: How many parts there are.
        rows: The rows of the part.
        judged_before: Those of them that an earlier command had judged.
        seconds: Real time from the first query to the last verdict.
    """

    part: int
    parts: int
    rows: int
    judged_before: int
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What is to be done for a file that is judged in parts.

    Attributes:
        digest: The checksum of everything that the verdicts depend on.
        missing: The parts with rows that no command has judged.
        judged: Rows that are judged.
        rows: Rows of the file.
    """

    digest: str
    missing: list[Part]
    judged: int
    rows: int


def score_part(
    predictions: Path, options: JudgeOptions, out: Path, part: Part, *, expected_digest: str = ""
) -> PartSummary:
    """Judge a part of a file's rows, and keep the verdicts beside ``out``.

    If the process ends early, the same command goes on from there. The rows of other parts are
    read, too, since only all rows together decide which are in this part; they are not kept in
    memory.

    Args:
        predictions: A file as for :func:`~lm_eval_ext.sql.scoring.score_file`; so are ``options``.
        options: How predictions are judged.
        out: The file that all parts together will be.
        part: The part.
        expected_digest: :attr:`Plan.digest` on the machine that shared out the parts.

    Raises:
        OptionError: An argument is invalid.
        DataError: A file cannot be read or written, or verdicts of this machine would not be those
            of the one that shared out the parts.
    """
    check_output(out)
    find_semantics(options.semantics)
    content, part_predictions = _read_part(predictions, options, part)
    with opened_judge(options, list(content.questions)) as open_judge:
        partial = partial_output(out, content, open_judge, options)
        if expected_digest not in ("", partial.digest):
            raise DataError(
                f"{part}: rows, databases or signature are not those of the machine that shared "
                f"out the parts; the signature here is {open_judge.signature}"
            )
        judged_rows = partial.rows_of_part(part) & part_predictions.keys()
        judged_before = len(judged_rows)
        waiting = [row for row in part_predictions if row not in judged_rows]
        started = time.perf_counter()
        with (
            partial.appending(part) as log,
            progress_bar(str(part), len(part_predictions), judged_before) as progress,
        ):
            try:
                for row, verdict in judged(open_judge, part_predictions, waiting):
                    log.add(row, verdict)
                    progress.update()
            except DataError as error:
                raise kept_error(error, int(progress.n), partial.path(part)) from None
        seconds = time.perf_counter() - started
    return PartSummary(part.number, part.count, len(part_predictions), judged_before, seconds)


def plan_parts(predictions: Path, options: JudgeOptions, out: Path, count: int) -> Plan:
    """Return which of several parts have rows that are not judged; suites are built for them.

    Raises:
        OptionError: An argument is invalid.
        DataError: A file or a database cannot be read.
    """
    check_output(out)
    find_semantics(options.semantics)
    content = FileContent()
    question_of_row = array("L")
    for row in rows_of(predictions, options):
        question_of_row.append(content.add(row.prediction))
    with opened_judge(options, list(content.questions)) as open_judge:
        partial = partial_output(out, content, open_judge, options)
    is_judged = bytearray(content.rows)
    for number in partial.judged_rows():
        is_judged[number] = True
    unjudged_questions = {
        question for row, question in enumerate(question_of_row) if not is_judged[row]
    }
    parts = [Part(number, count) for number in range(1, count + 1)]
    missing = [part for part in parts if any(map(part.has, unjudged_questions))]
    return Plan(partial.digest, missing, sum(is_judged), content.rows)


def _read_part(
    path: Path, options: JudgeOptions, part: Part
) -> tuple[FileContent, Mapping[int, Prediction]]:
    """Return what all rows of a file ask, and the predictions of a part by row, from 0."""
    content = FileContent()
    numbers: list[int] = []
    predictions: list[Prediction] = []
    for number, row in enumerate(rows_of(path, options)):
        question = content.add(row.prediction)
        if part.has(question):
            numbers.append(number)
            predictions.append(row.prediction)
    queries = extracted(predictions, content, options)
    return content, dict(zip(numbers, queries, strict=True))
