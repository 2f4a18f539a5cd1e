"""Judging files of predictions, the work of ``lm-eval-ext sql-score`` and ``sql compare``."""

import math
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from lm_eval_ext import __version__
from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.compare import find_semantics
from lm_eval_ext.sql.engines.places import Databases, OneDatabase, databases_at
from lm_eval_ext.sql.executor import DEFAULT_WORKERS, Executor
from lm_eval_ext.sql.judge import SqlJudge
from lm_eval_ext.sql.partial import PartialOutput
from lm_eval_ext.sql.parts import FileContent
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.predictions import (
    PredictionFile,
    PredictionRow,
    RecordWriter,
    columns_of,
    format_of,
)
from lm_eval_ext.sql.reasons import naming_a_missing_query
from lm_eval_ext.sql.suite_choice import SuiteSource, choose_suites
from lm_eval_ext.sql.summary import JudgedRow, Summary, check_columns, summary_of
from lm_eval_ext.sql.values import EngineName, Prediction, Verdict

if TYPE_CHECKING:
    from tqdm import tqdm

QueryReader: TypeAlias = Callable[[str, EngineName], str | None]
"""Reads the query from a model's answer, for an engine; None: the answer has no query."""

STATUS, REASON, EXTRACTED = "status", "reason", "extracted_sql"
DECIDING_DATABASE, ORIGINAL_STATUS = "deciding_database", "original_status"


_BATCH = 200
"""Predictions that are judged together where there are suites: what an interruption can lose."""

_COMMENTS = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
"""What may stand before a query."""

_BEGINNING = 10_000
"""Characters in which a query has to begin."""

_QUERY_WORDS = ("select", "with", "values", "(")
_FENCE = "```"


@dataclass(frozen=True)
class JudgeOptions:
    """How predictions are judged.

    Attributes:
        databases: A database or a folder of them
            (:data:`~lm_eval_ext.sql.engines.places.LEGAL`).
        semantics: The name of the rule by which results are compared
            (:data:`~lm_eval_ext.sql.compare.SEMANTICS`).
        suite: Where test suites come from; None: the original databases alone judge.
        timeout_s: Seconds of processor time per query; None: the default of :class:`Limits`.
        workers: Worker processes.
        quotes: Whether quotation marks may enclose cells of a .csv or .tsv.
        read_query: Reads queries from answers; None: predictions are queries.
    """

    databases: Path | str
    semantics: str = "reference"
    suite: SuiteSource | None = None
    timeout_s: float | None = None
    workers: int = DEFAULT_WORKERS
    quotes: bool = True
    read_query: QueryReader | None = None

    @property
    def limits(self) -> Limits:
        """The limits of each query.

        Raises:
            OptionError: The time limit is no number above 0.
        """
        if self.timeout_s is None:
            return Limits()
        if not 0 < self.timeout_s < math.inf:
            raise OptionError(f"--timeout {self.timeout_s:g}: must be a number above 0")
        return Limits(timeout_s=self.timeout_s)


@dataclass(frozen=True)
class OpenFile:
    """A file of predictions that has been read.

    Attributes:
        path: The file.
        rows: Its rows.
        predictions: What is judged of each: the row's query, or the one extracted from its answer.
        columns: The names of all columns.
        content: What the rows ask.
    """

    path: Path
    rows: Sequence[PredictionRow]
    predictions: Sequence[Prediction]
    columns: Sequence[str]
    content: FileContent

    def remarks(self, *, extracted: bool) -> Iterator[str]:
        """Yield a line if predictions are answers that a query has to be read from.

        Some that begin with other words may be mistakes; a fence is never SQL.
        """
        if extracted:
            return
        texts = [row.prediction.predicted for row in self.rows if row.prediction.predicted.strip()]
        answers = sum(_looks_like_answer(text) for text in texts)
        fenced = sum(_FENCE in text for text in texts)
        if 2 * answers > len(texts):
            yield (
                f"{answers:,} of {len(self.rows):,} predictions are in a code fence or begin with "
                "other words than a query; --extract reads the query from such answers"
            )
        elif fenced:
            yield (
                f"predictions with a code fence: {fenced:,} of {len(self.rows):,}; "
                "--extract reads the query from such answers"
            )


@dataclass(frozen=True)
class OpenJudge:
    """A judge with its databases and suites.

    Attributes:
        judge: The judge.
        databases: The originals.
        has_suite: Whether test suites judge, too.
        signature: What verdicts depend on other than rows and originals.
        remarks: Lines about what no suite judges.
    """

    judge: SqlJudge
    databases: Databases | OneDatabase
    has_suite: bool
    signature: str
    remarks: Sequence[str] = field(default=())


def read_file(path: Path, options: JudgeOptions) -> OpenFile:
    """Read a file of predictions.

    Raises:
        OptionError: An option, or the ending of the file's name, is not legal.
        DataError: The file or the databases cannot be read.
    """
    rows = list(rows_of(path, options))
    predictions = [row.prediction for row in rows]
    content = FileContent(predictions)
    return OpenFile(path, rows, extracted(predictions, content, options), columns_of(rows), content)


def rows_of(path: Path, options: JudgeOptions) -> Iterator[PredictionRow]:
    """Yield the rows of a file of predictions, unextracted.

    Raises:
        OptionError, DataError: As :func:`read_file`.
    """
    databases = databases_at(options.databases, option="--databases")
    only_database = databases.db_id if isinstance(databases, OneDatabase) else ""
    return PredictionFile(path, quotes=options.quotes, only_database=only_database).rows()


def extracted(
    predictions: Sequence[Prediction], content: FileContent, options: JudgeOptions
) -> Sequence[Prediction]:
    """Return predictions with the queries that are read from their answers, if that is an option.

    Args:
        predictions: Predictions of a file.
        content: What all rows of the file ask.
        options: How predictions are judged.
    """
    if options.read_query is None:
        return predictions
    engine = _engine_name(databases_at(options.databases, option="--databases"), content.questions)
    return [
        prediction._replace(predicted=options.read_query(prediction.predicted, engine) or "")
        for prediction in predictions
    ]


@contextmanager
def opened_judge(options: JudgeOptions, predictions: Sequence[Prediction]) -> Iterator[OpenJudge]:
    """Open the judge of some predictions, with the suites of their databases.

    Raises:
        OptionError: An option is not legal.
        DataError: A database or suite cannot be used. A server that is absent, or a role that is
            refused, is reported before anything is judged.
    """
    limits = options.limits
    databases = databases_at(options.databases, option="--databases")
    suites = None
    remarks: Sequence[str] = ()
    if options.suite is not None:
        chosen = choose_suites(options.suite, databases, predictions)
        suites, remarks = chosen.suites, chosen.remarks
    with SqlJudge(
        databases,
        suites=suites,
        semantics=options.semantics,
        workers=options.workers,
        limits=limits,
    ) as judge:
        db_ids = (prediction.db_id for prediction in predictions)
        engine = engine_of(judge.executor, databases, db_ids)
        signature = f"{judge.signature}|timeout:{limits.timeout_s:g}s|{engine}"
        yield OpenJudge(judge, databases, bool(suites), signature, remarks)


def score_file(
    predictions: Path,
    options: JudgeOptions,
    out: Path,
    *,
    by: Sequence[str] = (),
) -> Summary:
    """Write a file's rows with their verdicts, in the same order, and return a summary.

    Everything is checked before the first query, and ``out`` appears only when it is complete.
    Until then verdicts are kept beside it, and whatever ends the process, the same command goes on
    from there, unless the rows, the databases, the suites or the options have changed.

    Args:
        predictions: A .csv, .tsv or .jsonl file with db_id, gold_sql and predicted_sql.
        options: How predictions are judged.
        out: The file to write, in any of these formats; may be ``predictions`` itself.
        by: Columns whose combinations of values are summarized, too.

    Raises:
        OptionError: An argument is invalid.
        DataError: A file cannot be read or written.
    """
    out_format = check_output(out)
    find_semantics(options.semantics)
    file = read_file(predictions, options)
    check_columns(by, file.columns)
    with opened_judge(options, file.predictions) as open_judge:
        partial = partial_output(out, file.content, open_judge, options)
        started = time.perf_counter()
        kept_verdicts = partial.verdicts()
        judged_before = len(kept_verdicts)
        rows = judge_rows(file, open_judge, kept_verdicts, partial, "sql-score")
        seconds = time.perf_counter() - started
    _write_rows(out, out_format, file, rows, options, has_suite=open_judge.has_suite)
    partial.remove()
    remarks = [*file.remarks(extracted=options.read_query is not None), *open_judge.remarks]
    return summary_of(
        rows,
        by,
        has_suite=open_judge.has_suite,
        judged_before=judged_before,
        seconds=seconds,
        signature=open_judge.signature,
        remarks=remarks,
    )


def partial_output(
    out: Path, content: FileContent, open_judge: OpenJudge, options: JudgeOptions
) -> PartialOutput:
    """Return the verdicts that are kept beside a file to be written."""
    signature = open_judge.signature
    if options.read_query is not None:  # what is read depends on the package's rules
        signature += f"|{EXTRACTED}:{__version__}"
    return PartialOutput(out, content, open_judge.databases, signature)


def check_output(out: Path) -> str:
    """Return the format of a file to be written.

    Raises:
        OptionError: Its ending is unknown, it is a folder, or its folder does not exist.
    """
    out_format = format_of(out)
    if not out.parent.is_dir():
        raise OptionError(f"{out}: the folder {out.parent} does not exist")
    if out.is_dir():
        raise OptionError(f"{out}: this is a folder; name a file")
    return out_format


def judge_rows(
    file: OpenFile,
    open_judge: OpenJudge,
    kept_verdicts: Mapping[int, Verdict],
    partial: PartialOutput | None,
    description: str,
) -> list[JudgedRow]:
    """Return the rows of a file with their verdicts, in the order of the file.

    Args:
        file: The file.
        open_judge: The judge.
        kept_verdicts: The verdicts of earlier commands by the row's number, from 0.
        partial: The files that get the other verdicts; None: none are kept.
        description: What the progress bar says.

    Raises:
        DataError: A database cannot be used any more.
        OptionError: Verdicts cannot be kept.
    """
    verdicts = dict(kept_verdicts)
    waiting = [number for number in range(len(file.rows)) if number not in verdicts]
    with ExitStack() as stack:
        log = stack.enter_context(partial.appending()) if partial is not None else None
        progress = stack.enter_context(progress_bar(description, len(file.rows), len(verdicts)))
        try:
            for number, verdict in judged(open_judge, file.predictions, waiting):
                verdicts[number] = verdict
                if log is not None:
                    log.add(number, verdict)
                progress.update()
        except DataError as error:
            if partial is None:
                raise
            raise kept_error(error, len(verdicts), partial.path()) from None
    judged_rows = []
    for number, (row, prediction) in enumerate(zip(file.rows, file.predictions, strict=True)):
        judged_rows.append(_judged_row(row, prediction, verdicts[number]))
    return judged_rows


def progress_bar(description: str, rows: int, judged_before: int) -> "tqdm[NoReturn]":
    """Return a bar for the rows that are judged; it is shown in a terminal only."""
    from tqdm import tqdm

    return tqdm(total=rows, initial=judged_before, unit="row", desc=description, disable=None)


def kept_error(error: DataError, rows: int, path: Path) -> DataError:
    """Return an error that also says where the verdicts before it are."""
    return DataError(
        f"{error}; {rows:,} rows are judged and kept in {path.name}: the same command goes on from "
        "there"
    )


def judged(
    open_judge: OpenJudge,
    predictions: Sequence[Prediction] | Mapping[int, Prediction],
    waiting: Sequence[int],
) -> Iterator[tuple[int, Verdict]]:
    """Yield the verdict on each row that waits, after its number.

    Args:
        open_judge: The judge.
        predictions: Predictions by the numbers of their rows.
        waiting: The numbers of the rows to judge.

    Raises:
        DataError: A database cannot be used any more.
    """
    if not open_judge.has_suite:
        waiting_predictions = [predictions[row] for row in waiting]
        yield from zip(waiting, open_judge.judge.judge_iter(waiting_predictions), strict=True)
        return
    # Predictions for one gold are judged together, so that its results on the suite's databases
    # are computed once.
    order = sorted(waiting, key=lambda row: predictions[row])
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        verdicts = open_judge.judge.judge_all([predictions[row] for row in batch], progress=None)
        yield from zip(batch, verdicts, strict=True)


def _judged_row(row: PredictionRow, prediction: Prediction, verdict: Verdict) -> JudgedRow:
    """Return a row with its verdict, which also knows the answer that a query was read from."""
    answer = row.prediction.predicted
    return JudgedRow(row, prediction, naming_a_missing_query(verdict, prediction.predicted, answer))


def _write_rows(
    out: Path,
    out_format: str,
    file: OpenFile,
    rows: Sequence[JudgedRow],
    options: JudgeOptions,
    *,
    has_suite: bool,
) -> None:
    """Write rows with their verdicts; columns of the same names are replaced where they stand.

    Raises:
        OptionError: The file cannot be written.
    """
    added = verdict_columns(has_suite=has_suite)
    if options.read_query is not None:
        added = (*added, EXTRACTED)
    columns = [*file.columns, *(name for name in added if name not in file.columns)]
    with atomic_text(out, errors="surrogateescape") as handle:
        writer = RecordWriter(handle, out_format, columns)
        for row in rows:
            values = {**verdict_record(row.verdict), EXTRACTED: row.judged.predicted}
            writer.write({**row.row.record, **{name: values[name] for name in added}})


def verdict_columns(*, has_suite: bool) -> tuple[str, ...]:
    """Return the names of the columns that say something about a verdict."""
    if has_suite:
        return (STATUS, REASON, DECIDING_DATABASE, ORIGINAL_STATUS)
    return (STATUS, REASON)


def verdict_record(verdict: Verdict) -> dict[str, str | None]:
    """Return what a table says about a verdict, by column."""
    return {
        STATUS: verdict.status,
        REASON: verdict.reason,
        DECIDING_DATABASE: verdict.database,
        ORIGINAL_STATUS: verdict.original_status,
    }


def _engine_name(
    databases: Databases | OneDatabase, predictions: Iterable[Prediction]
) -> EngineName:
    """Return the engine of the first database that rows name; SQLite if there is none."""
    for db_id in dict.fromkeys(prediction.db_id for prediction in predictions):
        location = databases.find(db_id)
        if location is not None:
            return location.engine
    return "sqlite"


def engine_of(executor: Executor, databases: Databases | OneDatabase, db_ids: Iterable[str]) -> str:
    """Return the engine's name and version, for the signature; SQLite's if no database exists.

    Raises:
        DataError: The first database cannot be used.
    """
    for db_id in dict.fromkeys(db_ids):
        location = databases.find(db_id)
        if location is not None:
            return executor.engine_at(location)
    return f"sqlite:{sqlite3.sqlite_version}"


def _looks_like_answer(text: str) -> bool:
    """Return whether a text is more than a query: fenced, or with other words before it."""
    query = _COMMENTS.sub("", text[:_BEGINNING], count=1)
    return _FENCE in text or not query.lower().startswith(_QUERY_WORDS)
