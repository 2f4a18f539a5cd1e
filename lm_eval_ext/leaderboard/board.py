"""What the page shows, before it is a page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lm_eval_ext.results.files import Score


@dataclass(frozen=True)
class Rank:
    """A place among the models of a column.

    Attributes:
        best: One more than the number of models that are shown to be better.
        tied: Whether another model cannot be told apart from this one.
    """

    best: int
    tied: bool


@dataclass(frozen=True)
class Run:
    """A model on a task.

    Attributes:
        scores: By metric.
        documents: Scored, and of how many.
        signature: In one line.
        samples: The file of logged samples, if there is one.
        comparable: Whether it measured the same as most models did (signature and documents).
    """

    scores: Mapping[str, Score]
    documents: tuple[int, int]
    signature: str
    samples: Path | None
    comparable: bool = True


@dataclass(frozen=True)
class Model:
    """A model under the name that the page gives it."""

    label: str
    notes: str
    arguments: str


@dataclass
class TaskBoard:
    """A task with all its runs.

    Attributes:
        name: Of the task.
        benchmark: Its benchmark's name, or "" where the task is not ours.
        leading: The metric that stands for the task in the overview.
        lower: The metrics of which less is better.
        runs: By the model's label.
        ranks: By the model's label, on the leading metric; models that are not comparable have
            none.
    """

    name: str
    benchmark: str
    leading: str
    lower: frozenset[str] = frozenset()
    runs: dict[str, Run] = field(default_factory=dict)
    ranks: dict[str, Rank] = field(default_factory=dict)


@dataclass(frozen=True)
class Board:
    """All that the page shows but the samples.

    Attributes:
        models: In alphabetical order.
        tasks: In the order of the benchmarks' cards; others after them.
        newest: When the newest results were made, as lm-eval writes it, or "".
    """

    models: tuple[Model, ...]
    tasks: tuple[TaskBoard, ...]
    newest: str
