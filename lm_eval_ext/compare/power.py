"""How many items show a difference of two models, from a pilot run or from stated rates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.compare.comparison import compare
from lm_eval_ext.errors import DataError, OptionError, first_problem, nearest
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.models import Model, choose_tasks, having, read_models
from lm_eval_ext.results.query import ScoreQuery, question_of, reference_run
from lm_eval_ext.stats.intervals import ALPHA
from lm_eval_ext.stats.power import clusters_needed, stated_variance

_log = get_logger(__name__)

SAME = 1e-9
"""Differences below this are rounding."""


class Wanted(BaseModel):
    """What is to be found out.

    Attributes:
        task: Its name.
        difference: Between two models, in the metric's unit.
        metric: Its name; "" for the one that stands for the task.
        power: How probable it shall be that the difference is found.
        models: How many are compared, each with each: the level of a pair is divided by the
            number of pairs, which is what Holm's method asks of the first.
        rate: The mean of two models' shares of right answers, where there is no pilot.
        icc: Intra-cluster correlation; with ``rate``.
        per_cluster: Documents per cluster; with ``rate``.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    task: str
    difference: float = Field(gt=0)
    metric: str = ""
    power: float = Field(0.8, ge=0.5, lt=1)
    models: int = Field(2, ge=2)
    rate: float | None = None
    icc: float = Field(0.0, ge=0, le=1)
    per_cluster: float = Field(1.0, ge=1)


@dataclass(frozen=True)
class Answer:
    """How many clusters are needed, and what that rests on.

    Attributes:
        metric: Its name; "" where a rate was stated.
        unit: What a cluster is.
        clusters: That are needed; None for more than a billion.
        documents: In so many clusters.
        spread: Standard deviation of a cluster's mean difference.
        source: Where it comes from.
    """

    metric: str
    unit: str
    clusters: int | None
    documents: int | None
    spread: float
    source: str


def needed(paths: Sequence[Path], **options: Any) -> Answer:
    """Answers from the results of a pilot, or without any from a stated rate.

    Args:
        paths: Of the pilot's results.
        options: Those of :class:`Wanted`.

    Raises:
        OptionError: A value is not legal, or something is missing.
        DataError: Results cannot be read or used.
    """
    try:
        wanted = Wanted(**options)
    except ValidationError as error:
        raise OptionError(f"--{first_problem(error).replace('_', '-')}") from None
    stated = wanted.model_fields_set & {"rate", "icc", "per_cluster"}
    if bool(paths) == (wanted.rate is not None) or (paths and stated):
        raise OptionError("give results of a pilot run; or --rate, with --icc and --per-cluster")
    metric, unit, variance, per_cluster, source = (
        _pilot(wanted, read_models(paths)) if paths else _stated(wanted)
    )
    if not variance > SAME**2:
        raise DataError(
            f"{wanted.task}: nothing varies, so there is no spread; use a larger pilot, or --rate"
        )
    level = ALPHA / math.comb(wanted.models, 2)
    clusters = clusters_needed(wanted.difference, variance, alpha=level, power=wanted.power)
    documents = clusters and math.ceil(clusters * per_cluster)
    return Answer(metric, unit, clusters, documents, math.sqrt(variance), source)


_Spread = tuple[str, str, float, float, str]
"""The metric, what a cluster is, the variance of a cluster's mean difference, documents per
cluster, the source."""


def _stated(wanted: Wanted) -> _Spread:
    card, rate = card_of(wanted.task), wanted.rate or 0.0
    unit = card.cluster.unit if card else "cluster"
    ours = (task for one in cards().values() for task in one.tasks)
    if card is None and (hint := nearest(wanted.task, ours, cutoff=0.8)):
        raise OptionError(f"no task {wanted.task}{hint}")
    low, high = rate - wanted.difference / 2, rate + wanted.difference / 2
    if not 0 <= low < high <= 1:
        raise OptionError(
            f"--rate {rate:g} is the mean of two rates that differ by {wanted.difference:g}; "
            f"{low:g} and {high:g} are not both from 0 to 1"
        )
    source = (
        f"stated: rates {low:g} and {high:g}, intra-cluster correlation {wanted.icc:g}, "
        f"documents per {unit} {wanted.per_cluster:g}"
    )
    variance = stated_variance((low, high), wanted.icc, wanted.per_cluster)
    return "", unit, variance, wanted.per_cluster, source


def _pilot(wanted: Wanted, models: Sequence[Model]) -> _Spread:
    """Of models on the same documents: the mean over all pairs."""
    task, *others = choose_tasks(models, [wanted.task])
    if others:
        raise OptionError(f"{wanted.task} is {', '.join([task, *others])}; name one of them")
    runs = having(models, task)
    run = reference_run(runs)
    metric = wanted.metric or run.headline
    question = question_of(run, metric)
    low, high = question.measure.limits
    if low is not None and high is not None and wanted.difference >= high - low:
        raise OptionError(
            f"--difference {wanted.difference:g} is not legal; "
            f"{metric} goes from {low:g} to {high:g}"
        )
    report = compare(models, [task], ScoreQuery((metric,)))
    for problem in report.refused:
        if not report.tables:
            raise DataError(problem)
        _log.warning("left out: %s", problem)
    (table,) = report.tables
    names = [name for name in runs if name in table.figures]
    source = f"the differences of {len(names)} models, {', '.join(names)}"
    known = [pair.stderr**2 for pair in table.pairs if pair.stderr is not None]
    if not known:
        raise DataError(f"{task}, {metric}: no standard error; {table.note}")
    variance = math.fsum(known) / len(known) * table.clusters
    return metric, table.cluster, variance, table.documents / table.clusters, source
