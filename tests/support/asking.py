"""Questions to rows of scores, in memory or in results files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.results.files import Run, read_results
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import Estimate, estimate
from lm_eval_ext.stats.table import DocumentRows, Row, frame

if TYPE_CHECKING:
    from pandas import DataFrame


def _estimate(
    card: Card, table: "DataFrame", metric: str, value: str, facets: Mapping[str, str]
) -> Estimate:
    """Return the estimate of a metric of the card where facets have these values.

    ``value`` is the column of values; "": the metric's own.
    """
    question = card.question_of(metric)
    measure = question.measure
    if value:
        measure = measure.model_copy(update={"value": (value,)})
    filters = dict(question.where)
    for facet, facet_value in facets.items():
        filters[facet] = (facet_value,)
    return estimate(table, Question(measure, filters))


def ask(
    benchmark: str,
    documents: Iterable[DocumentRows],
    metric: str,
    *,
    value: str = "",
    **facets: str,
) -> Estimate:
    """Return the estimate of documents (name, id, clusters, rows) for a metric of a card."""
    return _estimate(cards()[benchmark], frame(documents), metric, value, facets)


def pick(rows: Iterable[Row], value: str, **facets: str) -> str | float | None:
    """Return the value of the only row that has it and these facets."""
    (row,) = [row for row in rows if value in row and facets.items() <= row.items()]
    return row[value]


def value_in_folder(folder: Path, task: str, metric: str, **facets: str) -> float:
    """Return the value of a metric for the samples of the only run of a task in a folder."""
    from lm_eval_ext.results.table import rows

    run = run_in(folder, task)
    assert run.card is not None
    value = _estimate(run.card, rows(run), metric, "", facets).value
    assert value is not None
    return value


def run_in(folder: Path, task: str) -> Run:
    """Return the only run of a task in a folder, or in a file."""
    runs: list[Run] = []
    for file in read_results(folder):
        runs.extend(run for run in file.runs if run.task == task)
    (run,) = runs
    return run
