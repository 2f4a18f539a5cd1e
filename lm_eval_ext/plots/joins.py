"""Which models cannot be told apart, by the tests of ``lm-eval-ext compare``."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from lm_eval_ext.compare.align import Aligned, align
from lm_eval_ext.compare.differences import systems_of
from lm_eval_ext.compare.metrics import choose_metrics, how_to_recompute
from lm_eval_ext.compare.systems import adjusted
from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.log import get_logger
from lm_eval_ext.plots.points import DAGGER, Point, Results
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.stats.paired import letters

_log = get_logger(__name__)

ALPHA = 0.05

Different: TypeAlias = Callable[[str, str], frozenset[tuple[str, str]] | None]
"""From a task and a metric to the pairs of models that differ significantly, in either order; None
if they cannot be tested."""


class Tested:
    """Tests every pair of models on a metric, with Holm's method for all of them.

    The samples of a task are read once. Models that were measured differently from most are left
    out.
    """

    def __init__(self, results: Results) -> None:
        self._results = results
        self._aligned: dict[str, Aligned | None] = {}

    def __call__(self, task: str, metric: str) -> frozenset[tuple[str, str]] | None:
        """The pairs that differ; None without samples, or if they do not give the metric."""
        alike = self._results.usual(task)
        runs = {name: run for name, run in self._results.runs(task).items() if name in alike}
        try:
            if task not in self._aligned:
                self._aligned[task] = None
                self._aligned[task] = align(task, runs)
            aligned = self._aligned[task]
            return None if aligned is None else _different(task, metric, runs, aligned)
        except LmEvalExtError as error:
            _log.info("%s; models are told apart by their intervals", error)
            return None


def _different(
    task: str, metric: str, runs: Mapping[str, ResultsFile], aligned: Aligned
) -> frozenset[tuple[str, str]] | None:
    filters = list(next(iter(aligned.samples.values())))
    chosen = next(iter(choose_metrics(task, next(iter(runs.values())), filters, [metric])), None)
    if chosen is None:
        return None
    logged = {name: aligned.everything[name][chosen.filter] for name in runs}
    how = how_to_recompute(task, runs, logged, chosen)
    samples = {name: aligned.samples[name][chosen.filter] for name in runs}
    systems = systems_of(task, chosen, samples, how)
    if isinstance(systems, str):
        return None
    p_values = adjusted(systems.tests())
    if any(p is None for p in p_values):
        return None
    return frozenset(
        pair
        for pair, p in zip(systems.pairs(), p_values, strict=True)
        if p is not None and p < ALPHA
    )


def alike(points: Sequence[Point], different: Different) -> list[list[str]]:
    """The groups of models that cannot be told apart, of the points of one place.

    Each is as large as it can be, and has two models or more. Where tests are impossible, models
    differ if their intervals do not overlap; none are joined if one has no interval.
    """
    own = [one for one in points if not one.published and not one.model.endswith(DAGGER)]
    if len(own) < 2:  # noqa: PLR2004
        return []
    pairs = different(*own[0].source)
    if pairs is None:
        pairs = _apart(own)
        if pairs is None:
            return []
    names = [point.model for point in own]
    places = {
        (one, two)
        for (one, first), (two, second) in combinations(enumerate(names), 2)
        if (first, second) in pairs or (second, first) in pairs
    }
    groups: dict[str, list[str]] = {}
    for name, shared in zip(names, letters(len(names), places), strict=True):
        for letter in re.findall("[a-z][0-9]*", shared):
            groups.setdefault(letter, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _apart(points: Sequence[Point]) -> frozenset[tuple[str, str]] | None:
    bounds: Mapping[str, tuple[float, float]] = {
        point.model: (point.low, point.high)
        for point in points
        if point.low is not None and point.high is not None
    }
    if len(bounds) < len(points):
        return None
    return frozenset(
        (one, two)
        for one, two in combinations(bounds, 2)
        if bounds[one][0] > bounds[two][1] or bounds[two][0] > bounds[one][1]
    )
