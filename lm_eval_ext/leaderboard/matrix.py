"""The first table of the page: models, best first, by benchmark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_ext.cards import cards
from lm_eval_ext.leaderboard.board import Board, TaskBoard
from lm_eval_ext.leaderboard.tables import Table, overview

MOST_COLUMNS = 10
"""Columns that a screen has room for; each task of another project counts as a benchmark."""


@dataclass(frozen=True)
class Matrix:
    """Models by benchmark.

    Attributes:
        table: Rows are best first, models with all benchmarks before the others.
        titles: Of the columns: short names of the benchmarks.
        apart: Of the columns: whether any model is shown to be better than another.
        win_rates: By label; None for a model without a rank among others.
        left_out: The number of tasks of other projects that had no room.
    """

    table: Table
    titles: tuple[str, ...]
    apart: tuple[bool, ...]
    win_rates: dict[str, float | None]
    left_out: int


def matrix(board: Board) -> Matrix:
    """Represents each benchmark by the task that most models have, and orders models by these.

    If there is one benchmark, its tasks are shown.
    """
    names = dict.fromkeys(task.benchmark or task.name for task in board.tasks)
    if len(names) == 1:
        names = dict.fromkeys(task.name for task in board.tasks)
    chosen = [
        max(
            (task for task in board.tasks if name in (task.benchmark, task.name)),
            key=lambda task: sum(run.comparable for run in task.runs.values()),
        )
        for name in names
    ]
    tasks = tuple(chosen[:MOST_COLUMNS])
    rates = {model.label: win_rate(model.label, tasks) for model in board.models}

    def place(label: str) -> tuple[int, float, float]:
        lacking = sum(label not in task.runs for task in tasks)
        return lacking, -(rates[label] or 0.0), -_mean(label, tasks)

    table = overview("Best first", tasks, sorted(rates, key=place))
    known = cards()
    titles = [
        known[task.benchmark].title.partition(":")[0] if task.benchmark in names else task.name
        for task in tasks
    ]
    apart = tuple(any(rank.best > 1 for rank in task.ranks.values()) for task in tasks)
    return Matrix(table, tuple(titles), apart, rates, len(chosen) - len(tasks))


def win_rate(label: str, tasks: Sequence[TaskBoard]) -> float | None:
    """The share of other models that a model is better than, averaged over tasks.

    A model that it cannot be told apart from counts half. None if it has no rank among others.
    """
    shares = [
        (rank.beaten + (len(task.ranks) - rank.best - rank.beaten) / 2) / (len(task.ranks) - 1)
        for task in tasks
        if (rank := task.ranks.get(label)) and len(task.ranks) > 1
    ]
    return math.fsum(shares) / len(shares) if shares else None


def _mean(label: str, tasks: Sequence[TaskBoard]) -> float:
    """The sum of a model's scores in units of each task's best, to order equal win rates."""
    found = []
    for task in tasks:
        values = {
            name: run.scores[task.leading].value
            for name, run in task.runs.items()
            if task.leading in run.scores
        }
        known = [abs(value) for value in values.values() if value is not None]
        value = values.get(label)
        if value is not None and math.isfinite(value) and max(known) > 0:
            found.append((-1 if task.leading in task.lower else 1) * value / max(known))
    return math.fsum(found)
