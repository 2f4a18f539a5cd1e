"""Statistics of many samples, beside well-known libraries."""

import math
import random
from collections.abc import Iterator
from typing import Any

from bench.rows import DifferError, Row, Times, in_turn

SIZES = (1_000, 10_000, 100_000)
PER_CLUSTER = 20
P_CLOSE = 0.02
"""Largest difference of two p from 20,000 draws: four standard deviations or more."""


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yields rows for two statistics, at three sizes each."""
    sizes = [max(100, round(size * share)) for size in SIZES]
    for measure in (clustered_error, paired_test):
        measure(100, 1)  # imports what it needs
        for size in sizes:
            yield measure(size, rounds)


def clustered_error(size: int, rounds: int) -> Row:
    """The clustered standard error of a mean."""
    import numpy as np
    import statsmodels.api as sm

    from lm_eval_ext.stats.intervals import mean_estimate

    scores, clusters = samples(size)
    values = [(a, f"{b:06}") for a, b in zip(scores, clusters, strict=True)]

    array, names, groups = np.array(scores), np.array(clusters), len(set(clusters))

    def theirs() -> float:
        model = sm.OLS(array, np.ones(len(array)))
        # statsmodels also corrects for the number of parameters unless it is told not to.
        fit = model.fit(
            cov_type="cluster", cov_kwds={"groups": names, "use_correction": False}, use_t=False
        )
        return float(fit.bse[0] * math.sqrt(groups / (groups - 1)))

    def ours() -> float:
        estimate = mean_estimate(values)
        assert estimate is not None
        return estimate.stderr

    measured = in_turn(rounds, theirs, ours)
    return row("clustered standard error of a mean", size, "statsmodels", measured, 1e-9)


def paired_test(size: int, rounds: int) -> Row:
    """Difference of two systems, its interval and its test, by clusters."""
    import numpy as np
    from scipy import stats

    from lm_eval_ext.stats.paired import DRAWS, paired_difference

    first, clusters = samples(size, seed=1)
    second, _ = samples(size, seed=2)
    names = [f"{cluster:06}" for cluster in clusters]

    def theirs() -> float:
        sums = np.zeros(max(clusters) + 1)
        np.add.at(sums, clusters, np.array(first) - np.array(second))
        found = stats.permutation_test(
            (sums,), np.sum, permutation_type="samples", vectorized=True,
            n_resamples=DRAWS, batch=500, rng=0,
        )  # fmt: skip
        return float(found.pvalue)

    def ours() -> float:
        p = paired_difference(first, second, names).p
        assert p is not None
        return p

    times, one, other = in_turn(rounds, theirs, ours)
    if not abs(one - other) <= P_CLOSE:
        raise DifferError(f"paired test: p {one} and {other}")
    work = f"paired difference, interval and randomisation test, {DRAWS:,} draws"
    baseline = "scipy's permutation_test (no interval)"
    return Row(work, size, "samples", baseline, *times, f"p within {P_CLOSE}")


def row(
    work: str, size: int, baseline: str, measured: tuple[Times, float, float], close: float
) -> Row:
    """Returns a row for two standard errors, which must be within a relative difference."""
    times, one, other = measured
    if not abs(one - other) <= close * one:
        raise DifferError(f"{work}, {size} samples: {one} and {other}")
    same = f"standard errors within a share of {close:g}"
    return Row(work, size, "samples", baseline, *times, same)


def samples(size: int, seed: int = 0) -> tuple[list[float], list[int]]:
    """Returns zeros and ones with their clusters, some of which are harder than others."""
    rng = random.Random(size * 10 + seed)
    ease: Any = random.Random(size)
    easy = [ease.uniform(0.2, 0.8) for _ in range(size // PER_CLUSTER + 1)]
    clusters = [place // PER_CLUSTER for place in range(size)]
    return [float(rng.random() < easy[cluster]) for cluster in clusters], clusters
