"""Questions to rows of scores, in memory or in results files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.results.files import Run, read_results
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import Estimate, estimate
from lm_eval_ext.stats.table import Scored, frame

Row = Mapping[str, Any]


def _figure(card: Card, table: Any, metric: str, value: str, where: Mapping[str, str]) -> Estimate:
    question = card.question_of(metric)
    measure = question.measure
    if value:
        measure = measure.model_copy(update={"value": (value,)})
    filters = dict(question.where)
    for facet, facet_value in where.items():
        filters[facet] = (facet_value,)
    return estimate(table, Question(measure, filters))


def ask(
    benchmark: str, documents: Iterable[Scored], metric: str, *, value: str = "", **where: str
) -> Estimate:
    """Return the figure of documents (name, id, clusters, rows) for a question of a card."""
    return _figure(cards()[benchmark], frame(documents), metric, value, where)


def pick(rows: Iterable[Row], value: str, **facets: str) -> Any:
    """Return the value of the only row that has it and these facets."""
    (row,) = [row for row in rows if value in row and facets.items() <= row.items()]
    return row[value]


def of_file(folder: Path, task: str, metric: str, **where: str) -> Any:
    """Return the value of a question to the samples of the only run of a task in a folder."""
    from lm_eval_ext.results.table import rows

    run = run_in(folder, task)
    assert run.card is not None
    return _figure(run.card, rows(run), metric, "", where).value


def run_in(folder: Path, task: str) -> Run:
    """Return the only run of a task in a folder, or in a file."""
    runs: list[Run] = []
    for file in read_results(folder):
        runs.extend(run for run in file.runs if run.task == task)
    (run,) = runs
    return run
