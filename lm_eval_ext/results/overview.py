"""Models by benchmarks: the first view of results, in a terminal, on a page, in LaTeX, as a frame.

:func:`column_of` reads and tests one task; :func:`table_of` makes a table of several such columns,
in which every value has its standing (:mod:`lm_eval_ext.stats.marks`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.results.align import (
    OTHER_PROMPTS,
    RefusedError,
    align,
    is_only_about_settings,
    majority_setup,
    settings_in_words,
)
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.models import Model, count_models, runs_by_model
from lm_eval_ext.results.query import is_recomputable, question_of, reason_for, reference_run
from lm_eval_ext.results.table import rows, samples_file
from lm_eval_ext.stats.marks import ColumnTests, Standing, column_tests, standings
from lm_eval_ext.stats.measures import Measure, Question, Unit
from lm_eval_ext.stats.statistics import Estimate, pairs
from lm_eval_ext.text import named_briefly

if TYPE_CHECKING:
    from pandas import DataFrame

ROW_ORDER = (
    "models with most values come first, then those that are best most often, then by the first "
    "column, then by name"
)
"""In which order models stand in a table."""

ReadTable = Callable[[Run], "DataFrame"]
"""Reads the long table of a run."""

NO_SAMPLES = (
    "no readable samples beside the results; run with --log_samples, and keep its samples_*.jsonl "
    "files"
)
OTHER_DOCUMENTS = "other documents or right answers"
NO_OTHER_SAMPLES = "no other model has readable samples"
OTHER_MEAN = "samples that do not give the value"
FEW_CLUSTERS = "too few clusters for a test"
NO_BASELINE = "no chance level is known"
UNTESTED_BETTER = "the better value of {models} could not be tested"
NO_OTHER_VALUE = "no other model has a value to test against"
OTHER_SETTINGS = "other settings, data or version than {compared}"
OWN_SETTINGS = "no other model has the same settings, data and version"
"""Reasons why a value is not tested."""


@dataclass(frozen=True)
class OverviewRow:
    """A model's value on a benchmark.

    Attributes:
        model: Its label.
        benchmark: The benchmark's name; of a task that isn't ours the task's.
        task: The task that stands for the benchmark.
        metric: The task's headline.
        title: The metric in words.
        unit: What its values are.
        value: None where there is none.
        low: The lower end of the 95 % interval.
        high: The upper end.
        why: Why there is no value or no interval.
        best: Whether the value is marked as best.
        standing: How the value stands: ``best``, ``unproven``, ``beaten`` or ``untested``.
        untested: Why it could not be tested, if it could not.
        is_testable_across_settings: Whether only its settings are in the way of a test, so that
            ``compare --across-settings`` has one.
        scored: The number of documents that were scored.
        total: The number of documents that the task has.
        signature: What was asked, and how it was scored.
    """

    model: str
    benchmark: str
    task: str
    metric: str
    title: str
    unit: Unit
    value: float | None
    low: float | None
    high: float | None
    why: str
    best: bool
    standing: Standing
    untested: str
    is_testable_across_settings: bool
    scored: int
    total: int
    signature: str


@dataclass(frozen=True)
class Obstacle:
    """Why a model could not be tested on a task.

    Attributes:
        reason: The reason in words.
        is_settings: Whether only settings are in the way, and samples are there for a test.
    """

    reason: str
    is_settings: bool = False


@dataclass(frozen=True)
class OverviewColumn:
    """A task's headline with the values of all models, and their tests.

    Attributes:
        runs: By model.
        metric: The headline.
        title: The same in words.
        measure: What the metric measures.
        tests: Of the models.
        untested: By model, why it could not be tested.
    """

    runs: Mapping[str, Run]
    metric: str
    title: str
    measure: Measure
    tests: ColumnTests
    untested: Mapping[str, Obstacle]

    @property
    def task(self) -> str:
        """The task's name."""
        return next(iter(self.runs.values())).task

    def row(self, model: str, standing: Standing) -> OverviewRow:
        """Return the row of a model."""
        run = self.runs[model]
        estimate = run.scores.get(self.metric)
        if estimate is None:
            estimate = Estimate(None)
            why = f"results of an older version, without {self.metric}"
        else:
            why = reason_for(run, self.measure, estimate)
        scored, total = run.documents
        reference = reference_run(self.runs)
        obstacle = Obstacle("")
        if standing == "untested":
            obstacle = self.untested.get(model, obstacle)
        return OverviewRow(
            model=model,
            benchmark=reference.card.name if reference.card else self.task,
            task=self.task,
            metric=self.metric,
            title=self.title,
            unit=self.measure.unit,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            why=why,
            best=standing == "best",
            standing=standing,
            untested=obstacle.reason,
            is_testable_across_settings=obstacle.is_settings,
            scored=scored,
            total=total,
            signature=run.signature,
        )


def overview(models: Sequence[Model]) -> "DataFrame":
    """Return a frame with a row for each model and benchmark that it has results of.

    Columns are the attributes of :class:`OverviewRow`.

    Args:
        models: As :func:`~lm_eval_ext.results.models.read_models` finds them.
    """
    return frame_of(overview_rows(models))


def overview_rows(models: Sequence[Model]) -> list[OverviewRow]:
    """Return a row for each model and benchmark that it has results of.

    Tests need samples; without them nothing is best.
    """
    return table_of(overview_columns(models))


def overview_columns(models: Sequence[Model]) -> list[OverviewColumn]:
    """Read and test the headlines of the tasks that stand for the benchmarks."""
    columns = []
    for task in representatives(models).values():
        column = column_of(models, task)
        if column is not None:
            columns.append(column)
    return columns


def ranked_models(columns: Sequence[OverviewColumn]) -> list[str]:
    """Return the models of a table in the order of its rows, which :data:`ROW_ORDER` states."""
    standing_in = standings({column.task: column.tests for column in columns})
    values_of: dict[str, list[float | None]] = {}
    best_counts: Counter[str] = Counter()
    for number, column in enumerate(columns):
        for model, value in column.tests.values.items():
            values = values_of.setdefault(model, [None] * len(columns))
            values[number] = value
            if standing_in[column.task][model] == "best":
                best_counts[model] += 1

    def rank(model: str) -> tuple[int, int, float, str]:
        values = values_of[model]
        value = values[0] or 0.0
        is_lower_better = columns[0].measure.lower_is_better
        amount = value if is_lower_better else -value
        return values.count(None), -best_counts[model], amount, model.casefold()

    return sorted(values_of, key=rank)


def column_of(
    models: Sequence[Model], task: str, *, read: ReadTable = rows
) -> OverviewColumn | None:
    """Read and test the models' values of a task's headline; None for a task without metrics."""
    runs = runs_by_model(models, task)
    reference = reference_run(runs)
    metric = reference.headline
    if not metric:
        return None
    question = question_of(reference, metric)
    values: dict[str, float | None] = {}
    for name, run in runs.items():
        estimate = run.scores.get(metric)
        values[name] = estimate.value if estimate else None
    tests, untested = _test(runs, metric, question, values, read)
    title = reference.title(metric)
    if question.measure.lower_is_better:
        title += ", lower is better"
    return OverviewColumn(runs, metric, title, question.measure, tests, untested)


def table_of(columns: Sequence[OverviewColumn]) -> list[OverviewRow]:
    """Return the rows of a table of these columns, in which every value has its standing."""
    standing_in = standings({column.task: column.tests for column in columns})
    rows = []
    for column in columns:
        for model in column.runs:
            rows.append(column.row(model, standing_in[column.task][model]))
    return rows


def frame_of(table: Sequence[OverviewRow]) -> "DataFrame":
    """Return the rows of a table as a frame."""
    import pandas as pd

    names = [field.name for field in fields(OverviewRow)]
    return pd.DataFrame(map(vars, table), columns=names)


def _test(
    runs: Mapping[str, Run],
    metric: str,
    question: Question,
    values: Mapping[str, float | None],
    read: ReadTable,
) -> tuple[ColumnTests, dict[str, Obstacle]]:
    """Test the models that measured what most did, and say why the others are not tested.

    If a trial were among them, only its documents could be compared. Where each model measured
    something else, those that share documents are tested.
    """
    tables, untested = _comparable(runs, read)
    compared = []
    if len(tables) > 1:
        if all(is_recomputable(runs[name], table, question) for name, table in tables.items()):
            compared = pairs(tables, question)
        if not compared:
            untested |= dict.fromkeys(tables, Obstacle(OTHER_MEAN))
    reference = reference_run(runs)
    baseline = question.measure.baseline
    if reference.card:
        baseline = reference.card.baseline(reference.task, question)
    no_interval = _reasons_without_interval(runs, metric, question.measure)
    tests = column_tests(values, tables, question, compared, baseline, without_interval=no_interval)
    for name in tests.compared - tests.p_values.keys():
        reason = NO_BASELINE if baseline is None else no_interval.get(name, FEW_CLUSTERS)
        untested[name] = Obstacle(reason)
    for name in tests.p_values:
        betters = tests.untested_betters(name)
        if betters:
            reason = UNTESTED_BETTER.format(models=named_briefly(betters))
            untested.setdefault(name, Obstacle(reason))
    if len(runs) == 1:
        untested |= {name: Obstacle(reason) for name, reason in no_interval.items()}
    with_value = [name for name in tables if values.get(name) is not None]
    if len(with_value) == 1 and with_value[0] not in tests.compared:
        untested.setdefault(with_value[0], Obstacle(NO_OTHER_VALUE))
    return tests, untested


def _reasons_without_interval(
    runs: Mapping[str, Run], metric: str, measure: Measure
) -> dict[str, str]:
    """Return by model why its value of a metric is refused an interval, where it is."""
    reasons = {}
    for name, run in runs.items():
        value_estimate = run.scores.get(metric)
        if value_estimate is None or value_estimate.value is None:
            continue
        reason = reason_for(run, measure, value_estimate)
        if reason:
            reasons[name] = reason
    return reasons


def _comparable(
    runs: Mapping[str, Run], read: ReadTable
) -> "tuple[dict[str, DataFrame], dict[str, Obstacle]]":
    """Return the tables of the runs that can be compared, and why the others cannot."""
    if len(runs) > 1 and not any(samples_file(run).is_file() for run in runs.values()):
        return {}, dict.fromkeys(runs, Obstacle(NO_SAMPLES))
    untested: dict[str, Obstacle] = {}
    majority = majority_setup(runs)
    if len(majority) > 1:
        untested = _other_setups(runs, majority)
        runs = {name: run for name, run in runs.items() if name in majority}
    if len(runs) < 2:  # noqa: PLR2004
        return {}, untested
    tables, refused = align(runs, read=read)
    differing: dict[str, bool] = {}
    for name, error in refused.items():
        if not isinstance(error, RefusedError):
            untested[name] = Obstacle(NO_SAMPLES)
        elif error.difference is None:
            untested[name] = Obstacle(OTHER_DOCUMENTS)
        else:
            differing[name] = error.difference.is_about_settings
    with_samples = {name: run for name, run in runs.items() if name in tables or name in differing}
    words = settings_in_words(with_samples) or OTHER_PROMPTS
    reason = _other_settings(len(tables), len(with_samples), words)
    for name, is_settings in differing.items():
        untested[name] = Obstacle(reason, is_settings)
    if len(tables) == 1:
        (only,) = tables
        untested[only] = Obstacle(NO_OTHER_SAMPLES)
        if differing:
            reason = f"{OWN_SETTINGS} ({words})"
            obstacle = Obstacle(reason, is_settings=any(differing.values()))
            untested |= dict.fromkeys(with_samples, obstacle)
    return tables, untested


def _other_setups(runs: Mapping[str, Run], majority: Collection[str]) -> dict[str, Obstacle]:
    """Return why runs are not among those with the most common setup."""
    majority_run = next(run for name, run in runs.items() if name in majority)
    comparable = {name: run for name, run in runs.items() if run.is_whole == majority_run.is_whole}
    words = settings_in_words(comparable, with_documents=True)
    obstacles = {}
    other_settings = _other_settings(len(majority), len(comparable), words)
    for name, run in runs.items():
        if name in majority:
            continue
        if name not in comparable:
            reason = "whole runs among trials" if run.is_whole else "trials"
            obstacles[name] = Obstacle(reason)
            continue
        has_samples = samples_file(run).is_file() and samples_file(majority_run).is_file()
        is_settings = has_samples and is_only_about_settings(majority_run, run)
        obstacles[name] = Obstacle(other_settings, is_settings)
    return obstacles


def _other_settings(same_setup: int, total: int, words: str) -> str:
    """Return the reason that a model's settings differ from those of the models that are compared.

    Args:
        same_setup: The number of models with the settings that are compared.
        total: The number of models.
        words: Which settings differ, and from whose.
    """
    is_majority = 2 * same_setup > total
    compared = "most" if is_majority else f"the {same_setup} models that are compared"
    return f"{OTHER_SETTINGS.format(compared=compared)} ({words})"


def representatives(models: Sequence[Model]) -> dict[str, str]:
    """Return by benchmark the task that stands for it.

    It is the one that most models have; of several, the first that the card names. A task that
    isn't ours stands for itself.
    """
    counts = count_models(models)
    cards_of: dict[str, Card | None] = {}
    for model in models:
        for task, run in model.runs.items():
            cards_of[task] = run.card
    tasks_of: dict[str, list[str]] = {name: [] for name in cards()}
    for task, card in cards_of.items():
        tasks_of.setdefault(card.name if card else task, []).append(task)

    def rank(task: str) -> tuple[bool, int, int]:
        card = cards_of[task]
        named = card.representative if card else ()
        if task not in named:
            return False, counts[task], 0
        return True, counts[task], -named.index(task)

    return {name: max(tasks, key=rank) for name, tasks in tasks_of.items() if tasks}
