"""Published figures: which column they belong to, and which model."""

import re
from collections.abc import Iterable

from lm_eval_ext.catalogue import Reference
from lm_eval_ext.leaderboard.board import TaskBoard

VARIANT = "/"
"""Between a metric's variant and its name."""


def plain_name(label: str) -> str:
    """A model's name without what tells its sources apart: case, signs, "(paper)"."""
    name = label.casefold().replace("(paper)", "").rpartition("/")[2]
    return re.sub(r"[^a-z0-9]+", "", name)


def figure_of(reference: Reference, task: TaskBoard, metric: str) -> float | None:
    """A published figure for a metric; one without a variant belongs to the task's first."""
    if task.name not in reference.tasks:
        return None
    if metric in reference.figures:
        return reference.figures[metric]
    variant, _, name = metric.rpartition(VARIANT)
    some: Iterable[str] = next(iter(task.runs.values())).scores if task.runs else ()
    first = next((one for one in some if one.rpartition(VARIANT)[2] == name), None)
    is_first = first is not None and first.rpartition(VARIANT)[0] == variant
    return reference.figures.get(name) if is_first else None
