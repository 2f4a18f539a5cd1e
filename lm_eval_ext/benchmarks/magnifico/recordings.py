"""What MAGNIFICo's authors recorded of models: queries with their own verdicts.

They answered an earlier version of the data. In their repository, ``spider/old_outputs/RUN.tsv``
and ``spider/outputs/RUN.tsv`` have a row for each question, and a run is named
``FORM_PROMPT_WORD_MODEL``. All rows become a file for ``lm-eval-ext sql-score``. Runs of today's
prompts on questions that are still asked are also answers of a system.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico.records import BASE, FOREIGN
from lm_eval_ext.data import find_source, require
from lm_eval_ext.data.recordings import (
    AuthorsRow,
    RecordedSystem,
    Recordings,
    ResponseRow,
    folder_in,
    read_table,
)
from lm_eval_ext.errors import DataError

SOURCE = "magnifico_recorded"
VERSIONS = ("old_outputs", "outputs")
"""Folders of an older and a newer version of the data."""

AUTHORS_COLUMNS = ("Question", "Predicted Parse", "Gold Parse", "Result")

FORMS: Mapping[str, str] = {
    "baseline": BASE,
    "plausible": "plausible",
    "nonsense": FOREIGN,
    "adversarial": "adversarial",
}
"""Our names of the authors' forms."""

ORIGINAL = "original"
"""The authors' form of the questions as Spider has them, which no task asks."""

RUN_PARTS = 4
"""Parts of the name of a run: form, prompt, word and model."""

REPLAYED_VERSION = "outputs"
REPLAYED_PROMPT = "direct"
"""Runs whose questions and prompt are those of a task, or nearly so."""


@dataclass(frozen=True)
class RecordedQuery:
    """A predicted query; the fields are the columns of the file for ``sql-score``.

    Attributes:
        version: The folder, which is the version of the data.
        form: The authors' name of the form.
        prompt: Their name of the prompt.
        word: Their name of the word.
        model: Their name of the model.
        db_id: The database.
        question: The question.
        gold_sql: The right query.
        predicted_sql: The predicted one.
        recorded_correct: Their verdict, 0 or 1.
    """

    version: str
    form: str
    prompt: str
    word: str
    model: str
    db_id: str
    question: str
    gold_sql: str
    predicted_sql: str
    recorded_correct: str


def convert(clone: Path | None) -> Recordings:
    """Convert the runs of a clone of the authors' repository, or those of the declared source.

    Raises:
        DataError: A file is missing or not as expected.
    """
    remarks: list[str] = []
    if clone is None:
        queries = _declared_queries()
    else:
        queries, remarks = _queries_of_clone(clone)
    predictions = [asdict(query) for query in queries]
    return Recordings(_systems(queries), ["magnifico_direct"], predictions, remarks)


def _declared_queries() -> list[RecordedQuery]:
    table = require(SOURCE, "runs").path
    columns = ("db_id", "question", "gold_sql", "predicted_sql", "recorded_correct")
    queries = []
    for row in read_table(table, ("run", *columns), "\t"):
        version, _, run = row.cells["run"].partition("/")
        form, prompt, word, model = run.split("_")
        cells = {column: row.cells[column] for column in columns}
        queries.append(RecordedQuery(version, form, prompt, word, model, **cells))
    return queries


def _queries_of_clone(clone: Path) -> tuple[list[RecordedQuery], list[str]]:
    """Read the authors' files, and return the queries, with remarks about files left out.

    Raises:
        DataError: A folder is missing, or no file is as expected.
    """
    queries: list[RecordedQuery] = []
    remarks: list[str] = []
    for version in VERSIONS:
        folder = folder_in(clone, f"spider/{version}", find_source(SOURCE).homepage)
        for file in sorted(folder.glob("*.tsv")):
            parts = file.stem.split("_")
            if len(parts) != RUN_PARTS or parts[0] not in (*FORMS, ORIGINAL):
                remarks.append(f"left out: {version}/{file.name}, not a run of a word")
                continue
            try:
                table = read_table(file, AUTHORS_COLUMNS, "\t")
                queries += [_authors_query(row, version, parts) for row in table]
            except DataError as error:
                remarks.append(f"left out: {error}")
    if not queries:
        problem = remarks[0] if remarks else "there are no files"
        raise DataError(f"{clone}: no runs in spider/old_outputs and spider/outputs; {problem}")
    return queries, remarks


def _authors_query(row: AuthorsRow, version: str, run: Sequence[str]) -> RecordedQuery:
    """Return a row of the authors', whose question stands between a database and its schema.

    Raises:
        DataError: The question has no database.
    """
    db_id, separator, rest = row.cells["Question"].partition(":")
    question, _, _ = rest.partition(" | ")
    if not separator:
        raise DataError(f"{row.position}: the question does not begin with a database")
    form, prompt, word, model = run
    return RecordedQuery(
        version=version,
        form=form,
        prompt=prompt,
        word=word,
        model=model,
        db_id=db_id.strip(),
        question=question.strip(),
        gold_sql=row.cells["Gold Parse"],
        predicted_sql=row.cells["Predicted Parse"],
        recorded_correct=row.cells["Result"],
    )


def _systems(queries: Sequence[RecordedQuery]) -> list[RecordedSystem]:
    """Return the models whose runs a task can repeat, with an answer to each question."""
    rows: dict[str, list[ResponseRow]] = defaultdict(list)
    for query in queries:
        is_replayed = (query.version, query.prompt) == (REPLAYED_VERSION, REPLAYED_PROMPT)
        if is_replayed and query.form in FORMS:
            document = {
                "db_id": query.db_id,
                "question": query.question,
                "form": FORMS[query.form],
            }
            rows[query.model].append({"doc": document, "response": query.predicted_sql})
    return [
        RecordedSystem(model, responses, is_partial=True)
        for model, responses in sorted(rows.items())
    ]
