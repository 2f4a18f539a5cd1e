"""Clustered standard errors, compared with statsmodels and with lm-eval's own."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.metrics import mean_stderr

from lm_eval_ext.stats.intervals import mean_estimate

scores = st.lists(st.tuples(st.floats(-10, 10), st.sampled_from("abcde")), min_size=2, max_size=60)


def error(pairs: list[tuple[float, str]]) -> float | None:
    found = mean_estimate(pairs)
    return found.stderr if found else None


@given(scores)
@pytest.mark.slow
def test_it_is_statsmodels_cluster_robust_error_of_a_mean(pairs: list[tuple[float, str]]) -> None:
    import statsmodels.api as sm

    ours = error(pairs)
    if len({cluster for _, cluster in pairs}) < 2:
        assert ours is None
        return
    x = np.array([score for score, _ in pairs])
    fitted = sm.OLS(x, np.ones(len(x))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array([ord(c) for _, c in pairs])}
    )
    assert ours == pytest.approx(float(fitted.bse[0]), rel=1e-6, abs=1e-9)


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=40))
def test_with_one_document_per_cluster_it_is_lm_evals_own(numbers: list[float]) -> None:
    ours = error([(n, str(i)) for i, n in enumerate(numbers)])
    assert ours == pytest.approx(mean_stderr(numbers), rel=1e-9, abs=1e-12)


@given(scores, st.randoms())
def test_order_changes_nothing_at_all(pairs: list[tuple[float, str]], rng: random.Random) -> None:
    shuffled = pairs[:]
    rng.shuffle(shuffled)
    assert error(shuffled) == error(pairs)


def test_by_hand() -> None:
    # mean 0.5; cluster a deviates by +1 in all, cluster b by -1: sqrt(2 * (1 + 1)) / 4.
    pairs = [(1.0, "a"), (1.0, "a"), (0.0, "b"), (0.0, "b")]
    assert error(pairs) == pytest.approx(0.5)
    independent = error([(s, str(i)) for i, (s, _) in enumerate(pairs)])
    assert independent == pytest.approx(math.sqrt(1 / 12))


@pytest.mark.parametrize("pairs", [[], [(1.0, "a")], [(1.0, "a"), (0.0, "a")]])
def test_fewer_than_two_clusters_have_no_error(pairs: list[tuple[float, str]]) -> None:
    assert error(pairs) is None
