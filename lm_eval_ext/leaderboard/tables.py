"""How many digits a figure shows.

Tables of the page: models in rows, what was measured in columns.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lm_eval_ext.cards import Card, Figure
from lm_eval_ext.leaderboard.board import (
    VARIANT,
    Board,
    Rank,
    Run,
    TaskBoard,
    figure_of,
    plain_name,
)
from lm_eval_ext.leaderboard.ranks import interval_of
from lm_eval_ext.results.files import Score

_MOST_AS_SHARE = 1.5
"""Figures above it are percentages: one decimal is shown, and the axis ends at 100."""


def number(value: float, *, like: float | None = None, sign: bool = False) -> str:
    """A figure with the digits that a reader needs: three up to 1.5, one above.

    Args:
        value: Which.
        like: Whose digits it gets; its own if None. Bounds look like what they bound.
        sign: Whether a plus is written.
    """
    digits = 1 if abs(value if like is None else like) > _MOST_AS_SHARE else 3
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"


@dataclass(frozen=True)
class Cell:
    """A figure in a table.

    Attributes:
        value: None where there is none.
        low: Of its 95 % interval.
        high: Likewise.
        rank: Among the models of its column, where there are ranks.
        published: The published figure of the same model, where there is one.
        note: Why it stands apart, or "".
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    rank: Rank | None = None
    published: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A model, or a published result."""

    label: str
    cells: tuple[Cell, ...]
    published: bool = False


@dataclass(frozen=True)
class Column:
    """A metric or a task.

    Attributes:
        label: Its heading.
        group: What it belongs to: a benchmark, or a variant of metrics.
        chance: What guessing reaches, where it is known.
        ends: Where the axis of its figures starts and ends.
        higher: Whether more is better.
    """

    label: str
    group: str = ""
    chance: float | None = None
    ends: tuple[float, float] = (0.0, 1.0)
    higher: bool = True


@dataclass(frozen=True)
class Table:
    """A table with a title."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def overview(board: Board, chances: Mapping[str, float | None]) -> Table:
    """All models on the leading metric of every task.

    Args:
        board: What there is.
        chances: By benchmark, what guessing reaches.
    """
    rows = []
    for model in board.models:
        cells = []
        for task in board.tasks:
            run = task.runs.get(model.label)
            cells.append(_cell(run, task.leading, task.ranks.get(model.label)))
        rows.append(Row(model.label, tuple(cells)))
    columns = [
        Column(
            f"{task.name} · {task.leading}",
            task.benchmark or "other tasks",
            chances.get(task.benchmark),
            _ends(row.cells[place] for row in rows),
            task.leading not in task.lower,
        )
        for place, task in enumerate(board.tasks)
    ]
    return Table("All tasks", tuple(columns), tuple(rows))


def of_benchmark(card: Card, tasks: Sequence[TaskBoard]) -> list[Table]:
    """The tables of one benchmark: its figures, then the headline of every task."""
    by_name = {task.name: task for task in tasks}
    tables = [table for figure in card.figures for table in _figure(figure, card, by_name)]
    for task in tasks:
        metrics = _wanted(task, card.headline)
        tables.append(_task_table(f"{task.name}: headline", task, metrics, card))
    return [table for table in tables if table.columns and table.rows]


def other(task: TaskBoard) -> Table:
    """The table of a task that is not ours: all metrics."""
    metrics = list(dict.fromkeys(metric for run in task.runs.values() for metric in run.scores))
    return _task_table(task.name, task, metrics, None)


def _figure(figure: Figure, card: Card, tasks: Mapping[str, TaskBoard]) -> list[Table]:
    if figure.columns:
        return [_across(figure, card, tasks)]
    return [
        _task_table(
            f"{task}: {figure.title}", tasks[task], _wanted(tasks[task], figure.metrics), card
        )
        for task in figure.tasks
        if task in tasks
    ]


def _across(figure: Figure, card: Card, tasks: Mapping[str, TaskBoard]) -> Table:
    """One table with columns from several tasks; columns that nobody ran are left out."""
    wanted = [(heading, *column.split()) for heading, column in figure.columns.items()]
    there = [(heading, tasks[task], metric) for heading, task, metric in wanted if task in tasks]
    labels = dict.fromkeys(label for _, task, _ in there for label in task.runs)
    rows = [
        Row(label, tuple(_cell(task.runs.get(label), metric) for _, task, metric in there))
        for label in sorted(labels, key=str.casefold)
    ]
    published: dict[str, dict[int, float]] = {}
    for place, (_, task, metric) in enumerate(there):
        for reference in card.references:
            figure_ = figure_of(reference, task, metric)
            if figure_ is not None:
                published.setdefault(reference.label, {})[place] = figure_
    headings = [(heading, metric not in task.lower) for heading, task, metric in there]
    return _finished(figure.title, headings, rows, published, card)


def _task_table(title: str, task: TaskBoard, metrics: Sequence[str], card: Card | None) -> Table:
    rows = [
        Row(
            label,
            tuple(
                _cell(run, metric, task.ranks.get(label) if metric == task.leading else None)
                for metric in metrics
            ),
        )
        for label, run in task.runs.items()
    ]
    published: dict[str, dict[int, float]] = {}
    for place, metric in enumerate(metrics):
        for reference in card.references if card else ():
            figure = figure_of(reference, task, metric)
            if figure is not None:
                published.setdefault(reference.label, {})[place] = figure
    headings = [(metric, metric not in task.lower) for metric in metrics]
    return _finished(title, headings, rows, published, card)


def _finished(
    title: str,
    headings: Sequence[tuple[str, bool]],
    rows: Sequence[Row],
    published: Mapping[str, Mapping[int, float]],
    card: Card | None,
) -> Table:
    """Adds published rows, and to each model's figures the published ones of the same model.

    Headings come with whether more is better.
    """
    rows = [_beside_published(row, published) for row in rows]
    width = range(len(headings))
    rows += [
        Row(label, tuple(Cell(figures.get(place)) for place in width), published=True)
        for label, figures in published.items()
    ]
    columns = [
        Column(
            heading.rpartition(VARIANT)[2],
            heading.rpartition(VARIANT)[0],
            card.chance if card else None,
            _ends(row.cells[place] for row in rows),
            higher,
        )
        for place, (heading, higher) in enumerate(headings)
    ]
    return Table(title, tuple(columns), tuple(rows))


def _beside_published(row: Row, published: Mapping[str, Mapping[int, float]]) -> Row:
    name = plain_name(row.label)
    same = [figures for label, figures in published.items() if plain_name(label) == name]
    if not same:
        return row
    cells = [
        Cell(cell.value, cell.low, cell.high, cell.rank, same[0].get(place), cell.note)
        for place, cell in enumerate(row.cells)
    ]
    return Row(row.label, tuple(cells))


def _wanted(task: TaskBoard, names: Sequence[str]) -> list[str]:
    """The metrics of a task that are called so, with or without their variant; its order."""
    there = list(dict.fromkeys(metric for run in task.runs.values() for metric in run.scores))
    variants = list(dict.fromkeys(metric.rpartition(VARIANT)[0] for metric in there))
    found = [
        metric
        for variant in variants
        for name in names
        for metric in there
        if metric.rpartition(VARIANT)[0] == variant
        and name in (metric, metric.rpartition(VARIANT)[2])
    ]
    return list(dict.fromkeys(found))


def _cell(run: Run | None, metric: str, rank: Rank | None = None) -> Cell:
    score = run.scores.get(metric) if run else None
    if run is None or score is None:
        return Cell()
    if score.value is not None and not math.isfinite(score.value):
        return Cell(note=f"not a finite number ({score.value})")
    low, high = interval_of(score) or (None, None)
    return Cell(score.value, low, high, rank, note=_note(run, score))


def _note(run: Run, score: Score) -> str:
    if not run.comparable:
        scored, total = run.documents
        return f"measured otherwise than most ({scored} of {total} documents; see signatures)"
    return "" if score.value is not None else "not defined here"


def _ends(cells: Iterable[Cell]) -> tuple[float, float]:
    """From 0, or below it for differences, to 1 or 100, or above it."""
    figures = [f for cell in cells for f in (cell.value, cell.low, cell.high) if f is not None]
    least, most = min([0.0, *figures]), max([0.0, *figures])
    if most <= _MOST_AS_SHARE:
        return least, 1.0
    return least, 100.0 if most <= 100 else most  # noqa: PLR2004
