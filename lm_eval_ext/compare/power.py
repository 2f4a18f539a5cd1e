"""Power: how many items show a difference of two models, and what so many items show.

The spread comes from a pilot run, or from stated rates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lm_eval_ext.cards import card_of, our_tasks
from lm_eval_ext.compare.comparison import Table, compare
from lm_eval_ext.errors import DataError, OptionError, first_problem, nearest
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.models import Model, choose_tasks, read_models, runs_by_model
from lm_eval_ext.results.query import ScoreQuery, question_of, reference_run
from lm_eval_ext.stats.intervals import ALPHA, LEAST_CLUSTERS
from lm_eval_ext.stats.power import clusters_needed, detectable_difference, stated_variance
from lm_eval_ext.text import counted

_log = get_logger(__name__)

NEGLIGIBLE = 1e-9
"""Differences below this are rounding."""

RELIABLE_CLUSTERS = 16
"""Clusters of a pilot below which its spread is too uncertain to rely on (docs/statistics.md)."""


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
        icc: Intra-cluster correlation; with ``rate``.
        per_cluster: Documents per cluster; with ``rate``.
        across_settings: Whether the pilot may have models with different prompts.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    task: str
    difference: float | None = Field(None, gt=0)
    items: int | None = Field(None, ge=LEAST_CLUSTERS)
    metric: str = ""
    power: float = Field(0.8, ge=0.5, lt=1)
    models: int = Field(2, ge=2)
    rate: float | None = None
    icc: float = Field(0.0, ge=0, le=1)
    per_cluster: float = Field(1.0, ge=1)
    across_settings: bool = False


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
    """

    metric: str
    unit: str
    variance: float
    per_cluster: float
    source: str
    available: int | None


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

    @property
    def is_enough(self) -> bool:
        """Whether the task has as many clusters as are needed, as far as that is known."""
        if self.available is None:
            return True
        return self.clusters is not None and self.clusters <= self.available


def needed(paths: Sequence[Path], **options: object) -> PowerEstimate:
    """Estimate from the results of a pilot, or without any from a stated rate.

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
    stated = query.model_fields_set & {"rate", "icc", "per_cluster"}
    if bool(paths) == (query.rate is not None) or (paths and stated):
        raise OptionError("give results of a pilot run; or --rate, with --icc and --per-cluster")
    spread = _from_pilot(query, read_models(paths)) if paths else _from_rates(query)
    if not spread.variance > NEGLIGIBLE**2:
        raise DataError(
            f"{query.task}: nothing varies, so there is no spread; use a larger pilot, or --rate"
        )
    level = ALPHA / math.comb(query.models, 2)
    clusters = documents = shows = None
    if query.difference is not None:
        clusters = clusters_needed(
            query.difference, spread.variance, alpha=level, power=query.power
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
    )


def _from_rates(query: PowerQuery) -> Spread:
    card = card_of(query.task)
    if card is None:
        hint = nearest(query.task, our_tasks(), cutoff=0.8)
        if hint:
            raise OptionError(f"no task {query.task}{hint}")
    unit = card.cluster.unit if card else "cluster"
    rate, difference = query.rate or 0.0, query.difference or 0.0
    low, high = rate - difference / 2, rate + difference / 2
    if not 0 <= low <= high <= 1:
        raise OptionError(
            f"--rate {rate:g} is the mean of two rates that differ by {difference:g}; "
            f"{low:g} and {high:g} are not both from 0 to 1"
        )
    source = (
        f"stated: rates {low:g} and {high:g}, intra-cluster correlation {query.icc:g}, "
        f"documents per {unit} {query.per_cluster:g}"
    )
    variance = stated_variance((low, high), query.icc, query.per_cluster)
    documents = card.tasks[query.task].documents if card else 0
    available = round(documents / query.per_cluster) if documents else None
    return Spread("", unit, variance, query.per_cluster, source, available)


def _from_pilot(query: PowerQuery, models: Sequence[Model]) -> Spread:
    """Return the spread of models on the same documents: the mean over all pairs."""
    tasks = choose_tasks(models, [query.task])
    if len(tasks) > 1:
        raise OptionError(f"{query.task} is {', '.join(tasks)}; name one of them")
    task = tasks[0]
    runs = runs_by_model(models, task)
    run = reference_run(runs)
    metric = query.metric or run.headline
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
    available = _clusters_of_task(run, table)
    if available is None:
        scored, total = run.documents
        source += (
            f"; a trial of {scored:,} of {total:,} documents, which does not show how many "
            f"{table.cluster}s the task has"
        )
    per_cluster = table.documents / table.clusters
    return Spread(metric, table.cluster, variance, per_cluster, source, available)


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
