"""The metrics of a task: which are compared, and how each is recomputed from samples."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pkgutil import resolve_name

from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.names import RANGE
from lm_eval_ext.results.files import ResultsFile, variant_and_name
from lm_eval_ext.results.samples import Sample, SampleStatistic, finite
from lm_eval_ext.stats.intervals import NO_LIMITS, Limits

MOST_NAMED = 16
"""Metrics that an error names."""

_BOTH = 2
"""Bounds of a range."""

SAME = 1e-9
"""Values that differ by less are equal but for rounding."""


@dataclass(frozen=True)
class Metric:
    """A metric of a task: its name in tables, its key in samples, its lm-eval filter."""

    name: str
    key: str
    filter: str
    higher_is_better: bool
    limits: Limits = NO_LIMITS


def choose_metrics(
    task: str, results: ResultsFile, filters: Sequence[str], patterns: Sequence[str]
) -> list[Metric]:
    """The metrics that a comparison shows.

    ``patterns`` are names, or patterns with ``*``, of whole metrics or of the part after the
    slash. Without any it is the task's headline, or all metrics of a task that isn't ours. The
    headline comes first.

    Raises:
        OptionError: If a pattern matches none.
    """
    names = list(results.scores(task))
    card = card_of(task)
    headline = card.headline_of(names) if card else ""
    if headline and not patterns:
        fitting = [headline]
    else:
        fits = {
            pattern: [name for name in names if _fits(name, pattern)]
            for pattern in patterns or ["*"]
        }
        for pattern, found in fits.items():
            if not found:
                near = get_close_matches(pattern, names)
                first = dict.fromkeys([*near, *(card.first_of(names) if card else ()), *names])
                raise OptionError(
                    f"{task} has no metric {pattern}; it has {', '.join(list(first)[:MOST_NAMED])}"
                    + (", and more: lm-eval-ext show --all" if len(names) > MOST_NAMED else "")
                )
        fitting = [name for name in names if any(name in found for found in fits.values())]
        fitting.sort(key=lambda name: name != headline)
    return [
        Metric(
            name,
            key,
            filter_name,
            not results.lower_is_better(task, key),
            limits_of(task, results, key),
        )
        for name in fitting
        for key, filter_name in [_parts(name, filters)]
        if filter_name in filters
    ]


def _fits(name: str, pattern: str) -> bool:
    return any(
        part == pattern or fnmatchcase(part, pattern) for part in (name, variant_and_name(name)[1])
    )


def _parts(name: str, filters: Sequence[str]) -> tuple[str, str]:
    """A metric's key and filter; a name has no filter where there is only one."""
    key, comma, filter_name = name.rpartition(",")
    if comma and filter_name in filters:
        return key, filter_name
    return name, filters[0]


def aggregation_of(task: str, results: ResultsFile, key: str) -> str | None:
    """A metric's aggregation, by its name in lm-eval's registry; None if the file has none."""
    name = results.entry(task, key).get("aggregation")
    return None if name is None else str(name)


def limits_of(task: str, results: ResultsFile, key: str) -> Limits:
    """A metric's least and largest legal value; those that the file does not name are None."""
    bounds = results.entry(task, key).get(RANGE)
    low, high = bounds if isinstance(bounds, list) and len(bounds) == _BOTH else NO_LIMITS
    return finite(low), finite(high)


def statistic_of(aggregation: str | None) -> SampleStatistic | None:
    """The statistic that a benchmark's card names for an aggregation, or None."""
    for card in cards().values():
        if aggregation in card.statistics:
            found: SampleStatistic = resolve_name(card.statistics[aggregation])
            return found
    return None


def how_to_recompute(
    task: str,
    runs: Mapping[str, ResultsFile],
    samples: Mapping[str, Sequence[Sample]],
    metric: Metric,
) -> SampleStatistic | str | None:
    """How a metric can be recomputed from samples.

    ``samples`` are everything that each model logged under the metric's filter.

    Returns:
        The benchmark's statistic; None for the average of documents' scores, if that is the
        value in the results file; or in words why neither is possible.
    """
    for name, run in runs.items():
        aggregation = aggregation_of(task, run, metric.key)
        statistic = statistic_of(aggregation)
        if statistic is not None:
            return statistic
        scores = [s.scores.get(metric.key) for s in samples[name] if metric.key in s.scores]
        numbers = [score for score in scores if score is not None]
        reported = run.scores(task)[metric.name].value if metric.name in run.scores(task) else None
        if not numbers or reported is None:
            return "no document has a score"
        mean = math.fsum(numbers) / len(numbers)
        if not math.isclose(mean, reported, rel_tol=SAME, abs_tol=SAME):
            how = aggregation or "an aggregation of its own"
            return f"no test: not the mean of documents' scores ({how})"
    return None
