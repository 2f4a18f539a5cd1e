"""Power: how many items show a difference of two models, and what so many items show.

The spread comes from a pilot run, from stated rates, or from what was measured of real models.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from lm_eval_ext.cards import card_of, cards, our_tasks
from lm_eval_ext.compare.comparison import Table, compare
from lm_eval_ext.compare.power_query import (
    PilotTrial,
    PowerQuery,
    Spread,
    metric_without_pilot,
    typical_spread,
)
from lm_eval_ext.compare.stated_rates import is_rate, spread_from_rates
from lm_eval_ext.compare.task_size import clusters_of_task, size_by_card
from lm_eval_ext.errors import DataError, OptionError, first_problem, nearest
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.models import (
    Model,
    choose_tasks,
    count_models,
    read_models,
    runs_by_model,
)
from lm_eval_ext.results.query import ScoreQuery, question_of, reference_run
from lm_eval_ext.stats.intervals import ALPHA, LEAST_CLUSTERS
from lm_eval_ext.stats.measures import Measure
from lm_eval_ext.stats.power import clusters_needed, detectable_difference
from lm_eval_ext.stats.statistics import NONE
from lm_eval_ext.task_settings import task_settings
from lm_eval_ext.text import counted

_log = get_logger(__name__)

PILOT_DOCUMENTS = 96
"""Documents of a pilot that errors propose: a trial has them from as many clusters as possible."""

MIN_MODELS = 2
"""Models that a pilot needs."""

NEGLIGIBLE = 1e-9
"""Differences below this are rounding."""

RELIABLE_CLUSTERS = 16
"""Clusters of a pilot below which its spread is too uncertain to rely on (docs/statistics.md)."""

STATED_OPTIONS = frozenset({"rate", "icc", "per_cluster"})
"""Options of a question that rests on no results."""

SOURCES = "give results of a pilot run; or --rate, and --icc and --per-cluster if you know them"
"""What an estimate can rest on, for errors."""


@dataclass(frozen=True)
class PowerEstimate:
    """How many clusters are needed, what some show, and what that rests on.

    Attributes:
        metric: The metric's name; "" where a rate was stated for a task that is not ours.
        unit: The word for a cluster.
        clusters: The number that is needed for the difference; None if it is more than a billion,
            or no difference is asked about.
        documents: The number of documents in so many clusters that the metric counts.
        documents_to_run: The number of documents that a model answers for these; the same, unless
            the metric is about a part of the documents.
        spread: Standard deviation of a cluster's mean difference.
        source: Where the spread comes from.
        available: The clusters that the task has; None if that is not known.
        items: The clusters that ``shows`` is about: those that are asked about, or all of the task.
        shows: The smallest difference that they show.
        least_clusters: The number that is enough if the spread is the smallest that is likely;
            None where there is one spread. ``clusters`` is then that of the largest.
        least_spread: The smallest spread that is likely; None where there is one.
        icc: The intra-cluster correlation of the pilot, for ``--icc``; None if it has none.
        items_key: The metadata key that says how many clusters the task draws; "" if they are
            fixed.
        least_documents: Where the pilot is a trial whose clusters cannot show the difference: the
            number of documents below which those of the task cannot. More may be needed. None
            otherwise.
        total_documents: The number of documents that the task has; with ``least_documents``.
        least_cluster_documents: The number of documents to run in ``least_clusters``.
        task_documents: The number of documents that the task has by its card; None if it is not
            known.
        counted_documents: The number of these that the metric counts.
        is_trial: Whether the pilot is a trial of a task whose clusters have more documents each.
    """

    metric: str
    unit: str
    clusters: int | None
    documents: int | None
    spread: float
    source: str
    available: int | None
    items: int | None
    shows: float | None
    least_clusters: int | None = None
    least_spread: float | None = None
    icc: float | None = None
    items_key: str = ""
    least_documents: int | None = None
    total_documents: int | None = None
    documents_to_run: int | None = None
    least_cluster_documents: int | None = None
    task_documents: int | None = None
    counted_documents: int | None = None
    is_trial: bool = False

    @property
    def is_enough(self) -> bool:
        """Whether the task has as many clusters as are needed, as far as that is known.

        A task that draws its clusters has any number of them.
        """
        if self.available is None or self.items_key:
            return True
        return self.clusters is not None and self.clusters <= self.available

    @property
    def may_be_enough(self) -> bool:
        """Whether the clusters are enough if the spread is the smallest that is likely."""
        if self.is_enough or self.least_clusters is None or self.available is None:
            return self.is_enough
        return self.least_clusters <= self.available

    @property
    def more_documents_may_help(self) -> bool:
        """Whether the task has as many documents as a trial says are needed at least."""
        if self.least_documents is None or self.total_documents is None:
            return False
        return self.least_documents <= self.total_documents


def needed(paths: Sequence[Path], **options: object) -> PowerEstimate:
    """Estimate from a pilot's results, a stated rate, or what was measured of real models.

    Args:
        paths: The pilot's results.
        options: The attributes of :class:`PowerQuery`.

    Raises:
        OptionError: A value is not legal, or something is missing.
        DataError: Results cannot be read or used, or are of too few clusters.
    """
    try:
        query = PowerQuery.model_validate(options)
    except ValidationError as error:
        raise OptionError(f"--{first_problem(error).replace('_', '-')}") from None
    spread = _spread(query, paths)
    if not spread.variance > NEGLIGIBLE**2:
        raise DataError(
            f"{query.task}: nothing varies, so there is no spread; use a larger pilot, or --rate"
        )
    level = ALPHA / math.comb(query.models, 2)
    clusters = _clusters_needed(query, spread.variance, level)
    least_clusters = _clusters_needed(query, spread.least_variance, level)
    to_run_per_cluster = spread.per_cluster / spread.share
    shows = None
    items = query.items or spread.available
    if query.difference is None:
        _check_items(query, items, spread.unit, is_pilot=bool(paths))
    if items is not None and items >= LEAST_CLUSTERS:
        shows = detectable_difference(items, spread.variance, alpha=level, power=query.power)
    least_documents = _least_documents(query, spread, level, clusters)
    size = size_by_card(query.task, spread.metric)
    return PowerEstimate(
        metric=spread.metric,
        unit=spread.unit,
        clusters=clusters,
        documents=_documents_in(clusters, spread.per_cluster),
        spread=math.sqrt(spread.variance),
        source=spread.source,
        available=spread.available,
        items=items,
        shows=shows,
        least_clusters=least_clusters,
        least_spread=None if spread.least_variance is None else math.sqrt(spread.least_variance),
        icc=spread.icc,
        items_key=items_key(query.task),
        least_documents=least_documents,
        total_documents=spread.trial.total if least_documents and spread.trial else None,
        documents_to_run=_documents_in(clusters, to_run_per_cluster),
        least_cluster_documents=_documents_in(least_clusters, to_run_per_cluster),
        task_documents=size.total,
        counted_documents=size.documents,
        is_trial=spread.trial is not None,
    )


def _check_items(query: PowerQuery, items: int | None, unit: str, *, is_pilot: bool) -> None:
    """Raise OptionError if a task's items are too few to show a difference, or not known."""
    if items is None:
        cause = " (a trial does not show it)" if is_pilot else ""
        raise OptionError(
            f"the number of items of {query.task} is not known{cause}; give --items for what they "
            "show, or --difference for how many are needed"
        )
    if items < LEAST_CLUSTERS:
        raise OptionError(
            f"{query.task} has {counted(items, unit)}, fewer than {LEAST_CLUSTERS}, which "
            "show no difference; give --items for what more show"
        )


def _clusters_needed(query: PowerQuery, variance: float | None, level: float) -> int | None:
    """Return how many clusters show the difference; None without a difference or a variance."""
    if query.difference is None or variance is None:
        return None
    return clusters_needed(query.difference, variance, alpha=level, power=query.power)


def _documents_in(clusters: int | None, per_cluster: float) -> int | None:
    """Return the number of documents in some clusters; None without a number of clusters."""
    if clusters is None:
        return None
    return math.ceil(clusters * per_cluster - NEGLIGIBLE)


def _least_documents(
    query: PowerQuery, spread: Spread, level: float, clusters: int | None
) -> int | None:
    """Return how many documents a task needs at least, where its clusters are too few in a trial.

    More documents of each cluster make its mean difference vary less: at best, if they do not
    depend on each other, its variance falls as their number rises. So this is a lower bound.
    """
    if query.difference is None or spread.trial is None or spread.available is None:
        return None
    is_enough = clusters is not None and clusters <= spread.available
    if is_enough or items_key(query.task) or spread.available < LEAST_CLUSTERS:
        return None
    shows = detectable_difference(spread.available, spread.variance, alpha=level, power=query.power)
    return math.ceil(spread.trial.documents * (shows / query.difference) ** 2)


def items_key(task: str) -> str:
    """Return the metadata key that says how many clusters a task draws; "" if they are fixed."""
    card = card_of(task)
    return card.tasks[task].items_key if card else ""


def _spread(query: PowerQuery, paths: Sequence[Path]) -> Spread:
    """Return the spread from what the user gives: a pilot, a rate, or nothing."""
    stated = query.model_fields_set & STATED_OPTIONS
    if (paths and stated) or (stated and query.rate is None):
        raise OptionError(SOURCES)
    if query.pilot and not paths:
        raise OptionError(f"--pilot {query.pilot}: give the results of the pilot, too, as PATH")
    if paths:
        return _from_pilot(query, read_models(paths))
    _check_name(query.task)
    if query.rate is not None:
        return spread_from_rates(query)
    return _from_card(query)


def _check_name(task: str) -> None:
    """Check that a name is no group of ours, and no misspelt name of a task that ships."""
    for card in cards().values():
        if task in card.groups:
            raise OptionError(f"{task} is {', '.join(card.groups[task])}; name one of them")
    if card_of(task) is None:
        hint = nearest(task, our_tasks(), cutoff=0.8)
        if hint:
            raise OptionError(f"no task {task}{hint}")


def _from_card(query: PowerQuery) -> Spread:
    """Return the spread that was measured of real models.

    Raises:
        OptionError: None was measured.
    """
    card = card_of(query.task)
    metric = metric_without_pilot(query)
    typical = typical_spread(query, metric)
    if card is None or typical is None:
        subject = ", ".join(name for name in (query.task, metric) if name)
        raise OptionError(
            f"{subject}: {SOURCES}. For a pilot, evaluate two models: lm_eval --tasks "
            f"{query.task} --limit {PILOT_DOCUMENTS} --log_samples --output_path results/NAME ...; "
            f"then give its results: lm-eval-ext power {query.task} results ..."
        )
    _check_difference(query, metric, card.question_of(metric).measure)
    source = (
        f"measured: {typical.pairs} pairs of published models; a pilot of your own models "
        "says more (PATH)"
    )
    return Spread(
        metric=metric,
        unit=card.cluster.unit,
        variance=typical.largest**2,
        per_cluster=typical.documents,
        source=source,
        available=size_by_card(query.task, metric).clusters,
        least_variance=typical.smallest**2,
    )


def _pilot_task(query: PowerQuery, models: Sequence[Model]) -> str:
    """Return the task whose results are the pilot.

    Only a task that draws its clusters takes a pilot of another one: it has any number of them, so
    nothing rests on how many the other one has.

    Raises:
        OptionError: No task, or more than one, can be the pilot.
    """
    if query.pilot and query.pilot != query.task:
        problem = _pilot_problem(query, query.pilot)
        if problem:
            raise OptionError(f"--pilot {query.pilot}: {problem}")
    counts = count_models(models)
    name = query.pilot or query.task
    if not query.pilot and counts[name] < MIN_MODELS:
        candidates = []
        for task, count in counts.items():
            if count >= MIN_MODELS and not _pilot_problem(query, task):
                candidates.append(task)
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            options = " or ".join(f"--pilot {task}" for task in candidates)
            raise OptionError(f"{name} is not in the results of two models; give {options}")
    try:
        tasks = choose_tasks(models, [name])
    except OptionError as error:
        _check_name(name)
        advice = ". A pilot needs two models on one task"
        card = card_of(query.task)
        more_items = card.tasks[query.task].more_items if card else ""
        if more_items:
            advice += f"; {more_items} takes that of another task with items of its kind"
        if typical_spread(query, metric_without_pilot(query)) is not None:
            advice += "; without PATH, power takes the spread of published models"
        raise OptionError(f"{error}{advice}") from None
    if len(tasks) > 1:
        raise OptionError(f"{name} is {', '.join(tasks)}; name one of them")
    return tasks[0]


def _pilot_problem(query: PowerQuery, pilot: str) -> str:
    """Return why results of another task cannot be the pilot; "" if they can."""
    card = card_of(query.task)
    pilot_card = card_of(pilot)
    if card is None or not card.tasks[query.task].items_key:
        return (
            f"{query.task} does not draw its items, so its pilot is a run of {query.task} itself "
            "(--limit makes it short)"
        )
    if pilot_card is None or pilot_card.name != card.name or pilot_card.cluster != card.cluster:
        return f"it has other clusters than the {card.cluster.unit}s of {query.task}"
    metric = metric_without_pilot(query)
    if metric not in task_settings(pilot).metrics:
        return f"it has no metric {metric}; --metric names another one"
    return ""


def _from_pilot(query: PowerQuery, models: Sequence[Model]) -> Spread:
    """Return the spread of models on the same documents: the mean over all pairs."""
    task = _pilot_task(query, models)
    is_same_task = task == query.task or not items_key(query.task)
    runs = runs_by_model(models, task)
    run = reference_run(runs)
    metric = query.metric or run.headline
    if not is_same_task:
        metric = metric_without_pilot(query)
    question = question_of(run, metric)
    _check_difference(query, metric, question.measure)
    models = _models_with_value(models, runs, metric)
    report = compare(models, [task], ScoreQuery((metric,)), across_settings=query.across_settings)
    if not report.tables:
        raise DataError(report.refused[0])
    for problem in report.refused:
        _log.warning("left out: %s", problem)
    table = report.tables[0]
    names = [name for name in runs if name in table.figures]
    source = f"the differences of {len(names)} models, {', '.join(names)}"
    if not is_same_task:
        source += f", on {task}: another task with {table.cluster}s of the same kind"
    _check_standard_error(query, models, run, table)
    variance = _mean_variance(table)
    if table.clusters < RELIABLE_CLUSTERS:
        pilot_size = counted(table.clusters, table.cluster)
        source += (
            f"; a pilot of {pilot_size} is small, and the number may be half or twice as large"
        )
    per_cluster = table.documents / table.clusters
    trial = None
    size = size_by_card(query.task, metric)
    available = size.clusters
    unevenness = 1.0
    if is_same_task:
        available = clusters_of_task(run, table)
        trial = _trial(run, table, available)
        unevenness = size.unevenness if run.is_whole else 1.0
    if trial is not None or available is None:
        scored, total = run.documents
        source += f"; a trial of {scored:,} of {total:,} documents"
    if available is None:
        source += f", which does not show how many {table.cluster}s the task has"
    return Spread(
        metric,
        table.cluster,
        variance,
        per_cluster,
        source,
        available,
        icc=_pilot_correlation(question.measure, table, variance, per_cluster, unevenness),
        trial=trial,
        share=min(1.0, table.documents / run.documents[0]),
    )


def _models_with_value(
    models: Sequence[Model], runs: Mapping[str, Run], metric: str
) -> Sequence[Model]:
    """Return the models that have a value, if two do: others would only shorten the pilot.

    Only documents that all models answered are compared.
    """
    without_value = []
    for label, run in runs.items():
        score = run.scores.get(metric)
        if score is not None and score.value is None:
            without_value.append(label)
    if len(runs) - len(without_value) < MIN_MODELS:
        return models
    for label in without_value:
        _log.warning("left out: %s, whose %s is %s", label, metric, NONE)
    return [model for model in models if model.label not in without_value]


def _check_difference(query: PowerQuery, metric: str, measure: Measure) -> None:
    """Raise OptionError if a difference is larger than the range of a metric's values."""
    low, high = measure.limits
    difference = query.difference or 0.0
    if low is None or high is None or difference < high - low:
        return
    in_points = difference / 100
    advice = ""
    if measure.unit in {"share", "points"} and in_points < high - low:
        advice = f"; {difference:g} points are {in_points:g}"
    raise OptionError(
        f"--difference {difference:g} is not legal; {metric} goes from {low:g} to {high:g}{advice}"
    )


def _check_standard_error(
    query: PowerQuery, models: Sequence[Model], run: Run, table: Table
) -> None:
    """Raise DataError if no difference of a pilot's models has a standard error.

    The error names another metric whose differences have one, if there is any.
    """
    if _has_standard_error(table):
        return
    problem = f"{table.task}, {table.metric}: no standard error; {table.note}"
    rates = [name for name in run.scores if is_rate(question_of(run, name).measure)]
    rate = run.card.headline_of(rates) if run.card else next(iter(rates), "")
    if rate and rate != table.metric:
        score_query = ScoreQuery((rate,))
        report = compare(models, [table.task], score_query, across_settings=query.across_settings)
        if any(_has_standard_error(rate_table) for rate_table in report.tables):
            problem += f"; a rate of documents can be planned: --metric {rate}"
    raise DataError(problem)


def _has_standard_error(table: Table) -> bool:
    return any(pair.stderr is not None for pair in table.pairs)


def _mean_variance(table: Table) -> float:
    """Return the variance of a cluster's difference: the mean over all pairs of a pilot's models.

    Raises:
        DataError: The pilot does not show it.
    """
    squared_errors = [pair.stderr**2 for pair in table.pairs if pair.stderr is not None]
    if table.clusters < LEAST_CLUSTERS:
        pilot_size = counted(table.clusters, table.cluster)
        raise DataError(
            f"{table.task}, {table.metric}: the pilot has {pilot_size}, fewer than "
            f"{LEAST_CLUSTERS}, which show no spread; take more documents, or state --rate"
        )
    return math.fsum(squared_errors) / len(squared_errors) * table.clusters


def _trial(run: Run, table: Table, available: int | None) -> PilotTrial | None:
    """Return a pilot as a trial of a task whose clusters all have more documents.

    Args:
        run: A pilot's results.
        table: The comparison of the pilot's models.
        available: The clusters that the task has; None if that is not known.
    """
    scored, total = run.documents
    if available is None or available == total or run.is_whole:
        return None
    return PilotTrial(scored * available / table.clusters, total)


def _pilot_correlation(
    measure: Measure, table: Table, variance: float, per_cluster: float, unevenness: float
) -> float | None:
    """Return the intra-cluster correlation with which a pilot's rates have its variance.

    It is None where no correlation from 0 to 1 does, as for scores that are not 0 or 1, and where
    every document is a cluster.
    """
    if measure.unit != "share" or measure.statistic != "mean" or per_cluster <= 1:
        return None
    independent = 0.0
    for estimate in table.figures.values():
        value = estimate.value or 0.0
        independent += 2 * value * (1 - value) / len(table.figures)
    if not independent:
        return None
    # The inverse of stats.power.stated_variance.
    within_clusters = 1 / per_cluster
    correlation = (variance / independent - within_clusters) / (unevenness - within_clusters)
    return correlation if 0 <= correlation <= 1 else None
