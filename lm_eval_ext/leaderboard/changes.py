"""What is new on a page since it was last made."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.leaderboard import exchange
from lm_eval_ext.leaderboard.board import Board, Run, measured

_SAME = 1e-9


@dataclass(frozen=True)
class Change:
    """A model's result on a task that is new, gone or another.

    ``kind`` is "new", "gone" or "changed"; ``remeasured`` says that signature or documents are
    others, too. Values are of the task's leading metric.
    """

    kind: str
    model: str
    task: str
    before: float | None = None
    after: float | None = None
    remeasured: bool = False
    lower: bool = False

    @property
    def better(self) -> bool | None:
        """Whether the value rose, or fell where less is better; None if that isn't known."""
        if self.before is None or self.after is None or self.remeasured:
            return None
        return (self.after < self.before) == self.lower


@dataclass(frozen=True)
class Changes:
    """All changes since an earlier page, whose newest results are of the date ``since``."""

    since: str
    models_new: tuple[str, ...]
    models_gone: tuple[str, ...]
    results: tuple[Change, ...]


def earlier(site: Path) -> Board | None:
    """The board of the page that lies in a folder; None if there is none that can be read."""
    try:
        return exchange.read(site / exchange.NAME)
    except LmEvalExtError:
        return None


def changes(before: Board, after: Board) -> Changes:
    """Compares two boards; single results only of models and tasks that both have."""
    old, new = ({model.label for model in board.models} for board in (before, after))
    found = tuple(_results(before, after, old & new))
    return Changes(before.newest, tuple(sorted(new - old)), tuple(sorted(old - new)), found)


def _results(before: Board, after: Board, models: set[str]) -> Iterator[Change]:
    tasks = {task.name: task for task in before.tasks}
    for task in after.tasks:
        old = tasks.pop(task.name).runs if task.name in tasks else {}
        lower = task.leading in task.lower
        for label in sorted(models & (task.runs.keys() | old.keys())):
            one, two = old.get(label), task.runs.get(label)
            was, now = _value(one, task.leading), _value(two, task.leading)
            if one is None:
                yield Change("new", label, task.name, None, now)
            elif two is None:
                yield Change("gone", label, task.name, was)
            else:
                again = measured(one) != measured(two)
                if again or not _same(was, now):
                    yield Change("changed", label, task.name, was, now, again, lower)
    for task in tasks.values():
        for label in sorted(models & task.runs.keys()):
            yield Change("gone", label, task.name, _value(task.runs[label], task.leading))


def _value(run: Run | None, metric: str) -> float | None:
    score = run.scores.get(metric) if run else None
    return score.value if score else None


def _same(one: float | None, two: float | None) -> bool:
    return one == two or (one is not None and two is not None and abs(one - two) < _SAME)
