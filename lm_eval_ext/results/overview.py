"""Models by benchmarks: the first thing to see, in a terminal, on a page, in LaTeX, as a frame."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.errors import DataError
from lm_eval_ext.results.align import align, usual
from lm_eval_ext.results.ask import question_of, recomputes
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model, having
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import Pair, best, pairs

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = (
    "model", "benchmark", "task", "metric", "title", "unit", "value", "low", "high", "best",
    "tested", "scored", "total",
)  # fmt: skip


def overview(
    models: Sequence[Model],
    *,
    tasks: Sequence[str] = (),
    read: "Callable[[ResultsFile, str], DataFrame]" = rows,
) -> "DataFrame":
    """A row for each model and benchmark that it has results of.

    Columns: ``model``, ``benchmark`` (of a task that isn't ours the task), ``task`` and ``metric``
    (the benchmark's representative, and its headline), ``title`` (the metric in words), ``unit``,
    ``value``, ``low`` and ``high``, ``best`` (whether no other model is significantly better),
    ``tested`` (whether the model is among those that were compared), ``scored`` documents of
    ``total``.

    Args:
        models: As :func:`~lm_eval_ext.results.models.read_models` finds them.
        tasks: Instead of the representatives.
        read: Reads the long table of a run and task. Tests need samples; without them nothing is
            best.
    """
    import pandas as pd

    made = []
    chosen = {task: task for task in tasks} or representatives(models)
    for benchmark, task in chosen.items():
        runs = having(models, task)
        # Older files have other metrics; most runs decide, and not the first model's.
        current = [run for run in runs.values() if run.is_current(task)] or [*runs.values()]
        ((metric, _),) = Counter(run.headline(task) for run in current).most_common(1)
        if not metric:
            continue
        first = next(run for run in current if run.headline(task) == metric)
        question = question_of(first, task, metric)
        values = {name: run.scores(task).get(metric) for name, run in runs.items()}
        tested = _tested(task, runs, question, read)
        known = {name: one.value if one else None for name, one in values.items()}
        leading = best(known, tested, question.measure)
        compared = {name for pair in tested for name in (pair.first, pair.second)}
        for name, found in values.items():
            if found is not None:
                numbers = found.value, found.low, found.high
                told = benchmark, task, metric, first.title(task, metric), question.measure.unit
                marks = name in leading & compared, name in compared
                made.append((name, *told, *numbers, *marks, *runs[name].documents(task)))
    return pd.DataFrame(made, columns=list(COLUMNS))


def _tested(
    task: str,
    runs: Mapping[str, ResultsFile],
    question: Question,
    read: "Callable[[ResultsFile, str], DataFrame]",
) -> list[Pair]:
    """All pairs of the models that were asked the same as most.

    So a trial does not take the documents from all others. Where each was asked something else,
    those that share documents are tested.
    """
    same = usual(task, runs)
    if len(same) > 1:
        runs = {name: run for name, run in runs.items() if name in same}
    try:
        tables = align(task, runs, read=read) if len(runs) > 1 else {}
    except DataError:  # other prompts or settings, or no samples: `compare` says which
        return []
    known = all(recomputes(runs[name], task, own, question) for name, own in tables.items())
    return pairs(tables, question, intervals=False) if tables and known else []


def representatives(models: Sequence[Model]) -> dict[str, str]:
    """By benchmark, the task that stands for it: of those that most models have, the card's first.

    A task that isn't ours stands for itself.
    """
    counts = Counter(task for model in models for task in model.runs)
    of_task: dict[str, Card | None] = {}
    for model in models:
        for task, run in model.runs.items():
            of_task.setdefault(task, run.card(task))
    found: dict[str, str] = {}
    others = {own.name: own for own in of_task.values() if own}
    for card in {**cards(), **others}.values():
        there = [task for task, own in of_task.items() if own and own.name == card.name]
        known = [task for task in card.representative if task in there] or there
        if known:
            found[card.name] = max(known, key=lambda task: counts[task])
    return found | {task: task for task, own in of_task.items() if own is None}
