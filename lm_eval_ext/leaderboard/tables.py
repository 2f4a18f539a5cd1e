"""Tables of the page: a row per model, a column per metric or task."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lm_eval_ext.cards import PART, Card, Figure, cards
from lm_eval_ext.leaderboard.board import Rank, Run, TaskBoard
from lm_eval_ext.results.files import Score, variant_and_name
from lm_eval_ext.results.published import plain_name, published_value

_MOST_AS_SHARE = 1.5
"""Larger values are percentages: one decimal is shown, and the axis ends at 100."""

PERCENT = 100.0
"""The end of the axis of percentages."""

OTHERS = "other tasks"
"""The group of tasks that aren't ours."""


def number(value: float, *, like: float | None = None, sign: bool = False) -> str:
    """Formats a value with three decimals up to 1.5 and one above, or with those of ``like``."""
    digits = 1 if abs(value if like is None else like) > _MOST_AS_SHARE else 3
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"


@dataclass(frozen=True)
class Cell:
    """A value in a table, with the published value of the same model.

    ``low`` and ``high`` are its 95 % interval, made with ``method``; ``note`` says why it cannot
    be compared.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    rank: Rank | None = None
    published: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A model, a published result, or, where ``model`` is False, several models."""

    label: str
    cells: tuple[Cell, ...]
    published: bool = False
    model: bool = True


@dataclass(frozen=True)
class Column:
    """A metric or a task; ``group`` is a benchmark, or a variant of metrics.

    ``ends`` are those of the axis of its values; ``metric`` is that of a column for a task.
    """

    label: str
    group: str = ""
    chance: float | None = None
    ends: tuple[float, float] = (0.0, 1.0)
    higher: bool = True
    metric: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a title."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def overview(title: str, tasks: Sequence[TaskBoard], labels: Sequence[str]) -> Table:
    """Models, in this order, on the leading metric of every task."""
    known = cards()
    rows = [
        Row(
            label,
            tuple(
                _cell(task.runs.get(label), task.leading, task.ranks.get(label)) for task in tasks
            ),
        )
        for label in labels
    ]
    columns = [
        Column(
            task.name,
            task.benchmark or OTHERS,
            known[task.benchmark].chance if task.benchmark else None,
            _ends(row.cells[place] for row in rows),
            task.leading not in task.lower,
            task.leading,
        )
        for place, task in enumerate(tasks)
    ]
    return Table(title, tuple(columns), tuple(rows))


def of_benchmark(card: Card, tasks: Sequence[TaskBoard]) -> list[Table]:
    """The tables of one benchmark: those that its card asks for, then each task's headline."""
    by_name = {task.name: task for task in tasks}
    tables = [table for figure in card.figures for table in _figure(figure, card, by_name)]
    for task in tasks:
        metrics = _wanted(task, card.summary)
        tables.append(_task_table(f"{task.name}: headline", task, metrics, card))
    return [table for table in tables if table.columns and table.rows]


def other(task: TaskBoard) -> Table:
    """The table of a task that is not ours: all metrics."""
    return _task_table(task.name, task, all_metrics(task), None)


def all_metrics(task: TaskBoard) -> list[str]:
    """The metrics of any run of a task, in the order of results files."""
    return list(dict.fromkeys(metric for run in task.runs.values() for metric in run.scores))


def _figure(figure: Figure, card: Card, tasks: Mapping[str, TaskBoard]) -> list[Table]:
    if figure.columns:
        return [_across(figure, card, tasks)]
    found = []
    for task in (tasks[name] for name in figure.tasks if name in tasks):
        for part in figure.parts or ("",):
            ending = f"{PART}{part}" if part else ""
            wanted = _wanted(task, [f"{one}{ending}" for one in figure.metrics])
            title = (
                f"{task.name}, {part}: {figure.title}" if part else f"{task.name}: {figure.title}"
            )
            found.append(_task_table(title, task, wanted, card, ending))
    return found


def _across(figure: Figure, card: Card, tasks: Mapping[str, TaskBoard]) -> Table:
    """One table with columns from several tasks, without columns that no model has."""
    wanted = [(heading, *column.split()) for heading, column in figure.columns.items()]
    there = [(heading, tasks[task], metric) for heading, task, metric in wanted if task in tasks]
    labels = dict.fromkeys(label for _, task, _ in there for label in task.runs)
    rows = [
        Row(label, tuple(_cell(task.runs.get(label), metric) for _, task, metric in there))
        for label in sorted(labels, key=str.casefold)
    ]
    return _finished(figure.title, there, rows, card)


def _task_table(
    title: str, task: TaskBoard, metrics: Sequence[str], card: Card | None, ending: str = ""
) -> Table:
    """A task's models on some metrics; headings are without an ending that all of them have."""
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
    return _finished(
        title, [(metric.removesuffix(ending), task, metric) for metric in metrics], rows, card
    )


def _finished(
    title: str,
    headings: Sequence[tuple[str, TaskBoard, str]],
    rows: Sequence[Row],
    card: Card | None,
) -> Table:
    """Orders rows by the first column, best first, and adds published values.

    These have a row for each source, and stand beside those of the same model. A heading comes
    with its task and metric.
    """
    if headings:
        _, task, metric = headings[0]
        rows = sorted(rows, key=lambda row: _place(row.cells[0], higher=metric not in task.lower))
    published: dict[str, dict[int, float]] = {}
    for place, (_, task, metric) in enumerate(headings):
        for reference in card.references if card else ():
            some: Run | None = next(iter(task.runs.values()), None)
            value = published_value(reference, task.name, metric, some.scores if some else ())
            if value is not None:
                published.setdefault(reference.label, {})[place] = value
    rows = [_beside_published(row, published) for row in rows]
    width = range(len(headings))
    rows += [
        Row(label, tuple(Cell(values.get(place)) for place in width), published=True)
        for label, values in published.items()
    ]
    columns = []
    for place, (heading, task, metric) in enumerate(headings):
        group, label = variant_and_name(heading)
        ends = _ends(row.cells[place] for row in rows)
        chance = card.chance if card else None
        columns.append(Column(label, group, chance, ends, metric not in task.lower))
    return Table(title, tuple(columns), tuple(rows))


def _place(cell: Cell, *, higher: bool) -> tuple[bool, float]:
    value = cell.value or 0.0
    return cell.value is None, -value if higher else value


def _beside_published(row: Row, published: Mapping[str, Mapping[int, float]]) -> Row:
    name = plain_name(row.label)
    same = [values for label, values in published.items() if plain_name(label) == name]
    if not same:
        return row
    cells = [replace(cell, published=same[0].get(place)) for place, cell in enumerate(row.cells)]
    return Row(row.label, tuple(cells))


def _wanted(task: TaskBoard, names: Sequence[str]) -> list[str]:
    """The metrics of a task that have one of these names, with or without their variant.

    Variants are in the task's order, names in the order given.
    """
    there = {metric: variant_and_name(metric) for metric in all_metrics(task)}
    found = [
        metric
        for variant in dict.fromkeys(variant for variant, _ in there.values())
        for name in names
        for metric, (own_variant, own_name) in there.items()
        if own_variant == variant and name in (metric, own_name)
    ]
    return list(dict.fromkeys(found))


def _cell(run: Run | None, metric: str, rank: Rank | None = None) -> Cell:
    score = run.scores.get(metric) if run else None
    if run is None or score is None:
        return Cell()
    if score.value is not None and not math.isfinite(score.value):
        return Cell(note=f"not a finite number ({score.value})")
    low, high = score.interval or (None, None)
    return Cell(score.value, low, high, score.method, rank, note=_note(run, score))


def _note(run: Run, score: Score) -> str:
    if not run.comparable:
        scored, total = run.documents
        other = ", ".join(one.partition(" ")[0] for one in run.differs)
        return (
            f"measured differently from most ({scored} of {total} documents; other: {other}; see "
            "signatures)"
        )
    return "" if score.value is not None else "not defined here"


def _ends(cells: Iterable[Cell]) -> tuple[float, float]:
    """From 0, or below it for differences, to 1 or 100, or above it."""
    values = [v for cell in cells for v in (cell.value, cell.low, cell.high) if v is not None]
    least, most = min([0.0, *values]), max([0.0, *values])
    return least, 1.0 if most <= _MOST_AS_SHARE else max(PERCENT, most)
