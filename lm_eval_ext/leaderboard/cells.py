"""The tables of the page: models by benchmarks, by tasks of one, and by metrics of a task.

Values and their standing come from :mod:`lm_eval_ext.results.overview`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lm_eval_ext.cards import Card
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.grid import legend
from lm_eval_ext.results.models import Model, runs_by_model
from lm_eval_ext.results.overview import OverviewColumn, ranked_models, table_of
from lm_eval_ext.results.query import (
    chance_level_of,
    chance_of,
    question_of,
    reason_for,
    reference_run,
    shown_estimate,
)
from lm_eval_ext.results.show import grouped_by_model, published_note
from lm_eval_ext.stats.marks import Standing
from lm_eval_ext.stats.measures import Chance, Measure

Heading = Literal["benchmark", "task", "metric"]
"""What heads a column of a table."""


@dataclass(frozen=True)
class Cell:
    """A value with its interval.

    Attributes:
        value: None where there is none.
        low: The lower end of the interval.
        high: The upper end.
        standing: How the value stands among those of its table.
        why: Why there is no value or no interval, or why it could not be tested.
        badge: How many documents of a trial were asked.
        is_missing: Whether the model has no results of this task.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    standing: Standing = ""
    why: str = ""
    badge: str = ""
    is_missing: bool = False


Cells = Mapping[tuple[str, str, str], Cell]
"""Cells by model, task and metric."""

MISSING = Cell(is_missing=True)


@dataclass(frozen=True)
class Column:
    """A metric of a task.

    Attributes:
        task: The task's name.
        metric: The metric's name.
        head: The first line of the heading.
        title: The second line.
        measure: What the metric measures.
        chance_level: What a model has to exceed to show anything; None where it is not known.
        chance: The same where it is more than the worst possible value, as the page shows it.
    """

    task: str
    metric: str
    head: str
    title: str
    measure: Measure
    chance_level: Chance | None = None
    chance: float | None = None


@dataclass(frozen=True)
class TableRow:
    """A model's or a publication's cells, one per column."""

    label: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Table:
    """Rows are models, then published results.

    Attributes:
        name: The table's name in the address of the page.
        title: The title for readers.
        columns: The metrics.
        rows: The models'.
        published: The publications'.
        remarks: Lines about the columns.
        explained: What the marks mean, and the reason for "?" if all have the same.
        notes: The reasons, each once behind the names that it is about; then the remarks.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[TableRow]
    published: Sequence[TableRow] = ()
    remarks: Sequence[str] = ()
    explained: Sequence[str] = field(init=False)
    notes: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        cells: list[Cell] = []
        for row in self.rows:
            cells.extend(row.cells)
        standings = [cell.standing for cell in cells]
        explained = legend(standings, [column.chance_level for column in self.columns])
        if self._shared_obstacle:
            explained.append(self._shared_obstacle)
        object.__setattr__(self, "explained", explained)
        object.__setattr__(self, "notes", [*self._reasons(), *self.remarks])

    @property
    def has_trials(self) -> bool:
        """Whether a value is of a part of the documents."""
        return any(cell.badge for row in self.rows for cell in row.cells)

    @property
    def _shared_obstacle(self) -> str:
        """The reason why values could not be tested, if it is the same for all; otherwise ""."""
        obstacles: dict[str, None] = {}
        for row in self.rows:
            for cell in row.cells:
                if cell.standing == "untested":
                    obstacles[cell.why] = None
        return next(iter(obstacles)) if len(obstacles) == 1 else ""

    def _reasons(self) -> Iterator[str]:
        """Yield each reason once, after the models with their columns that it is about."""
        reasons = []
        shared_obstacle = self._shared_obstacle
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                if cell.why and cell.why != shared_obstacle:
                    reasons.append((cell.why, row.label, self._column_name(column)))
        cell_count = len(self.rows) * len(self.columns)
        yield from grouped_by_model(reasons, cell_count)

    def _column_name(self, column: Column) -> str:
        """Return the head of a column, with its title if another column has the same head."""
        heads = [other.head for other in self.columns]
        if heads.count(column.head) > 1 and column.title:
            return f"{column.head}, {column.title}"
        return column.head


def cells_of(models: Sequence[Model]) -> dict[tuple[str, str, str], Cell]:
    """Return the cell of every metric that the models have, without its standing."""
    cells = {}
    for model in models:
        for run in model.runs.values():
            scored, total = run.documents
            badge = f"{scored:,}/{total:,}" if scored < total else ""
            for metric, score in run.scores.items():
                measure = question_of(run, metric).measure
                estimate = shown_estimate(measure, score)
                cells[model.label, run.task, metric] = Cell(
                    estimate.value,
                    estimate.low,
                    estimate.high,
                    why=reason_for(run, measure, estimate),
                    badge=badge,
                )
    return cells


def with_standings(cells: Cells, columns: Sequence[OverviewColumn]) -> Cells:
    """Return cells in which the headlines of a table of these columns have their standing."""
    marked = dict(cells)
    for row in table_of(columns):
        key = row.model, row.task, row.metric
        cell = cells.get(key, Cell(why=row.why))
        why = f"not tested: {row.untested}" if row.untested else cell.why
        marked[key] = replace(cell, standing=row.standing, why=why)
    return marked


def headline_table(
    name: str,
    title: str,
    tested: Sequence[OverviewColumn],
    models: Sequence[Model],
    cells: Cells,
    *,
    heading: Heading,
    remarks: Sequence[str] = (),
) -> Table:
    """Return models by the headlines of tasks, in the order of every such table.

    Args:
        name: The table's name.
        title: The table's title.
        tested: The headlines of the columns.
        models: The models of the rows.
        cells: All cells of the page.
        heading: What heads a column.
        remarks: Lines about the table, which follow published values.
    """
    columns = []
    for headline in tested:
        columns.append(column_for(reference_run(headline.runs), headline.metric, heading))
    rows = list(_rows(models, columns, with_standings(cells, tested)))
    order = ranked_models(tested)
    rows.sort(key=lambda row: order.index(row.label))
    notes = [published_note(reference_run(headline.runs), headline.metric) for headline in tested]
    notes += remarks
    return Table(name, title, columns, rows, remarks=[note for note in notes if note])


def _rows(models: Iterable[Model], columns: Sequence[Column], cells: Cells) -> Iterator[TableRow]:
    """Yield the rows of the models that have any of the columns."""
    for model in models:
        row = []
        for column in columns:
            row.append(cells.get((model.label, column.task, column.metric), MISSING))
        if not all(cell.is_missing for cell in row):
            yield TableRow(model.label, row)


def column_for(run: Run, metric: str, heading: Heading) -> Column:
    """Return a column; below its heading stand the narrower names, down to the metric's."""
    card, task = run.card, run.task
    # Where two names are the same, as of a benchmark of one task, they are written once.
    task_headings = card.headings_of_task(task) if card else [task]
    headings: dict[Heading, list[str]] = {
        "benchmark": task_headings,
        "task": task_headings[-1:],
        "metric": [],
    }
    head, *below = dict.fromkeys([*headings[heading], run.title(metric)])
    question = question_of(run, metric)
    return Column(
        task=task,
        metric=metric,
        head=head,
        title=" · ".join(below),
        measure=question.measure,
        chance_level=chance_level_of(run, question),
        chance=chance_of(run, question),
    )


def task_table(
    task: str, tested: OverviewColumn | None, models: Sequence[Model], cells: Cells
) -> Table:
    """Return a task's models on all its metrics, with published values."""
    runs = runs_by_model(models, task)
    columns: dict[str, Column] = {}
    for run in runs.values():
        for metric in run.scores:
            columns.setdefault(metric, column_for(run, metric, "metric"))
    if tested:
        cells = with_standings(cells, [tested])
    listed_columns = list(columns.values())
    card = next(iter(runs.values())).card
    title = card.headings_of_task(task)[-1] if card else task
    rows = list(_rows(models, listed_columns, cells))
    return Table(f"task-{task}", title, listed_columns, rows, _published(task, card, list(columns)))


def _published(task: str, card: Card | None, metrics: Sequence[str]) -> list[TableRow]:
    """Return what others published on these metrics."""
    if card is None:
        return []
    cells: dict[str, list[Cell]] = {}
    for position, metric in enumerate(metrics):
        if metric not in card.metrics:
            continue
        for label, value in card.published(task, card.question_of(metric)).items():
            row = cells.setdefault(label, [MISSING] * len(metrics))
            row[position] = Cell(value)
    return [TableRow(label, row) for label, row in cells.items()]
