"""Aggregations over documents: the change of error, intervals, and the paper's bootstrap.

They go into lm-eval's registry by name, since results files show a function's source.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from lm_eval_ext.benchmarks.conceptual.fewshot import CONCEPT, RANDOM, SAME_LABELS
from lm_eval_ext.benchmarks.conceptual.points import (
    ERROR_CHANGE,
    VIEWS,
    Point,
    best_template,
    of_best,
)
from lm_eval_ext.harness.metrics import once, register_estimate, register_statistic
from lm_eval_ext.harness.names import HIGH, LOW, STDERR
from lm_eval_ext.results.samples import Sample, SampleStatistic, Totals
from lm_eval_ext.stats import Estimate, mean_estimate
from lm_eval_ext.stats.intervals import jackknife

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Draws: TypeAlias = Literal["paired", "independent"]
DRAWS: tuple[Draws, ...] = get_args(Draws)

PAPER_SAMPLES, PAPER_REPEATS = 100, 200
"""The size of the paper's bootstrap (captions of its figures 2 to 4)."""

ENOUGH = 10
"""Samples from which a concept has figures of its own."""

BEST = "best_"
"""Part of the names of aggregations that first find the best template."""

IS_BEST = "lm_eval_ext_is_best"
MEAN = "lm_eval_ext_{best}mean"
CHANGE = "lm_eval_ext_{best}paired_change"
BOOTSTRAP = "lm_eval_ext_{best}100x200_{draws}"
BY_CONCEPT = "lm_eval_ext_{best}mean_of_enough"
"""Names in lm-eval's registry; those of standard errors and bounds get their endings."""


def change(points: Iterable[Point]) -> float | None:
    """The relative change of error: (1 - concept) / (1 - random) - 1, of the mean scores.

    Negative if concept-sharing demonstrations help; None if there is no error to change.
    """
    points = list(points)
    before = math.fsum(1 - point.scores[RANDOM] for point in points)
    return math.fsum(1 - point.scores[CONCEPT] for point in points) / before - 1 if before else None


def change_estimate(points: Iterable[Point]) -> Estimate | None:
    """:func:`change` and its standard error, by leaving out each concept in turn."""
    rows = [(one.cluster, (1 - one.scores[CONCEPT], 1 - one.scores[RANDOM])) for one in points]
    return jackknife(_totals(rows), _ratio_change, Counter(cluster for cluster, _ in rows))


def _ratio(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """First column by second; NaN where the second is 0."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: NDArray[np.float64] = np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)
    return ratios


def _ratio_change(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    return _ratio(sums) - 1


def _totals(rows: Iterable[tuple[str, tuple[float, float]]]) -> Totals:
    import numpy as np

    members: dict[str, list[tuple[float, float]]] = {}
    for cluster, parts in rows:
        members.setdefault(cluster, []).append(parts)
    return {
        cluster: np.array([math.fsum(column) for column in zip(*own, strict=True)])
        for cluster, own in members.items()
    }


def _logged_totals(samples: Sequence[Sample], metric: str, clusters: Sequence[str]) -> Totals:
    """Errors under both selections: ``error_change/rouge_l`` from ``concept/`` and ``random/``."""
    rows = []
    for sample, cluster in zip(samples, clusters, strict=True):
        concept, random = (sample.scores[name] for name in _views_behind(metric))
        if concept is not None and random is not None:
            rows.append((cluster, (1 - concept, 1 - random)))
    return _totals(rows)


def _views_behind(metric: str) -> tuple[str, ...]:
    score = metric.partition("/")[2]
    return (f"{CONCEPT}/{score}", f"{RANDOM}/{score}")


LOGGED_CHANGE = SampleStatistic(_logged_totals, _ratio_change, _views_behind)
"""The change of error from logged samples; the card names it for ``lm-eval-ext compare``."""

_SEEDS = {RANDOM: 0, CONCEPT: 1, SAME_LABELS: 2}


def paper_bootstrap(points: Iterable[Point], draws: Draws = "paired") -> "NDArray[Any] | None":
    """The paper's bootstrap: 200 times, a view of 100 samples drawn with replacement.

    Args:
        points: The documents' values in one view.
        draws: ``paired``: the same samples are drawn under every selection, so that each gain
            compares the same samples. ``independent``: others under each, as in the authors' code,
            so that a gain varies with the samples, too.

    Returns:
        200 values, or fewer if some are undefined; None if fewer than two are left.
    """
    import numpy as np

    # Sorted, so that the draw does not depend on the order of lm-eval's processes.
    ordered = sorted(points, key=lambda point: point.sample)
    if len(ordered) < 2:  # noqa: PLR2004
        return None

    def drawn(selection: str) -> Any:
        rng = np.random.default_rng(_SEEDS[selection] if draws == "independent" else 0)
        places = rng.integers(len(ordered), size=(PAPER_REPEATS, PAPER_SAMPLES))
        return np.array([point.scores[selection] for point in ordered])[places]

    view = ordered[0].view
    if view == ERROR_CHANGE:
        errors = [(1 - drawn(selection)).sum(axis=1) for selection in (CONCEPT, RANDOM)]
        figures = _ratio_change(np.stack(errors, axis=1))
    else:
        weights = VIEWS[view].items()
        figures = np.sum([weight * drawn(name).mean(axis=1) for name, weight in weights], axis=0)
    defined: NDArray[Any] = figures[~np.isnan(figures)]
    return defined if len(defined) > 1 else None


def _quantile(figures: Any, share: float) -> float:
    import numpy as np

    return float(np.quantile(figures, share))


_OF_BOOTSTRAP: dict[str, Callable[[Any], float]] = {
    "": lambda figures: _quantile(figures, 0.5),
    STDERR: lambda figures: float(figures.std(ddof=1)),
    LOW: lambda figures: _quantile(figures, 0.025),
    HIGH: lambda figures: _quantile(figures, 0.975),
}
ENDS = tuple(_OF_BOOTSTRAP)
"""Of a figure with standard error and bounds."""


def _mean(points: Sequence[Point]) -> float | None:
    return math.fsum(points) / len(points) if points else None


def _mean_of_enough(points: Sequence[Point]) -> float | None:
    return _mean(points) if len(points) >= ENOUGH else None


def _estimate_of_enough(points: Sequence[Point]) -> Estimate | None:
    return mean_estimate(points) if len(points) >= ENOUGH else None


Pick: TypeAlias = Callable[[list[Any]], list[Any]]
Result = TypeVar("Result")


def _register(best: str, pick: Pick) -> None:
    """Registers all aggregations of values that ``pick`` makes points of."""

    def register(
        name: str,
        value: Callable[[list[Any]], float | None],
        estimate: Callable[[list[Any]], Estimate | None],
    ) -> None:
        register_statistic(name.format(best=best), _of(pick, value))
        register_estimate(name.format(best=best), _of(pick, estimate))

    if best:
        register(MEAN, _mean, mean_estimate)
    register(BY_CONCEPT, _mean_of_enough, _estimate_of_enough)
    register(CHANGE, change, change_estimate)
    for draws in DRAWS:
        drawn = once(_of(pick, functools.partial(paper_bootstrap, draws=draws)))
        for end, part in _OF_BOOTSTRAP.items():
            register_statistic(BOOTSTRAP.format(best=best, draws=draws) + end, _part(drawn, part))


def _of(pick: Pick, function: Callable[[list[Any]], Result]) -> Callable[[list[Any]], Result]:
    return lambda values: function(pick(values))


def _part(
    drawn: Callable[[list[Any]], Any], part: Callable[[Any], float]
) -> Callable[[list[Any]], float | None]:
    def figure(values: list[Any]) -> float | None:
        figures = drawn(values)
        return None if figures is None else part(figures)

    return figure


_register("", list)
_register(BEST, of_best)
register_statistic(
    IS_BEST,
    lambda values: float(best_template(values) == values[0].asked) if values else None,
)
