"""The content of the page: models, tasks, runs and published values, read from results."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lm_eval_ext.cards import card_of, cards, headline_of
from lm_eval_ext.compare import reading
from lm_eval_ext.compare.align import FREE, parts_of
from lm_eval_ext.compare.metrics import aggregation_of, statistic_of
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.about import About, about
from lm_eval_ext.results.files import ResultsFile, Score, Tokens, model_file
from lm_eval_ext.results.samples import SampleStatistic, samples_file
from lm_eval_ext.text import one_line


@dataclass(frozen=True)
class Rank:
    """A place among the models of a column.

    Attributes:
        best: One more than the number of models that are significantly better.
        tied: Whether there is a model that isn't significantly different from this one.
        beaten: The number of models that are significantly worse.
    """

    best: int
    tied: bool
    beaten: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Past:
    """An earlier result of a model on a task, on the task's leading metric."""

    date: str
    value: float | None
    interval: tuple[float, float] | None
    documents: tuple[int, int]
    signature: str


@dataclass(frozen=True)
class Run:
    """A model on a task.

    Attributes:
        scores: By metric.
        documents: The number that were scored, and that the task has.
        signature: What was asked and how it was scored.
        date: Of the results file.
        samples: Their file, if there is one here.
        seconds: How long the run took, if known.
        together: The number of tasks that took these seconds together.
        tokens: Of requests and answers, if they were counted.
        history: All results of this model on this task, the oldest first; of one, none.
        differs: In what it differs from what most models measured, such as "data 1f instead of
            2a".
    """

    scores: Mapping[str, Score]
    documents: tuple[int, int]
    signature: str
    date: str = ""
    samples: Path | None = None
    seconds: float | None = None
    together: int = 1
    tokens: Tokens | None = None
    history: tuple[Past, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def comparable(self) -> bool:
        """Whether signature and documents are those of most models."""
        return not self.differs


@dataclass(frozen=True)
class Model:
    """A model under the name that the page gives it; ``source`` is a file it was merged from."""

    label: str
    notes: str
    arguments: str
    about: About = field(default_factory=About)
    source: str = ""


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
        tested: Whether ranks are from tests; otherwise they are from intervals.
    """

    name: str
    benchmark: str
    leading: str
    lower: frozenset[str] = frozenset()
    statistic: SampleStatistic | None = None
    runs: dict[str, Run] = field(default_factory=dict)
    ranks: dict[str, Rank] = field(default_factory=dict)
    tested: bool = False


@dataclass(frozen=True)
class Board:
    """All that the page shows except the samples.

    Models are in alphabetical order, tasks in the order of the benchmarks' cards.
    """

    models: tuple[Model, ...]
    tasks: tuple[TaskBoard, ...]

    @property
    def newest(self) -> str:
        """The date of the newest results; "" if unknown."""
        return max((run.date for task in self.tasks for run in task.runs.values()), default="")

    @property
    def parts(self) -> list[str]:
        """Tasks of which a model was asked a part only, with the sizes of the parts."""
        found = []
        for task in self.tasks:
            sizes = sorted({run.documents for run in task.runs.values()})
            if counts := [f"{some:,} of {whole:,}" for some, whole in sizes if some < whole]:
                found.append(f"{task.name} ({', '.join(counts)} documents)")
        return found

    def seconds(self, label: str) -> float | None:
        """What all runs of a model took together; None if that isn't known of each."""
        found = [task.runs[label] for task in self.tasks if label in task.runs]
        if not found or any(run.seconds is None for run in found):
            return None
        return math.fsum((run.seconds or 0.0) / run.together for run in found)

    def tokens(self, label: str) -> Tokens | None:
        """Of all runs of a model; None if they are not known of each."""
        found = [task.runs[label].tokens for task in self.tasks if label in task.runs]
        known = [tokens for tokens in found if tokens is not None]
        if not known or len(known) < len(found):
            return None
        return Tokens(*map(sum, zip(*known, strict=True)))

    def taken(self, model: Model) -> list[tuple[str, Run]]:
        """A model's tasks and runs of which the tokens are known."""
        runs = [(task.name, task.runs.get(model.label)) for task in self.tasks]
        return [(name, run) for name, run in runs if run is not None and run.tokens is not None]

    def histories(self) -> Iterator[tuple[str, list[tuple[TaskBoard, Past, bool]]]]:
        """The models with several results on a task.

        Each result with its task, and whether it can be compared with what the tables show.
        """
        for model in self.models:
            found = [
                (task, past, measured(past) == measured(task.runs[model.label]))
                for task in self.tasks
                if model.label in task.runs
                for past in task.runs[model.label].history
            ]
            if found:
                yield model.label, found


def collect(models: Sequence[reading.Model]) -> Board:
    """The board of models' results, as lm_eval or ``lm-eval-ext run`` left them."""
    found = sorted(models, key=lambda model: model.label.casefold())
    tasks = [_task_board(task, found) for task in {task for model in found for task in model.runs}]
    return arranged(map(_model, found), tasks)


def arranged(models: Iterable[Model], tasks: Iterable[TaskBoard]) -> Board:
    """A board in order, with what each run differs in from most of its task.

    Tasks of ours are in the order of their cards, then come the others by name.

    Raises:
        OptionError: If no task is left.
    """
    by_name = {task.name: task for task in tasks}
    if not by_name:
        raise OptionError("the results hold no task with scores")
    ours = [task for card in cards().values() for task in card.tasks if task in by_name]
    ordered = [by_name[name] for name in ours + sorted(by_name.keys() - set(ours))]
    for task in ordered:
        task.runs = dict(sorted(task.runs.items(), key=lambda run: run[0].casefold()))
        usual = _usual(task.runs.values())
        for label, run in task.runs.items():
            task.runs[label] = replace(run, differs=_differs(run, usual))
    return Board(tuple(sorted(models, key=lambda model: model.label.casefold())), tuple(ordered))


def _model(model: reading.Model) -> Model:
    results = next(iter(model.runs.values()))
    arguments = results.content["config"].get("model_args")
    return Model(
        label=model.label,
        notes=one_line(str(model_file(results).get("notes") or "")),
        arguments=one_line(str(arguments or "")),
        about=about(results),
    )


def _task_board(task: str, models: Sequence[reading.Model]) -> TaskBoard:
    having = [model for model in models if task in model.runs]
    card = card_of(task)
    some = having[0].runs[task]
    leading = headline_of(task, some.scores(task))
    better = some.content.get("higher_is_better", {}).get(task) or {}
    runs = {model.label: _run(task, model, leading) for model in having}
    return TaskBoard(
        name=one_line(task),
        benchmark=card.name if card else "",
        leading=leading,
        lower=frozenset(
            metric
            for run in runs.values()
            for metric in run.scores
            if better.get(metric.partition(",")[0]) is False
        ),
        statistic=statistic_of(aggregation_of(task, some, leading)),
        runs=runs,
    )


def _run(task: str, model: reading.Model, leading: str) -> Run:
    results = model.runs[task]
    history = model.history.get(task, ())
    return Run(
        scores=results.scores(task),
        documents=results.documents(task),
        signature=results.signature(task),
        date=_date(results),
        samples=file if (file := samples_file(results, task)).is_file() else None,
        seconds=_seconds(results),
        together=len(results.tasks),
        tokens=results.tokens(task),
        history=tuple(_past(task, one, leading) for one in history) if len(history) > 1 else (),
    )


def _past(task: str, results: ResultsFile, leading: str) -> Past:
    score = results.scores(task).get(leading, Score(None, None))
    return Past(
        _date(results),
        score.value,
        score.interval,
        results.documents(task),
        results.signature(task),
    )


def _date(results: ResultsFile) -> str:
    return one_line(results.path.stem.partition("_")[2])


def _seconds(results: ResultsFile) -> float | None:
    try:
        seconds = float(results.content.get("total_evaluation_time_seconds") or "nan")
    except (TypeError, ValueError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def measured(run: Run | Past) -> dict[str, str]:
    """What must be the same for two runs to be comparable."""
    kept = {key: part for key, part in parts_of(run.signature).items() if key not in FREE}
    scored, total = run.documents
    return {**kept, "documents": f"{scored} of {total}"}


def _usual(runs: Iterable[Run]) -> dict[str, str]:
    """What most runs measured; if several are equally common, what the first run measured."""
    found = [measured(run) for run in runs]
    return max(found, key=found.count)


def _differs(run: Run, usual: Mapping[str, str]) -> tuple[str, ...]:
    own = measured(run)
    return tuple(
        f"{key} {own.get(key, 'none')} instead of {usual.get(key, 'none')}"
        for key in dict.fromkeys([*own, *usual])
        if own.get(key) != usual.get(key)
    )
