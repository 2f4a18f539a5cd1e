"""The content of the page: models, tasks, runs and published values, read from results."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lm_eval_ext.cards import Reference, card_of, cards, headline_of
from lm_eval_ext.compare import reading
from lm_eval_ext.compare.align import FREE, parts_of
from lm_eval_ext.compare.metrics import aggregation_of, statistic_of
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import ResultsFile, Score, model_file, variant_and_name
from lm_eval_ext.results.samples import SampleStatistic, samples_file
from lm_eval_ext.text import one_line


@dataclass(frozen=True)
class Rank:
    """A place among the models of a column.

    Attributes:
        best: One more than the number of models that are significantly better.
        tied: Whether there is a model that isn't significantly different from this one.
    """

    best: int
    tied: bool


@dataclass(frozen=True)
class Run:
    """A model on a task.

    It is comparable if signature and documents are those of most models. ``documents`` are the
    number that were scored, and that the task has.
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
        benchmark: Its benchmark's name, or "" if the task isn't ours.
        leading: The metric that stands for the task in the overview.
        lower: The metrics for which lower is better.
        statistic: How samples give the leading metric; None for the average of their scores.
        runs: By the model's label.
        ranks: By the model's label, on the leading metric; only of comparable runs.
    """

    name: str
    benchmark: str
    leading: str
    lower: frozenset[str] = frozenset()
    statistic: SampleStatistic | None = None
    runs: dict[str, Run] = field(default_factory=dict)
    ranks: dict[str, Rank] = field(default_factory=dict)


@dataclass(frozen=True)
class Board:
    """All that the page shows except the samples; ``newest`` is the date of the newest results.

    Models are in alphabetical order, tasks in the order of the benchmarks' cards.
    """

    models: tuple[Model, ...]
    tasks: tuple[TaskBoard, ...]
    newest: str


def plain_name(label: str) -> str:
    """A model's name without case, punctuation and "(paper)", to match it with published ones."""
    name = label.casefold().replace("(paper)", "").rpartition("/")[2]
    return re.sub(r"[^a-z0-9]+", "", name)


def published_value(reference: Reference, task: TaskBoard, metric: str) -> float | None:
    """The published value of a metric; one without a variant belongs to the task's first."""
    if task.name not in reference.tasks:
        return None
    if metric in reference.figures:
        return reference.figures[metric]
    variant, name = variant_and_name(metric)
    some: Iterable[str] = next(iter(task.runs.values())).scores if task.runs else ()
    of_name = (one for one in map(variant_and_name, some) if one[1] == name)
    is_first = next(of_name, None) == (variant, name)
    return reference.figures.get(name) if is_first else None


def collect(paths: Sequence[Path]) -> Board:
    """Reads results files and folders, as lm_eval or ``lm-eval-ext run`` left them.

    Raises:
        OptionError: If there are none.
        DataError: If a file cannot be read.
    """
    found = sorted(reading.read_models(paths), key=lambda model: model.label.casefold())
    models = tuple(_model(model) for model in found)
    tasks = [_task_board(task, found) for task in _tasks(found)]
    if not tasks:
        raise OptionError("the results hold no task with scores")
    newest = max(
        (results.path.stem.partition("_")[2] for model in found for results in model.runs.values()),
        default="",
    )
    return Board(models, tuple(tasks), newest)


def _model(model: reading.Model) -> Model:
    results = next(iter(model.runs.values()))
    arguments = results.content["config"].get("model_args")
    return Model(
        label=model.label,
        notes=one_line(str(model_file(results).get("notes") or "")),
        arguments=one_line(str(arguments or "")),
    )


def _tasks(models: Sequence[reading.Model]) -> list[str]:
    """All tasks: ours in the order of their cards, then the others by name."""
    there = {task for model in models for task in model.runs}
    ours = [task for card in cards().values() for task in card.tasks if task in there]
    return ours + sorted(there - set(ours))


def _task_board(task: str, models: Sequence[reading.Model]) -> TaskBoard:
    runs = {model.label: model.runs[task] for model in models if task in model.runs}
    usual = _most_common({label: _measured(task, run) for label, run in runs.items()})
    card = card_of(task)
    some = next(iter(runs.values()))
    leading = headline_of(task, some.scores(task))
    better = some.content.get("higher_is_better", {}).get(task) or {}
    return TaskBoard(
        name=one_line(task),
        benchmark=card.name if card else "",
        leading=leading,
        lower=frozenset(
            metric
            for run in runs.values()
            for metric in run.scores(task)
            if better.get(metric.partition(",")[0]) is False
        ),
        statistic=statistic_of(aggregation_of(task, some, leading)),
        runs={
            label: Run(
                scores=run.scores(task),
                documents=run.documents(task),
                signature=run.signature(task),
                samples=file if (file := samples_file(run, task)).is_file() else None,
                comparable=_measured(task, run) == usual,
            )
            for label, run in runs.items()
        },
    )


def _measured(task: str, run: ResultsFile) -> tuple[str, ...]:
    parts = parts_of(run.signature(task))
    kept = (f"{key}:{value}" for key, value in parts.items() if key not in FREE)
    return (*kept, str(run.documents(task)))


def _most_common(measured: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What most runs measured; if several are equally common, what the first run measured."""
    counts = Counter(measured.values())
    return max(measured.values(), key=lambda one: counts[one])
