"""Drawing clusters with replacement."""

from typing import Any

import numpy as np
import pytest

from lm_eval_ext.stats import bootstrap
from lm_eval_ext.stats.bootstrap import ITERATIONS, cluster_bootstrap, resampled_sums

MANY = 4000


def test_every_resample_draws_as_many_clusters_as_there_are() -> None:
    sums = resampled_sums(np.ones((37, 2, 3)), MANY, 0)
    assert sums.shape == (MANY, 2, 3)
    assert (sums == 37).all()


def test_counts_are_those_of_a_multinomial_draw() -> None:
    clusters = 8
    counts = resampled_sums(np.eye(clusters), MANY, 1)
    # A count's mean is 1, its variance 1 - 1/n, and two counts' covariance -1/n.
    error = 5 / np.sqrt(MANY)
    assert np.abs(counts.mean(axis=0) - 1).max() < error
    covariance = np.cov(counts.T)
    expected = np.eye(clusters) - 1 / clusters
    assert np.abs(covariance - expected).max() < 3 * error


@pytest.mark.parametrize("at_a_time", [1, 50, 1 << 20])
def test_how_many_are_drawn_at_a_time_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    stacked = np.arange(60.0).reshape(20, 3)
    expected = resampled_sums(stacked, 99, 7)
    monkeypatch.setattr(bootstrap, "_AT_A_TIME", at_a_time)
    assert np.array_equal(resampled_sums(stacked, 99, 7), expected)
    assert not np.array_equal(resampled_sums(stacked, 99, 8), expected)


def test_the_interval_is_the_middle_95_percent_of_the_resamples() -> None:
    rng = np.random.default_rng(4)
    totals = {f"c{n:02}": np.array([value, 1.0]) for n, value in enumerate(rng.normal(size=30))}
    drawn: list[Any] = []

    def mean(sums: Any) -> Any:
        drawn.append(sums[:, 0] / sums[:, 1])
        return drawn[-1]

    found = cluster_bootstrap(totals, mean)
    assert found is not None
    (values,) = drawn
    assert len(values) == ITERATIONS
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])))
    assert found.stderr == pytest.approx(np.std(values, ddof=1))
    assert found.low < values.mean() - found.stderr < values.mean() + found.stderr < found.high
