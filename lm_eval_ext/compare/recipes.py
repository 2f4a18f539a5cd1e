"""Figures that are no means of documents' scores: what they are functions of.

A bootstrap needs them as functions of sums over clusters. Each is the task's own aggregation,
found by the name that it has in lm-eval's registry, and so in results files.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lm_eval_ext.results.samples import Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Totals: TypeAlias = "dict[str, NDArray[np.float64]]"


@dataclass(frozen=True)
class Recipe:
    """How to recompute a figure.

    Attributes:
        totals: From samples, the metric's name and the samples' clusters: what is summed, by
            cluster.
        statistic: From sums, with an axis of resamples in front, to figures (NaN: undefined).
    """

    totals: Callable[[Sequence[Sample], str, Sequence[str]], Totals]
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]"


def recipe_of(aggregation: str | None) -> Recipe | None:
    """The recipe for an aggregation, or None if there is none."""
    return _RECIPES.get(aggregation or "")


def _relative_totals(samples: Sequence[Sample], metric: str, clusters: Sequence[str]) -> Totals:
    import numpy as np

    from lm_eval_ext.benchmarks.magnifico import score as relative

    outcomes = [
        relative.Outcome(
            bool(sample.scores[metric]), sample.doc["interpretation"], sample.doc["form"], cluster
        )
        for sample, cluster in zip(samples, clusters, strict=True)
    ]
    _, by_cluster = relative.tabulate(outcomes)
    return {name: np.array(table, dtype=np.float64) for name, table in by_cluster.items()}


def _relative(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    from lm_eval_ext.benchmarks.magnifico import score as relative

    return relative.relative_of(sums)


def _change_totals(samples: Sequence[Sample], metric: str, clusters: Sequence[str]) -> Totals:
    """Errors under both selections: ``error_change/rouge_l`` from ``concept/`` and ``random/``."""
    import numpy as np

    score = metric.partition("/")[2]
    members: dict[str, list[tuple[float, float]]] = {}
    for sample, cluster in zip(samples, clusters, strict=True):
        concept, random = (sample.scores[f"{view}/{score}"] for view in ("concept", "random"))
        if concept is not None and random is not None:
            members.setdefault(cluster, []).append((1 - concept, 1 - random))
    return {
        name: np.array([math.fsum(column) for column in zip(*rows, strict=True)])
        for name, rows in members.items()
    }


def _change(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        values: Any = np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1] - 1, np.nan)
    return values  # type: ignore[no-any-return]


_RECIPES: Mapping[str, Recipe] = {
    "magnifico_relative_performance": Recipe(_relative_totals, _relative),
    "lm_eval_ext_paired_change": Recipe(_change_totals, _change),
}
