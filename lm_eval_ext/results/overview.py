"""Models by benchmarks: the first thing to see, in a terminal, on a page, in LaTeX, as a frame."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.errors import DataError
from lm_eval_ext.results.align import align, usual
from lm_eval_ext.results.ask import question_of, recomputes
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import best, pairs

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
    alpha: float = 0.05,
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
        alpha: The level of the tests, which need logged samples; without them nothing is best.
        read: Reads the long table of a run and task.
    """
    import pandas as pd

    made = []
    chosen = dict(zip(tasks, tasks, strict=True)) if tasks else representatives(models)
    for benchmark, task in chosen.items():
        runs = {model.label: model.runs[task] for model in models if task in model.runs}
        # Older files have other metrics; most runs decide, and not the first model's.
        current = [run for run in runs.values() if run.is_current(task)] or [*runs.values()]
        headlines = Counter(run.headline(task) for run in current)
        ((metric, _),) = headlines.most_common(1)
        if not metric:
            continue
        first = next(run for run in current if run.headline(task) == metric)
        question = question_of(first, task, metric)
        values = {name: run.scores(task).get(metric) for name, run in runs.items()}
        tested, leading = leaders(task, runs, question, alpha=alpha, read=read)
        card = first.card(task)
        for name, found in values.items():
            if found is None:
                continue
            scored, total = runs[name].documents(task)
            made.append(
                (
                    name, benchmark, task, metric, card.title_of(metric) if card else metric,
                    question.measure.unit, found.value, found.low, found.high, name in leading,
                    name in tested, scored, total,
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
    own_cards = {own.name: own for own in of_task.values() if own}
    for card in {**cards(), **own_cards}.values():
        there = [task for task, own in of_task.items() if own and own.name == card.name]
        preferred = dict.fromkeys((*card.representative, *there))
        order = {task: place for place, task in enumerate(preferred)}
        if there:
            known = [task for task in there if task in card.representative] or there
            found[card.name] = min(known, key=lambda task: (-counts[task], order[task]))
    return found | {task: task for task, own in of_task.items() if own is None}


def leaders(
    task: str,
    runs: Mapping[str, ResultsFile],
    question: Question,
    *,
    alpha: float = 0.05,
    read: "Callable[[ResultsFile, str], DataFrame]" = rows,
) -> tuple[Set[str], Set[str]]:
    """The models that can be tested, and those that no other one is significantly better than.

    Tested are those that were asked the same as most, so that a trial does not take the documents
    from all others; where each was asked something else, those that share documents.
    """
    same = usual(task, runs)
    runs = {name: run for name, run in runs.items() if name in same or len(same) == 1}
    nobody: frozenset[str] = frozenset()
    if len(runs) < 2:  # noqa: PLR2004
        return nobody, nobody
    try:
        tables = align(task, runs, read=read)
    except DataError:  # other prompts or settings, or no samples: `compare` says which
        return nobody, nobody
    if not all(recomputes(runs[model], task, own, question) for model, own in tables.items()):
        return nobody, nobody
    name = question.measure.name
    scores = {model: run.scores(task).get(name) for model, run in runs.items()}
    values = {model: one.value if one else None for model, one in scores.items()}
    found = pairs(tables, question, alpha=alpha, intervals=False)
    return runs.keys(), best(values, found, question.measure, alpha)
