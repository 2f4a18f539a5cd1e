"""One prediction against its gold, the work of ``lm-eval-ext sql explain``."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.engines.places import OneDatabase, databases_at
from lm_eval_ext.sql.judge import ORIGINAL, Explanation, SqlJudge
from lm_eval_ext.sql.parts import FileContent
from lm_eval_ext.sql.reasons import NO_QUERY, naming_a_missing_query
from lm_eval_ext.sql.scoring import JudgeOptions, OpenFile, extracted, opened_judge
from lm_eval_ext.sql.smallest import SmallestRows, SmallTable, smallest_rows
from lm_eval_ext.sql.suite import gold_id, read_suite
from lm_eval_ext.sql.suite_choice import SuiteSource
from lm_eval_ext.sql.values import Failure, Prediction, Row, Rows
from lm_eval_ext.text import counted


@dataclass(frozen=True)
class ExplainedRow:
    """A prediction with everything that shows why it was judged as it was.

    Attributes:
        title: Where the prediction comes from, as "row 12 of gpt-4.jsonl".
        prediction: The prediction that was judged.
        answer: The text that its query was read from; "" if the query was all there was.
        explanation: The verdict, and both results on the database that decided.
        database: The file or URL of that database; "" if there is none.
        smallest: The smallest rows that show a wrong result; None for other verdicts, or if they
            could not be found.
    """

    title: str
    prediction: Prediction
    explanation: Explanation
    database: str
    smallest: SmallestRows | None
    answer: str = ""

    @property
    def where(self) -> str:
        """The database that decided, in words."""
        name = self.explanation.verdict.database
        if name in ("", ORIGINAL):
            return "on the original"
        return f"on {name} of the test suite"

    def as_dict(self) -> dict[str, object]:
        """Return all of it as JSON values; bytes, infinity and NaN become text."""
        explanation = self.explanation
        return {
            "title": self.title,
            **self.prediction._asdict(),
            "answer": self.answer,
            **asdict(explanation.verdict),
            "database_file": self.database,
            "gold_result": _result(explanation.gold),
            "predicted_result": _result(explanation.predicted),
            "missing": _rows(explanation.missing),
            "extra": _rows(explanation.extra),
            "smallest": _smallest(self.smallest),
        }


def row_of(file: OpenFile, number: int) -> tuple[Prediction, str]:
    """Return the prediction in a row of a file, and the answer that its query was read from.

    Raises:
        OptionError: There is no such row.
    """
    if not 1 <= number <= len(file.predictions):
        count = counted(len(file.predictions), "row")
        raise OptionError(f"--row {number}: {file.path} has {count}; the first is 1")
    prediction = file.predictions[number - 1]
    return prediction, _answer_of(prediction, file.rows[number - 1].prediction)


def _answer_of(prediction: Prediction, unread: Prediction) -> str:
    """Return the text that a prediction's query was read from; "" if it is the query."""
    if prediction.predicted == unread.predicted:
        return ""
    return unread.predicted


def prediction_of(
    gold: str, predicted: str, db_id: str, options: JudgeOptions
) -> tuple[Prediction, str]:
    """Return a prediction from texts, and the answer that its query was read from.

    A single database needs no id.

    Raises:
        OptionError: There are several databases, and no id.
        DataError: The databases cannot be read.
    """
    databases = databases_at(options.databases, option="--databases")
    if not db_id and isinstance(databases, OneDatabase):
        db_id = databases.db_id
    if not db_id:
        raise OptionError(f"--db-id: name one of the databases of {options.databases}")
    unread = Prediction(db_id, gold, predicted)
    (prediction,) = extracted([unread], FileContent([unread]), options)
    return prediction, _answer_of(prediction, unread)


def explain(
    prediction: Prediction,
    title: str,
    options: JudgeOptions,
    file: OpenFile | None = None,
    *,
    answer: str = "",
) -> ExplainedRow:
    """Judge one prediction and return what shows its verdict.

    Args:
        prediction: The prediction.
        title: Where it comes from.
        options: How predictions are judged.
        file: The file that it is from, so that suites are built for all of its golds.
        answer: The text that its query was read from; "" if the query was all there was.

    Raises:
        OptionError: An option is not legal.
        DataError: A database or suite cannot be used.
    """
    predictions = [prediction] if file is None else file.predictions
    if options.suite is not None:
        options = replace(options, suite=_keeping_suites(options.suite, prediction))
    with opened_judge(options, predictions) as open_judge:
        return explain_with(open_judge.judge, prediction, title, answer)


def _keeping_suites(source: SuiteSource, prediction: Prediction) -> SuiteSource:
    """Return a source of suites that replaces none of the user's folder.

    A suite that knows the prediction's gold is read, and beside one of other golds another is
    built: to look at a prediction must not change what later commands judge by.
    """
    if not source.build or source.per_golds:
        return source
    try:
        suite = read_suite(source.folder, prediction.db_id.casefold())
    except DataError:
        return source  # there is none to be replaced
    if gold_id(prediction.gold) in suite.judges:
        return replace(source, build=False)
    return replace(source, per_golds=True)


def explain_with(
    judge: SqlJudge, prediction: Prediction, title: str, answer: str = ""
) -> ExplainedRow:
    """Return what shows the verdict of a judge on one prediction.

    Raises:
        DataError: A database cannot be used.
    """
    explanation = judge.explain(prediction)
    verdict = explanation.verdict
    location = judge.place_of(prediction, verdict.database)
    smallest = None
    if location is not None and verdict.status == "wrong":
        semantics = judge.semantics
        if verdict.database != ORIGINAL:
            semantics = judge.suite_semantics
        smallest = smallest_rows(location, prediction, semantics.name)
    verdict = naming_a_missing_query(verdict, prediction.predicted, answer)
    if verdict.reason == NO_QUERY:
        no_query = Failure("error", NO_QUERY)
        explanation = replace(explanation, verdict=verdict, predicted=no_query)
    return ExplainedRow(title, prediction, explanation, str(location or ""), smallest, answer)


def _result(result: Rows | Failure) -> dict[str, object]:
    if isinstance(result, Failure):
        return result._asdict()
    return {"columns": list(result.columns), "rows": _rows(result.rows)}


def _rows(rows: Sequence[Row]) -> list[list[object]]:
    return [list(map(_json_value, row)) for row in rows]


def _json_value(cell: object) -> object:
    if isinstance(cell, bytes):
        return repr(cell)
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)  # which JSON has no number for
    return cell


def _smallest(smallest: SmallestRows | None) -> dict[str, object] | None:
    if smallest is None:
        return None
    return {
        "tables": [_table(table) for table in smallest.tables],
        "gold_result": _result(smallest.gold),
        "predicted_result": _result(smallest.predicted),
    }


def _table(table: SmallTable) -> dict[str, object]:
    return {"name": table.name, "columns": list(table.columns), "rows": _rows(table.rows)}
