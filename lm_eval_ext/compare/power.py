"""Power: how many items show a difference of two models, and what so many items show.

The spread comes from a pilot run, from stated rates, or from what was measured of real models.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lm_eval_ext.cards import TypicalSpread, card_of, cards, our_tasks, task_settings
from lm_eval_ext.compare.comparison import Table, compare
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
from lm_eval_ext.stats.power import clusters_needed, detectable_difference, stated_variance
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

TYPICAL_CORRELATIONS = (0.0, 0.3)
"""Intra-cluster correlations between which most measured ones are (docs/statistics.md)."""

SOURCES = "give results of a pilot run; or --rate, with --icc and --per-cluster"
"""What an estimate can rest on, for errors."""


class PowerQuery(BaseModel):
    """A question about the size of a comparison.

    Attributes:
        task: The task's name.
        difference: The difference between two models, in the metric's unit; None to ask only what
            items show.
        items: A number of clusters; None for as many as the task has.
        metric: The metric's name; "" for the one that stands for the task.
        power: The probability with which the difference is to be found.
        models: How many are compared, each with each: the level is divided by the number of
            pairs, as Holm's method does for the smallest p-value.
        rate: The mean of two models' shares of right answers, where there is no pilot.
        icc: Intra-cluster correlation; with ``rate``. None for :data:`TYPICAL_CORRELATIONS`.
        per_cluster: Documents per cluster; with ``rate``.
        across_settings: Whether the pilot may have models with different prompts.
        pilot: The pilot's task; "" for the same task, or for the only one that can stand for it.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    task: str
    difference: float | None = Field(None, gt=0)
    items: int | None = Field(None, ge=LEAST_CLUSTERS)
    metric: str = ""
    power: float = Field(0.8, ge=0.5, lt=1)
    models: int = Field(2, ge=2)
    rate: float | None = None
    icc: float | None = Field(None, ge=0, le=1)
    per_cluster: float = Field(1.0, ge=1)
    across_settings: bool = False
    pilot: str = ""


@dataclass(frozen=True)
class Spread:
    """How differences vary between clusters.

    Attributes:
        metric: The metric's name; "" where a rate was stated.
        unit: The word for a cluster.
        variance: The variance of a cluster's mean difference.
        per_cluster: Documents per cluster.
        source: Where this comes from.
        available: The clusters that the task has; None if that is not known.
        least_variance: The smallest variance that is likely, where ``variance`` is the largest;
            None where there is one variance.
        icc: The intra-cluster correlation with which the pilot's rates have its variance; None
            without a pilot, or if no correlation from 0 to 1 does.
    """

    metric: str
    unit: str
    variance: float
    per_cluster: float
    source: str
    available: int | None
    least_variance: float | None = None
    icc: float | None = None


@dataclass(frozen=True)
class PowerEstimate:
    """How many clusters are needed, what some show, and what that rests on.

    Attributes:
        metric: The metric's name; "" where a rate was stated.
        unit: The word for a cluster.
        clusters: The number that is needed for the difference; None if it is more than a billion,
            or no difference is asked about.
        documents: The number of documents in so many clusters.
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

    @property
    def is_enough(self) -> bool:
        """Whether the task has as many clusters as are needed, as far as that is known.

        A task that draws its clusters has any number of them.
        """
        if self.available is None or self.items_key:
            return True
        return self.clusters is not None and self.clusters <= self.available


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
    clusters = least_clusters = documents = shows = None
    if query.difference is not None:
        clusters = clusters_needed(
            query.difference, spread.variance, alpha=level, power=query.power
        )
    if query.difference is not None and spread.least_variance is not None:
        least_clusters = clusters_needed(
            query.difference, spread.least_variance, alpha=level, power=query.power
        )
    if clusters is not None:
        documents = math.ceil(clusters * spread.per_cluster)
    items = query.items or spread.available
    if items is None and query.difference is None:
        cause = " (a trial does not show it)" if paths else ""
        raise OptionError(
            f"the number of items of {query.task} is not known{cause}; give --items for what they "
            "show, or --difference for how many are needed"
        )
    if items is not None and items < LEAST_CLUSTERS and query.difference is None:
        raise OptionError(
            f"{query.task} has {counted(items, spread.unit)}, fewer than {LEAST_CLUSTERS}, which "
            "show no difference; give --items for what more show"
        )
    if items is not None and items >= LEAST_CLUSTERS:
        shows = detectable_difference(items, spread.variance, alpha=level, power=query.power)
    return PowerEstimate(
        metric=spread.metric,
        unit=spread.unit,
        clusters=clusters,
        documents=documents,
        spread=math.sqrt(spread.variance),
        source=spread.source,
        available=spread.available,
        items=items,
        shows=shows,
        least_clusters=least_clusters,
        least_spread=None if spread.least_variance is None else math.sqrt(spread.least_variance),
        icc=spread.icc,
        items_key=items_key(query.task),
    )


def items_key(task: str) -> str:
    """Return the metadata key that says how many clusters a task draws; "" if they are fixed."""
    card = card_of(task)
    return card.tasks[task].items_key if card else ""


def _spread(query: PowerQuery, paths: Sequence[Path]) -> Spread:
    """Return the spread from what the user gives: a pilot, a rate, or nothing."""
    stated = query.model_fields_set & {"rate", "icc", "per_cluster"}
    if (paths and stated) or (stated and query.rate is None):
        raise OptionError(SOURCES)
    if query.pilot and not paths:
        raise OptionError(f"--pilot {query.pilot}: give the results of the pilot, too, as PATH")
    if paths:
        return _from_pilot(query, read_models(paths))
    _check_name(query.task)
    if query.rate is not None:
        return _from_rates(query)
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


def _metric_without_pilot(query: PowerQuery) -> str:
    """Return the metric that a question without results is about; "" if the task is not ours."""
    card = card_of(query.task)
    if query.metric or card is None:
        return query.metric
    return card.headline_of(task_settings(query.task).metrics)


def _typical_spread(query: PowerQuery) -> TypicalSpread | None:
    """Return what the card says about the differences of real models; None if it does not."""
    card = card_of(query.task)
    return card.typical_spreads.get(_metric_without_pilot(query)) if card else None


def _from_card(query: PowerQuery) -> Spread:
    """Return the spread that was measured of real models.

    Raises:
        OptionError: None was measured.
    """
    card = card_of(query.task)
    typical = _typical_spread(query)
    metric = _metric_without_pilot(query)
    if card is None or typical is None:
        subject = ", ".join(name for name in (query.task, metric) if name)
        raise OptionError(
            f"{subject}: {SOURCES}. For a pilot, evaluate two models: lm_eval --tasks "
            f"{query.task} --limit {PILOT_DOCUMENTS} --log_samples --output_path results/NAME ...; "
            f"then give its results: lm-eval-ext power {query.task} results ..."
        )
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
        available=_listed_clusters(query.task, typical.documents),
        least_variance=typical.smallest**2,
    )


def _listed_clusters(task: str, per_cluster: float) -> int | None:
    """Return how many clusters a task has by its card; None if the card has no size."""
    card = card_of(task)
    documents = card.tasks[task].documents if card else 0
    return round(documents / per_cluster) if documents else None


def _from_rates(query: PowerQuery) -> Spread:
    card = card_of(query.task)
    unit = card.cluster.unit if card else "cluster"
    rate, difference = query.rate or 0.0, query.difference or 0.0
    low, high = rate - difference / 2, rate + difference / 2
    if not 0 <= low <= high <= 1:
        raise OptionError(
            f"--rate {rate:g} is the mean of two rates that differ by {difference:g}; "
            f"{low:g} and {high:g} are not both from 0 to 1"
        )
    least_variance = None
    if query.icc is not None:
        correlation = f"{query.icc:g}"
        variance = stated_variance((low, high), query.icc, query.per_cluster)
    elif query.per_cluster == 1:
        correlation = "0"
        variance = stated_variance((low, high), 0.0, query.per_cluster)
    else:
        smallest, largest = TYPICAL_CORRELATIONS
        correlation = f"{smallest:g} to {largest:g} (as in most runs; --icc sets it)"
        least_variance = stated_variance((low, high), smallest, query.per_cluster)
        variance = stated_variance((low, high), largest, query.per_cluster)
    source = (
        f"stated: rates {low:g} and {high:g}, intra-cluster correlation {correlation}, "
        f"documents per {unit} {query.per_cluster:g}"
    )
    typical = _typical_spread(query)
    if typical is not None and variance > typical.largest**2:
        source += (
            f". Real models differ less: {typical.smallest:.3g} to {typical.largest:.3g} per "
            f"{unit}, since a document's score is a mean of several. Leave out --rate, and this "
            "spread is used"
        )
    available = _listed_clusters(query.task, query.per_cluster)
    return Spread(
        "", unit, variance, query.per_cluster, source, available, least_variance=least_variance
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
        if _typical_spread(query) is not None:
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
    metric = _metric_without_pilot(query)
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
        metric = _metric_without_pilot(query)
    question = question_of(run, metric)
    low, high = question.measure.limits
    difference = query.difference or 0.0
    if low is not None and high is not None and difference >= high - low:
        in_points = difference / 100
        advice = ""
        if question.measure.unit in {"share", "points"} and in_points < high - low:
            advice = f"; {difference:g} points are {in_points:g}"
        raise OptionError(
            f"--difference {difference:g} is not legal; {metric} goes from {low:g} to {high:g}"
            f"{advice}"
        )
    report = compare(models, [task], ScoreQuery((metric,)), across_settings=query.across_settings)
    if not report.tables:
        raise DataError(report.refused[0])
    for problem in report.refused:
        _log.warning("left out: %s", problem)
    table = report.tables[0]
    size = counted(table.clusters, table.cluster)
    names = [name for name in runs if name in table.figures]
    source = f"the differences of {len(names)} models, {', '.join(names)}"
    if not is_same_task:
        source += f", on {task}: another task with {table.cluster}s of the same kind"
    squared_errors = [pair.stderr**2 for pair in table.pairs if pair.stderr is not None]
    if squared_errors and table.clusters < LEAST_CLUSTERS:
        raise DataError(
            f"{task}, {metric}: the pilot has {size}, fewer than {LEAST_CLUSTERS}, which show no "
            "spread; take more documents, or state --rate"
        )
    if not squared_errors:
        raise DataError(f"{task}, {metric}: no standard error; {table.note}")
    if table.clusters < RELIABLE_CLUSTERS:
        source += f"; a pilot of {size} is small, and the number may be half or twice as large"
    variance = math.fsum(squared_errors) / len(squared_errors) * table.clusters
    per_cluster = table.documents / table.clusters
    if is_same_task:
        available = _clusters_of_task(run, table)
    else:
        available = _listed_clusters(query.task, per_cluster)
    if available is None:
        scored, total = run.documents
        source += (
            f"; a trial of {scored:,} of {total:,} documents, which does not show how many "
            f"{table.cluster}s the task has"
        )
    return Spread(
        metric,
        table.cluster,
        variance,
        per_cluster,
        source,
        available,
        icc=_pilot_correlation(question.measure, table, variance, per_cluster),
    )


def _pilot_correlation(
    measure: Measure, table: Table, variance: float, per_cluster: float
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
    correlation = (variance * per_cluster / independent - 1) / (per_cluster - 1)
    return correlation if 0 <= correlation <= 1 else None


def _clusters_of_task(run: Run, table: Table) -> int | None:
    """Return how many clusters a task has; None if its results do not show that.

    A trial of our tasks takes its documents from as many clusters as possible, so the share of the
    documents says nothing about that of the clusters.
    """
    if run.is_whole:
        return table.clusters
    if run.card is not None:
        return None
    # Without a card, each document is a cluster.
    _, total = run.documents
    return total
