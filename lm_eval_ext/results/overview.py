"""Models by benchmarks: the first thing to see, in a terminal, on a page, in LaTeX, as a frame."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.errors import DataError
from lm_eval_ext.results.align import align
from lm_eval_ext.results.ask import question_of, recomputes
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import best, pairs

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = (
    "model", "benchmark", "task", "metric", "title", "unit", "value", "low", "high", "best",
    "scored", "total",
)  # fmt: skip


def overview(
    models: Sequence[Model], *, tasks: Sequence[str] = (), alpha: float = 0.05
) -> "DataFrame":
    """A row for each model and benchmark that it has results of.

    Columns: ``model``, ``benchmark`` (of a task that isn't ours the task), ``task`` and ``metric``
    (the benchmark's representative, and its headline), ``title`` (the metric in words), ``unit``,
    ``value``, ``low`` and ``high``, ``best`` (whether no other model is significantly better),
    ``scored`` documents of ``total``.

    Args:
        models: As :func:`~lm_eval_ext.results.models.read_models` finds them.
        tasks: Instead of the representatives.
        alpha: The level of the tests, which need logged samples; without them nothing is best.
    """
    import pandas as pd

    made = []
    chosen = dict(zip(tasks, tasks, strict=True)) if tasks else representatives(models)
    for benchmark, task in chosen.items():
        runs = {model.label: model.runs[task] for model in models if task in model.runs}
        headlines = Counter(run.headline(task) for run in runs.values())
        metric = max(headlines, key=lambda one: headlines[one])
        first = next(run for run in runs.values() if run.headline(task) == metric)
        if not metric:
            continue
        question = question_of(first, task, metric)
        values = {name: run.scores(task).get(metric) for name, run in runs.items()}
        leading = leaders(task, runs, question, alpha=alpha)
        card = first.card(task)
        for name, found in values.items():
            if found is None:
                continue
            scored, total = runs[name].documents(task)
            made.append(
                (
                    name, benchmark, task, metric, card.title_of(metric) if card else metric,
                    question.measure.unit, found.value, found.low, found.high, name in leading,
                    scored, total,
                )
            )  # fmt: skip
    return pd.DataFrame(made, columns=list(COLUMNS))


def representatives(models: Sequence[Model]) -> dict[str, str]:
    """By benchmark, the task that stands for it: of those that most models have, the card's first.

    A task that isn't ours stands for itself.
    """
    counts: dict[str, int] = {}
    of_task: dict[str, Card | None] = {}
    for model in models:
        for task, run in model.runs.items():
            counts[task] = counts.get(task, 0) + 1
            of_task.setdefault(task, run.card(task))
    found: dict[str, str] = {}
    for card in cards().values():
        there = [task for task, own in of_task.items() if own and own.name == card.name]
        order = {task: place for place, task in enumerate((*card.representative, *there))}
        if there:
            known = [task for task in there if task in card.representative] or there
            found[card.name] = min(known, key=lambda task: (-counts[task], order[task]))
    return found | {task: task for task, own in of_task.items() if own is None}


def leaders(
    task: str, runs: Mapping[str, ResultsFile], question: Question, *, alpha: float = 0.05
) -> frozenset[str]:
    """The models that no other is significantly better than; none where that cannot be tested."""
    if len(runs) < 2:  # noqa: PLR2004
        return frozenset()
    try:
        tables = align(task, runs)
    except DataError:  # other prompts or settings, or no samples: `compare` says which
        return frozenset()
    if not all(recomputes(runs[model], task, own, question) for model, own in tables.items()):
        return frozenset()
    name = question.measure.name
    scores = {model: run.scores(task).get(name) for model, run in runs.items()}
    values = {model: one.value if one else None for model, one in scores.items()}
    return best(values, pairs(tables, question, alpha=alpha), question.measure, alpha)
