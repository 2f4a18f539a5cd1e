"""Power: statsmodels' figures, monotony, and a variance that simulation confirms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower

from lm_eval_ext.stats.power import clusters_needed, power_of, stated_variance


@pytest.mark.parametrize(
    ("difference", "spread", "alpha", "power"),
    [(0.05, 0.2, 0.05, 0.8), (0.1, 0.15, 0.05, 0.9), (0.02, 0.3, 0.01, 0.8), (5, 9, 0.05, 0.95)],
)
def test_the_number_of_clusters_is_that_of_statsmodels(
    difference: float, spread: float, alpha: float, power: float
) -> None:
    clusters = clusters_needed(difference, spread**2, alpha=alpha, power=power)
    expected = TTestPower().solve_power(difference / spread, alpha=alpha, power=power)
    assert clusters == np.ceil(expected)


@given(st.floats(0.005, 0.5), st.floats(1e-3, 1), st.floats(0.5, 0.99))
def test_the_number_is_the_least(difference: float, variance: float, power: float) -> None:
    clusters = clusters_needed(difference, variance, power=power)
    assert clusters is not None
    assert power_of(clusters, difference, variance, 0.05) >= power
    assert clusters_needed(difference / 1e6, variance * 1e6) is None, "more than a billion"
    assert clusters == 6 or power_of(clusters - 1, difference, variance, 0.05) < power


def test_stated_variance_is_that_of_binary_answers() -> None:
    """The variance agrees with that of drawn answers in clusters of 4 with an ICC of 0.2."""
    rng = np.random.default_rng(0)
    rates = (0.7, 0.8)
    icc = 0.2
    cluster_size = 4
    means = []
    for rate in rates:
        cluster_rates = rng.beta(4 * rate, 4 * (1 - rate), size=200_000)
        means.append(rng.binomial(cluster_size, cluster_rates) / cluster_size)
    simulated = np.var(means[1] - means[0])
    assert stated_variance(rates, icc, cluster_size) == pytest.approx(simulated, rel=0.02)
    assert stated_variance(rates, icc, 1) == pytest.approx(0.21 + 0.16)
