"""Figures over documents that were asked under both selections.

Every metric's per-document value is a :class:`Pair`: a float for lm-eval, with both scores
behind it, so that ratios of sums and resampling need no other way.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.conceptual.documents import CONCEPT, RANDOM
from lm_eval_ext.stats import Spread, cluster_bootstrap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GAIN, ERROR_CHANGE = "gain", "error_change"
VIEWS = (RANDOM, CONCEPT, GAIN, ERROR_CHANGE)
"""What a score is reported as; the last is the relative change of error."""

PAPER_SAMPLES, PAPER_REPEATS = 100, 200
"""The paper's bootstrap (captions of its figures 2 to 4)."""


class Pair(float):
    """A document's score in one view, with what it comes from.

    A float, so that lm-eval's logs and JSON take it as one.
    """

    random: float
    concept: float
    sample: str
    cluster: str

    def __new__(
        cls, value: float, random: float, concept: float, sample: str, cluster: str
    ) -> "Pair":
        """Args: the view's value; the score under each selection; id; cluster of its errors."""
        self = super().__new__(cls, value)
        self.random, self.concept, self.sample, self.cluster = random, concept, sample, cluster
        return self

    def __reduce__(self) -> tuple[type["Pair"], tuple[float, float, float, str, str]]:
        """For pickling: ranks send their scores to each other."""
        return (Pair, (float(self), self.random, self.concept, self.sample, self.cluster))


def change(pairs: Iterable[Pair]) -> float | None:
    """The relative change of error: (1 - concept) / (1 - random) - 1, of the mean scores.

    Negative where demonstrations that share a concept help. None where there is no error to
    change.
    """
    pairs = list(pairs)
    before = math.fsum(1 - pair.random for pair in pairs)
    return math.fsum(1 - pair.concept for pair in pairs) / before - 1 if before else None


def mean_spread(pairs: Iterable[Pair]) -> Spread | None:
    """Error and interval of the mean of a view on all samples; concepts are resampled."""
    return _clustered(pairs, lambda pair: (float(pair), 1.0), _ratio)


def change_spread(pairs: Iterable[Pair]) -> Spread | None:
    """Error and interval of :func:`change` on all samples; concepts are resampled."""

    def statistic(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
        return _ratio(sums) - 1

    return _clustered(pairs, lambda pair: (1 - pair.concept, 1 - pair.random), statistic)


def _ratio(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        values: Any = np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)
    return values  # type: ignore[no-any-return]


def _clustered(
    pairs: Iterable[Pair],
    parts: Callable[[Pair], tuple[float, float]],
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
) -> Spread | None:
    import numpy as np

    members: dict[str, list[tuple[float, float]]] = {}
    for pair in pairs:
        members.setdefault(pair.cluster, []).append(parts(pair))
    totals = {
        cluster: np.array([math.fsum(column) for column in zip(*rows, strict=True)])
        for cluster, rows in members.items()
    }
    return cluster_bootstrap(totals, statistic)


def paper_bootstrap(pairs: Iterable[Pair], *, of_change: bool) -> "NDArray[np.float64] | None":
    """The paper's bootstrap: 200 times, the figure of 100 samples drawn with replacement.

    The same samples are drawn for every view, so a gain is that of one and the same draw.

    Returns:
        200 values, or fewer where some are undefined; None for fewer than two samples.
    """
    import numpy as np

    # The order in which ranks deliver must not decide which are drawn.
    ordered: Sequence[Pair] = sorted(pairs, key=lambda pair: pair.sample)
    if len(ordered) < 2:  # noqa: PLR2004
        return None
    drawn = np.random.default_rng(0).integers(len(ordered), size=(PAPER_REPEATS, PAPER_SAMPLES))
    if of_change:
        after = np.array([1 - pair.concept for pair in ordered])[drawn].sum(axis=1)
        before = np.array([1 - pair.random for pair in ordered])[drawn].sum(axis=1)
        values = _ratio(np.stack([after, before], axis=1)) - 1
    else:
        values = np.array([float(pair) for pair in ordered])[drawn].mean(axis=1)
    defined: Any = values[~np.isnan(values)]
    return defined if len(defined) > 1 else None
