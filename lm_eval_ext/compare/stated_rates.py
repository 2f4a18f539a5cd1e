"""The spread of two models whose rates a user states, where nothing was run."""

from dataclasses import dataclass

from lm_eval_ext.cards import card_of
from lm_eval_ext.compare.power_command import power_command
from lm_eval_ext.compare.power_query import PowerQuery, Spread, typical_spread
from lm_eval_ext.compare.task_size import DOCUMENT_UNIT, TaskSize, size_by_card
from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.measures import Measure
from lm_eval_ext.stats.planning import TypicalCorrelation
from lm_eval_ext.stats.power import stated_variance
from lm_eval_ext.task_settings import task_settings
from lm_eval_ext.text import counted

TYPICAL_CORRELATIONS = (0.0, 0.3)
"""Intra-cluster correlations between which most measured ones are (docs/statistics.md)."""

_PERCENT = 100


def spread_from_rates(query: PowerQuery) -> Spread:
    """Return the spread of two models with stated rates.

    Raises:
        OptionError: The metric is no rate, or a number is not legal.
    """
    _check_rate(query.rate)
    metric = _rate_metric(query)
    size = size_by_card(query.task, metric)
    per_cluster = _documents_per_cluster(query, size)
    rates = _two_rates(query, metric)
    correlations = _correlations(query, metric, per_cluster)
    # A part of each cluster that a user chooses may be of one size.
    unevenness = size.unevenness if query.per_cluster is None else 1.0
    variances = [
        stated_variance(rates, correlation, per_cluster, unevenness)
        for correlation in (correlations.smallest, correlations.largest)
    ]
    least_variance, variance = min(variances), max(variances)
    source = (
        f"stated: rates {rates[0]:g} and {rates[1]:g}, intra-cluster correlation "
        f"{correlations.words}"
    )
    if size.unit != DOCUMENT_UNIT:
        source += f", documents per {size.unit} {_number(per_cluster)}"
        if query.per_cluster is None and size.per_cluster is not None:
            source += ", as many as the task has"
            if size.is_part:
                source += f" that {metric} counts"
    if unevenness > 1 and correlations.largest > 0 and size.clusters is not None:
        source += (
            f"; its {counted(size.clusters, size.unit)} are of unequal size, and count as "
            f"{_number(size.clusters / unevenness)} of one size"
        )
    typical = typical_spread(query, metric)
    if typical is not None and variance > typical.largest**2:
        source += (
            f". Real models differ less: {typical.smallest:.3g} to {typical.largest:.3g} per "
            f"{size.unit}, since a document's score is a mean of several. Leave out --rate, and "
            "this spread is used"
        )
    return Spread(
        metric=metric,
        unit=size.unit,
        variance=variance,
        per_cluster=per_cluster,
        source=source,
        available=size.clusters,
        least_variance=None if correlations.is_single else least_variance,
        share=size.share,
    )


@dataclass(frozen=True)
class _Correlations:
    """The intra-cluster correlations that an estimate takes, and whose they are."""

    smallest: float
    largest: float
    words: str

    @property
    def is_single(self) -> bool:
        return self.smallest == self.largest


def _correlations(query: PowerQuery, metric: str, per_cluster: float) -> _Correlations:
    """Return the correlations that a user states, or those of real models."""
    if query.icc is not None:
        return _Correlations(query.icc, query.icc, f"{query.icc:g}")
    if per_cluster == 1:
        return _Correlations(0.0, 0.0, "0")
    typical = _typical_correlation(query, metric)
    if typical is not None:
        words = f"{typical.smallest:g} to {typical.largest:g} ({typical.source}; --icc sets it)"
        return _Correlations(typical.smallest, typical.largest, words)
    smallest, largest = TYPICAL_CORRELATIONS
    words = f"{smallest:g} to {largest:g} (as of most real models on other tasks; --icc sets it)"
    return _Correlations(smallest, largest, words)


def _typical_correlation(query: PowerQuery, metric: str) -> TypicalCorrelation | None:
    """Return what the card says about the correlations of real models on a task."""
    card = card_of(query.task)
    return card.tasks[query.task].correlations.get(metric) if card else None


def _two_rates(query: PowerQuery, metric: str) -> tuple[float, float]:
    """Return the rates of the two models."""
    rate, difference = query.rate or 0.0, query.difference or 0.0
    low, high = rate - difference / 2, rate + difference / 2
    if 0 <= low <= high <= 1:
        return low, high
    subject = f"{metric} goes from 0 to 1. " if metric else ""
    advice = ""
    if 1 < difference < _PERCENT:
        advice = f"; {difference:g} points are {difference / _PERCENT:g}"
    raise OptionError(
        f"{subject}--rate {rate:g} is the mean of two rates that differ by {difference:g}; "
        f"{low:g} and {high:g} are not both from 0 to 1{advice}"
    )


def _documents_per_cluster(query: PowerQuery, size: TaskSize) -> float:
    """Return how many documents a cluster has: as a user states, or as many as the task has."""
    if query.per_cluster is None:
        return size.per_cluster or 1.0
    if size.clusters is None or size.documents is None or size.per_cluster is None:
        return query.per_cluster
    # Users may round the mean.
    if query.per_cluster >= size.per_cluster + 1:
        counts = " that the metric counts" if size.is_part else ""
        raise OptionError(
            f"--per-cluster {query.per_cluster:g} is not legal: {query.task} has "
            f"{_number(size.per_cluster)} documents per {size.unit}{counts} "
            f"({counted(size.documents, DOCUMENT_UNIT)}, "
            f"{counted(size.clusters, size.unit)}); leave it out for as many"
        )
    return query.per_cluster


def _number(per_cluster: float) -> str:
    """Return a mean number of documents with one digit: ``84.8``, ``1,000``."""
    return f"{per_cluster:,.1f}".removesuffix(".0")


def is_rate(measure: Measure) -> bool:
    """Return whether a measure is the mean of documents' values from 0 to 1."""
    return measure.unit == "share" and measure.statistic == "mean"


def _rate_metric(query: PowerQuery) -> str:
    """Return the metric that stated rates are about; "" if the task is not ours.

    Without ``metric`` it is the headline, or the first rate where the headline is none.

    Raises:
        OptionError: The task has no such metric, or it is no rate.
    """
    card = card_of(query.task)
    if card is None:
        return query.metric
    metrics = task_settings(query.task).metrics
    rates = [name for name in metrics if is_rate(card.question_of(name).measure)]
    default = card.headline_of(rates)
    if query.metric in rates or (not query.metric and default):
        return query.metric or default
    if query.metric in card.measures and is_rate(card.measures[query.metric]):
        return query.metric
    if not default:
        raise OptionError(
            f"{query.task} has no metric that is a rate of documents; give results of a pilot run"
        )
    listed = ", ".join(rates)
    if query.metric not in metrics and query.metric not in card.measures:
        raise OptionError(f"{query.task} has no metric {query.metric}; rates: {listed}")
    raise OptionError(
        f"{query.metric} is no rate of documents, so --rate says nothing about it; give results "
        f"of a pilot run, or ask about a rate ({listed}): {_command_for_rate(query, default)}"
    )


def _command_for_rate(query: PowerQuery, metric: str) -> str:
    """Return a command that asks the same question about a rate."""
    difference = _as_share(query.difference)
    changes = {"metric": metric, "difference": difference}
    options = {"task": query.task, **changes, **query.model_dump(exclude_unset=True), **changes}
    half = (difference or 0.0) / 2
    if query.rate is not None and not half <= query.rate <= 1 - half:
        options["rate"] = 0.5
    return power_command([], options)


def _as_share(value: float | None) -> float | None:
    """Return a number from 0 to 1, where users may have given percent."""
    if value is None or value <= 1:
        return value
    return min(value / _PERCENT, 1.0)


def _check_rate(rate: float | None) -> None:
    """Check that a rate is from 0 to 1.

    Raises:
        OptionError: It is not.
    """
    if rate is None or 0 <= rate <= 1:
        return
    advice = ""
    if 1 < rate <= _PERCENT:
        advice = f"; {rate:g} % is {rate / _PERCENT:g}"
    raise OptionError(f"--rate {rate:g} is not legal: from 0 to 1{advice}")
