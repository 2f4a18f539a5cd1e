"""One prediction against its gold, the work of ``lm-eval-ext sql explain``."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql.engines.places import OneDatabase, databases_at
from lm_eval_ext.sql.judge import ORIGINAL, Explanation, SqlJudge
from lm_eval_ext.sql.scoring import JudgeOptions, OpenFile, opened_judge
from lm_eval_ext.sql.smallest import SmallestRows, SmallTable, smallest_rows
from lm_eval_ext.sql.values import Failure, Prediction, Row, Rows
from lm_eval_ext.text import counted


@dataclass(frozen=True)
class ExplainedRow:
    """A prediction with everything that shows why it was judged as it was.

    Attributes:
        title: Where the prediction comes from, as "row 12 of gpt-4.jsonl".
        prediction: The prediction that was judged.
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

    @property
    def where(self) -> str:
        """The database that decided, in words."""
        name = self.explanation.verdict.database
        if name in ("", ORIGINAL):
            return "on the original"
        return f"on {name} of the test suite"

    def as_dict(self) -> dict[str, object]:
        """Return all of it as JSON values; bytes become their representation."""
        explanation = self.explanation
        return {
            "title": self.title,
            **self.prediction._asdict(),
            **asdict(explanation.verdict),
            "database_file": self.database,
            "gold_result": _result(explanation.gold),
            "predicted_result": _result(explanation.predicted),
            "missing": _rows(explanation.missing),
            "extra": _rows(explanation.extra),
            "smallest": _smallest(self.smallest),
        }


def row_of(file: OpenFile, number: int) -> Prediction:
    """Return the prediction in a row of a file.

    Raises:
        OptionError: There is no such row.
    """
    if not 1 <= number <= len(file.predictions):
        count = counted(len(file.predictions), "row")
        raise OptionError(f"--row {number}: {file.path} has {count}; the first is 1")
    return file.predictions[number - 1]


def prediction_of(gold: str, predicted: str, db_id: str, options: JudgeOptions) -> Prediction:
    """Return a prediction from texts; a single database needs no id.

    Raises:
        OptionError: There are several databases, and no id.
        DataError: The databases cannot be read.
    """
    databases = databases_at(options.databases, option="--databases")
    if not db_id and isinstance(databases, OneDatabase):
        db_id = databases.db_id
    if not db_id:
        raise OptionError(f"--db-id: name one of the databases of {options.databases}")
    return Prediction(db_id, gold, predicted)


def explain(
    prediction: Prediction,
    title: str,
    options: JudgeOptions,
    file: OpenFile | None = None,
) -> ExplainedRow:
    """Judge one prediction and return what shows its verdict.

    Args:
        prediction: The prediction.
        title: Where it comes from.
        options: How predictions are judged.
        file: The file that it is from, so that suites are built for all of its golds.

    Raises:
        OptionError: An option is not legal.
        DataError: A database or suite cannot be used.
    """
    predictions = [prediction] if file is None else file.predictions
    with opened_judge(options, predictions) as open_judge:
        return explain_with(open_judge.judge, prediction, title)


def explain_with(judge: SqlJudge, prediction: Prediction, title: str) -> ExplainedRow:
    """Return what shows the verdict of a judge on one prediction.

    Raises:
        DataError: A database cannot be used.
    """
    explanation = judge.explain(prediction)
    verdict = explanation.verdict
    place = judge.place_of(prediction, verdict.database)
    smallest = None
    if place is not None and verdict.status == "wrong":
        semantics = judge.semantics
        if verdict.database != ORIGINAL:
            semantics = judge.suite_semantics
        smallest = smallest_rows(place, prediction, semantics.name)
    return ExplainedRow(title, prediction, explanation, str(place or ""), smallest)


def _result(result: Rows | Failure) -> dict[str, object]:
    if isinstance(result, Failure):
        return result._asdict()
    return {"columns": list(result.columns), "rows": _rows(result.rows)}


def _rows(rows: Sequence[Row]) -> list[list[object]]:
    return [[_json_value(cell) for cell in row] for row in rows]


def _json_value(cell: object) -> object:
    if isinstance(cell, bytes):
        return repr(cell)
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
