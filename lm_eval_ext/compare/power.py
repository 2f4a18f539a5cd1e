"""How many items would tell two models apart, from a pilot run or from stated rates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.compare.comparison import Settings, compare
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.ask import figures, question_of
from lm_eval_ext.results.models import Model, read_joined
from lm_eval_ext.stats.measures import DOCUMENT
from lm_eval_ext.stats.power import clusters_needed, detectable, stated_variance

SAME = 1e-9
"""Differences below this are rounding."""


@dataclass(frozen=True)
class Asked:
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

    task: str
    difference: float
    metric: str = ""
    power: float = 0.8
    alpha: float = 0.05
    models: int = 2
    rate: float | None = None
    icc: float | None = None
    per_cluster: float = 1.0
    correlation: float = 0.0

    @property
    def level(self) -> float:
        """Of the test of one pair."""
        return self.alpha / math.comb(self.models, 2)


@dataclass(frozen=True)
class Answer:
    """How many clusters are needed, and what that rests on.

    Attributes:
        task: As asked.
        metric: Its name; "" where a rate was stated.
        unit: What a cluster is.
        difference: As asked.
        clusters: That are needed; None for more than a billion.
        documents: In so many clusters.
        spread: Standard deviation of a cluster's mean difference.
        source: Where it comes from.
        pilot_clusters: In the pilot, if there is one.
        pilot_shows: The least difference that the pilot's clusters show.
    """

    task: str
    metric: str
    unit: str
    difference: float
    clusters: int | None
    documents: int | None
    spread: float
    source: str
    pilot_clusters: int | None = None
    pilot_shows: float | None = None


@dataclass(frozen=True)
class _Spread:
    metric: str
    variance: float
    clusters: int
    documents: int
    source: str


def needed(asked: Asked, paths: Sequence[Path]) -> Answer:
    """Answers from the results of a pilot, or without any from a stated rate.

    Of two models or more the spread is that of their paired differences, the mean over all pairs;
    of one model it is its own, as if another one's were like it.

    Raises:
        OptionError: A value is not legal, or something is missing.
        DataError: Results cannot be read or used.
    """
    _check(asked)
    card = card_of(asked.task)
    unit = card.cluster.unit if card else DOCUMENT
    if asked.rate is not None:
        if paths or asked.metric:
            raise OptionError("--rate is for no pilot: leave out --metric and the results, or it")
        return _stated(asked, asked.rate, unit)
    if not paths:
        raise OptionError("give results of a pilot run, or --rate and --icc")
    if asked.per_cluster != 1:
        raise OptionError("--per-cluster goes with --rate; a pilot shows it")
    found = _pilot(asked, read_joined(paths))
    level = {"alpha": asked.level, "power": asked.power}
    clusters = clusters_needed(asked.difference, found.variance, **level)
    return Answer(
        asked.task,
        found.metric,
        unit,
        asked.difference,
        clusters,
        clusters and math.ceil(clusters * found.documents / found.clusters),
        math.sqrt(found.variance),
        found.source,
        found.clusters,
        detectable(found.clusters, found.variance, **level),
    )


def _check(asked: Asked) -> None:
    for option, value, legal in (
        ("--difference", asked.difference, asked.difference > 0),
        ("--power", asked.power, asked.level < asked.power < 1 if asked.models > 1 else True),
        ("--alpha", asked.alpha, 0 < asked.alpha < 1),
        ("--models", asked.models, asked.models > 1),
        ("--icc", asked.icc, asked.icc is None or 0 <= asked.icc <= 1),
        ("--per-cluster", asked.per_cluster, asked.per_cluster >= 1),
        ("--correlation", asked.correlation, 0 <= asked.correlation < 1),
    ):
        if not legal or not math.isfinite(value or 0):
            raise OptionError(f"{option} {value:g} is not legal; use {_LEGAL[option]}")
    if (asked.rate is None) != (asked.icc is None):
        raise OptionError("--rate and --icc belong together; for independent documents use --icc 0")


_LEGAL = {
    "--difference": "a number above 0, in the metric's unit",
    "--power": "a probability between the level and 1, such as 0.8",
    "--alpha": "a probability between 0 and 1, such as 0.05",
    "--models": "a whole number from 2 up",
    "--icc": "a number from 0 to 1",
    "--per-cluster": "a number from 1 up",
    "--correlation": "a number from 0 up and below 1",
}


def _stated(asked: Asked, rate: float, unit: str) -> Answer:
    known = [task for card in cards().values() for task in card.tasks]
    if similar := asked.task not in known and get_close_matches(asked.task, known):
        raise OptionError(f"no task {asked.task!r} of ours; similar are {', '.join(similar)}")
    rates = rate - asked.difference / 2, rate + asked.difference / 2
    if not 0 <= rates[0] < rates[1] <= 1:
        raise OptionError(
            f"--rate {rate:g} is the mean of two rates that differ by {asked.difference:g}; "
            f"{rates[0]:g} and {rates[1]:g} are not both from 0 to 1"
        )
    icc = asked.icc or 0.0
    variance = stated_variance(rates, icc, asked.per_cluster, asked.correlation)
    if not variance:
        raise OptionError("nothing varies under these rates; state others")
    clusters = clusters_needed(asked.difference, variance, alpha=asked.level, power=asked.power)
    source = (
        f"stated: rates {rates[0]:g} and {rates[1]:g}, intra-cluster correlation {icc:g}, "
        f"{asked.per_cluster:g} documents per {unit}, correlation of the models "
        f"{asked.correlation:g}"
    )
    documents = clusters and math.ceil(clusters * asked.per_cluster)
    spread = math.sqrt(variance)
    return Answer(asked.task, "", unit, asked.difference, clusters, documents, spread, source)


def _pilot(asked: Asked, models: Sequence[Model]) -> _Spread:
    having = [model for model in models if asked.task in model.runs]
    if not having:
        there = ", ".join(dict.fromkeys(task for model in models for task in model.runs))
        raise OptionError(f"no results of {asked.task}; there are {there}")
    run = having[0].runs[asked.task]
    metric = asked.metric or run.headline(asked.task)
    low, high = question_of(run, asked.task, metric).measure.limits
    if low is not None and high is not None and asked.difference >= high - low:
        raise OptionError(
            f"--difference {asked.difference:g} is not legal; "
            f"{metric} goes from {low:g} to {high:g}"
        )
    found = _paired(asked, having, metric) if len(having) > 1 else _single(asked, having[0], metric)
    if not found.variance > SAME**2:
        raise DataError(
            f"{asked.task}, {metric}: nothing varies in the pilot, so it shows no spread; use "
            "a larger one, or --rate and --icc"
        )
    return found


def _paired(asked: Asked, models: Sequence[Model], metric: str) -> _Spread:
    if asked.correlation:
        raise OptionError("--correlation is for a pilot of one model; several show it")
    report = compare(models, [asked.task], Settings(metrics=(metric,)))
    if report.refused:
        raise DataError(report.refused[0].reason)
    (table,) = report.tables
    errors = [pair.difference.stderr for pair in table.pairs]
    known = [error for error in errors if error is not None]
    if not known:
        raise DataError(f"{asked.task}, {metric}: {table.note or 'too few clusters'}")
    documents, clusters = table.counts
    variance = math.fsum(error**2 for error in known) / len(known) * clusters
    names = ", ".join(model.label for model in models)
    source = f"the differences of {len(models)} models, {names}"
    return _Spread(metric, variance, clusters, documents, source)


def _single(asked: Asked, model: Model, metric: str) -> _Spread:
    run = model.runs[asked.task]
    ((_, found),) = figures(run, asked.task, question_of(run, asked.task, metric))
    if found.stderr is None:
        raise DataError(f"{asked.task}, {metric}: {model.label} has no standard error of it")
    documents = found.documents or run.documents(asked.task)[0]
    clusters = found.clusters or documents
    variance = 2 * found.stderr**2 * clusters * (1 - asked.correlation)
    source = (
        f"one model, {model.label}; another one is taken to be like it, with a correlation of "
        f"{asked.correlation:g}"
    )
    return _Spread(metric, variance, clusters, documents, source)
