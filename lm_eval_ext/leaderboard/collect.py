"""From folders of results to a board."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from lm_eval_ext.catalogue import Card, card_of, cards
from lm_eval_ext.compare import reading
from lm_eval_ext.compare.aligning import FREE, parts_of
from lm_eval_ext.errors import OptionError
from lm_eval_ext.leaderboard.board import Board, Model, Run, TaskBoard
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.labels import model_file
from lm_eval_ext.results.samples import samples_file
from lm_eval_ext.text import one_line


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
    leading = _leading(list(some.scores(task)), card)
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


def _leading(metrics: Sequence[str], card: Card | None) -> str:
    """The first metric in the card's order of importance; of another task, its first."""
    for name in (*card.leading, *card.headline) if card else ():
        for metric in metrics:
            if name in (metric, metric.rpartition("/")[2]):
                return metric
    return metrics[0] if metrics else ""


def _measured(task: str, run: ResultsFile) -> tuple[str, ...]:
    parts = parts_of(run.signature(task))
    kept = (f"{key}:{value}" for key, value in parts.items() if key not in FREE)
    return (*kept, str(run.documents(task)))


def _most_common(measured: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What most runs measured; of several equally common, the one with the first label."""
    counts = Counter(measured.values())
    return max(measured.values(), key=lambda one: counts[one])
