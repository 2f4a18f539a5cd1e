"""How many items show a difference of two models, from a pilot run or from stated rates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lm_eval_ext.cards import Card, card_of, cards
from lm_eval_ext.compare.comparison import Settings, compare
from lm_eval_ext.errors import DataError, OptionError, first_problem
from lm_eval_ext.results.ask import figures, question_of
from lm_eval_ext.results.models import Model, read_joined
from lm_eval_ext.stats.measures import DOCUMENT
from lm_eval_ext.stats.power import clusters_needed, detectable, stated_variance

SAME = 1e-9
"""Differences below this are rounding."""


class Asked(BaseModel):
    """What is to be found out.

    Attributes:
        task: Its name.
        difference: Between two models, in the metric's unit.
        metric: Its name; "" for the one that stands for the task.
        power: How probable it shall be that the difference is found.
        alpha: The test's level.
        models: How many are compared, each with each: the level of a pair is divided by the
            number of pairs, which is what Holm's method asks of the first.
        rate: The mean of two models' shares of right answers, where there is no pilot.
        icc: Intra-cluster correlation; with ``rate``.
        per_cluster: Documents per cluster; with ``rate``.
        correlation: Between two models' verdicts on a document, where a pilot does not show it.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    task: str
    difference: float = Field(gt=0)
    metric: str = ""
    power: float = Field(0.8, ge=0.5, lt=1)
    alpha: float = Field(0.05, gt=0, lt=0.5)
    models: int = Field(2, ge=2)
    rate: float | None = None
    icc: float | None = Field(None, ge=0, le=1)
    per_cluster: float = Field(1.0, ge=1)
    correlation: float = Field(0.0, ge=0, lt=1)


@dataclass(frozen=True)
class Spread:
    """How cluster means of the difference of two models vary.

    Attributes:
        metric: Its name; "" where a rate was stated.
        variance: Of a cluster's mean difference.
        per_cluster: Documents.
        source: Where it comes from.
        unit: What a cluster is.
        clusters: In the pilot, if there is one.
    """

    metric: str
    variance: float
    per_cluster: float
    source: str
    unit: str
    clusters: int | None = None


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
        pilot_clusters: In the pilot, if there is one.
        pilot_shows: The least difference that the pilot's clusters show.
    """

    metric: str
    unit: str
    clusters: int | None
    documents: int | None
    spread: float
    source: str
    pilot_clusters: int | None
    pilot_shows: float | None


def needed(paths: Sequence[Path], **options: Any) -> Answer:
    """Answers from the results of a pilot, or without any from a stated rate.

    Args:
        paths: Of the pilot's results.
        options: Those of :class:`Asked`.

    Raises:
        OptionError: A value is not legal, or something is missing.
        DataError: Results cannot be read or used.
    """
    try:
        asked = Asked(**options)
    except ValidationError as error:
        raise OptionError(f"--{first_problem(error).replace('_', '-')}") from None
    if (asked.rate is None) != (asked.icc is None):
        raise OptionError("--rate and --icc belong together; for independent documents use --icc 0")
    if bool(paths) == (asked.rate is not None) or (paths and asked.per_cluster != 1):
        raise OptionError("give results of a pilot run; or --rate, --icc and --per-cluster")
    found = _pilot(asked, read_joined(paths)) if paths else _stated(asked)
    if not found.variance > SAME**2:
        raise DataError(
            f"{asked.task}: nothing varies, so there is no spread; use a larger pilot, or --rate "
            "and --icc"
        )
    level = {"alpha": asked.alpha / math.comb(asked.models, 2), "power": asked.power}
    clusters = clusters_needed(asked.difference, found.variance, **level)
    return Answer(
        found.metric, found.unit, clusters,
        clusters and math.ceil(clusters * found.per_cluster),
        math.sqrt(found.variance), found.source, found.clusters,
        detectable(found.clusters, found.variance, **level) if found.clusters else None,
    )  # fmt: skip


def _unit(card: Card | None) -> str:
    return card.cluster.unit if card else DOCUMENT


def _stated(asked: Asked) -> Spread:
    unit = _unit(card_of(asked.task))
    rate, icc = asked.rate or 0.0, asked.icc or 0.0
    known = [task for card in cards().values() for task in card.tasks]
    if similar := asked.task not in known and get_close_matches(asked.task, known):
        raise OptionError(f"no task {asked.task!r} of ours; similar are {', '.join(similar)}")
    low, high = rate - asked.difference / 2, rate + asked.difference / 2
    if not 0 <= low < high <= 1:
        raise OptionError(
            f"--rate {rate:g} is the mean of two rates that differ by {asked.difference:g}; "
            f"{low:g} and {high:g} are not both from 0 to 1"
        )
    source = (
        f"stated: rates {low:g} and {high:g}, intra-cluster correlation {icc:g}, "
        f"{asked.per_cluster:g} documents per {unit}, correlation of the models "
        f"{asked.correlation:g}"
    )
    variance = stated_variance((low, high), icc, asked.per_cluster, asked.correlation)
    return Spread("", variance, asked.per_cluster, source, unit)


def _pilot(asked: Asked, models: Sequence[Model]) -> Spread:
    """Of models on the same documents.

    Of two or more the spread is that of their paired differences, the mean over all pairs; of one
    it is its own, as if another one's were like it.
    """
    having = [model for model in models if asked.task in model.runs]
    if not having:
        there = ", ".join(dict.fromkeys(task for model in models for task in model.runs))
        raise OptionError(f"no results of {asked.task}; there are {there}")
    run = having[0].runs[asked.task]
    metric = asked.metric or run.headline(asked.task)
    question = question_of(run, asked.task, metric)
    low, high = question.measure.limits
    if low is not None and high is not None and asked.difference >= high - low:
        raise OptionError(
            f"--difference {asked.difference:g} is not legal; "
            f"{metric} goes from {low:g} to {high:g}"
        )
    if len(having) == 1:
        ((_, one),) = figures(run, asked.task, question)
        documents = one.documents or run.documents(asked.task)[0]
        clusters = one.clusters or documents
        errors = [one.stderr]
        factor = 2 * (1 - asked.correlation)
        source = (
            f"one model, {having[0].label}; another one is taken to be like it, with a "
            f"correlation of {asked.correlation:g}"
        )
    else:
        if asked.correlation:
            raise OptionError("--correlation is for a pilot of one model; several show it")
        report = compare(having, [asked.task], Settings(metrics=(metric,)))
        if report.refused:
            raise report.refused[0]
        documents, clusters = (report.figures[0][name] for name in ("documents", "clusters"))
        errors = [row["stderr"] for row in report.pairs]
        factor = 1
        names = ", ".join(model.label for model in having)
        source = f"the differences of {len(having)} models, {names}"
    known = [error**2 for error in errors if error is not None]
    if not known:
        raise DataError(
            f"{asked.task}, {metric}: no standard error, since there are too few clusters"
        )
    variance = factor * math.fsum(known) / len(known) * clusters
    unit = _unit(run.card(asked.task))
    return Spread(metric, variance, documents / clusters, source, unit, clusters)
