"""The spread of two models whose rates a user states, where nothing was run."""

from collections.abc import Sequence

from lm_eval_ext.cards import card_of
from lm_eval_ext.compare.power_query import PowerQuery, Spread, typical_spread
from lm_eval_ext.compare.task_size import DOCUMENT_UNIT, TaskSize, size_by_card
from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.measures import Measure
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
    metric = _rate_metric(query)
    size = size_by_card(query.task)
    per_cluster = _documents_per_cluster(query, size)
    low, high = _two_rates(query, metric)
    least_variance = None
    if query.icc is not None:
        correlation = f"{query.icc:g}"
        variance = stated_variance((low, high), query.icc, per_cluster)
    elif per_cluster == 1:
        correlation = "0"
        variance = stated_variance((low, high), 0.0, per_cluster)
    else:
        smallest, largest = TYPICAL_CORRELATIONS
        correlation = f"{smallest:g} to {largest:g} (as in most runs; --icc sets it)"
        least_variance = stated_variance((low, high), smallest, per_cluster)
        variance = stated_variance((low, high), largest, per_cluster)
    source = f"stated: rates {low:g} and {high:g}, intra-cluster correlation {correlation}"
    if size.unit != DOCUMENT_UNIT:
        source += f", documents per {size.unit} {_number(per_cluster)}"
        if query.per_cluster is None and size.per_cluster is not None:
            source += ", as many as the task has"
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
        least_variance=least_variance,
    )


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
        raise OptionError(
            f"--per-cluster {query.per_cluster:g} is not legal: {query.task} has "
            f"{_number(size.per_cluster)} documents per {size.unit} ({size.documents:,} documents, "
            f"{counted(size.clusters, size.unit)}); leave it out for as many"
        )
    return query.per_cluster


def _number(per_cluster: float) -> str:
    """Return a mean number of documents with one digit: ``84.8``, ``1,000``."""
    return f"{round(per_cluster, 1):,g}"


def _is_rate(measure: Measure) -> bool:
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
    rates = [name for name in metrics if _is_rate(card.question_of(name).measure)]
    default = card.headline_of(rates)
    if query.metric in rates or (not query.metric and default):
        return query.metric or default
    if query.metric in card.measures and _is_rate(card.measures[query.metric]):
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
    rate, difference = _as_share(query.rate), _as_share(query.difference)
    words = ["lm-eval-ext power", query.task, f"--metric {metric}"]
    if rate is not None:
        half = (difference or 0.0) / 2
        fits = half <= rate <= 1 - half
        words.append(f"--rate {rate if fits else 0.5:g}")
    if difference is not None:
        words.append(f"--difference {difference:g}")
    options: Sequence[tuple[str, float | None]] = (
        ("--icc", query.icc),
        ("--per-cluster", query.per_cluster),
        ("--items", query.items),
    )
    for option, value in options:
        if value is not None:
            words.append(f"{option} {value:g}")
    return " ".join(words)


def _as_share(value: float | None) -> float | None:
    """Return a number from 0 to 1, where users may have given percent."""
    if value is None or value <= 1:
        return value
    return min(value / _PERCENT, 1.0)
