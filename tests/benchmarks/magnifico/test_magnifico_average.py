"""Average execution accuracy: each interpretation counts the same."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.benchmarks.magnifico.score import (
    LOGGED_AVERAGE_ACCURACY,
    Outcome,
    average_accuracy,
    average_estimate,
    average_of,
)
from lm_eval_ext.results.samples import Sample


def outcomes(
    interpretation: str, form: str, right: int, all_of: int, cluster: str = "db"
) -> list[Outcome]:
    return [Outcome(n < right, interpretation, form, cluster) for n in range(all_of)]


def test_an_interpretation_counts_once_however_many_examples_it_has() -> None:
    scored = [*outcomes("a", "base", 90, 100), *outcomes("b", "base", 1, 2)]
    assert average_accuracy(scored) == pytest.approx((0.9 + 0.5) / 2)


def test_forms_of_an_interpretation_count_each() -> None:
    scored = [*outcomes("a", "plausible", 4, 4), *outcomes("a", "foreign", 0, 1)]
    assert average_accuracy(scored) == 0.5
    assert average_accuracy([]) is None


@st.composite
def runs(draw: st.DrawFn) -> list[Outcome]:
    scored = []
    for cluster in draw(st.lists(st.sampled_from("uvwxyz"), min_size=2, max_size=6, unique=True)):
        for interpretation in "abc":
            size = draw(st.integers(0, 4))
            scored += outcomes(interpretation, "base", draw(st.integers(0, size)), size, cluster)
    return scored


@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_documents_changes_nothing(scored: list[Outcome], rng: random.Random) -> None:
    shuffled = list(scored)
    rng.shuffle(shuffled)
    assert average_accuracy(shuffled) == average_accuracy(scored)
    assert average_estimate(shuffled) == average_estimate(scored)


@given(runs())
def test_logged_samples_give_the_same_value(scored: list[Outcome]) -> None:
    samples = [
        Sample((str(n), 0), {"interpretation": one.interpretation, "form": one.form}, "", "",
               {"m": float(one)})
        for n, one in enumerate(scored)
    ]  # fmt: skip
    totals = LOGGED_AVERAGE_ACCURACY.totals(samples, "m", [one.cluster for one in scored])
    value = average_accuracy(scored)
    if value is None:
        assert not totals
        return
    (found,) = LOGGED_AVERAGE_ACCURACY.statistic(sum(totals.values())[None])  # type: ignore[index]
    assert found == pytest.approx(value)


def test_a_group_without_answers_does_not_count() -> None:
    sums = np.array([[(1, 2), (0, 0)], [(1, 2), (3, 3)], [(0, 0), (0, 0)]], dtype=float)
    assert average_of(sums) == pytest.approx([0.5, 0.75, np.nan], nan_ok=True)


def test_the_error_leaves_out_databases() -> None:
    one = [*outcomes("a", "base", 8, 10, "u"), *outcomes("b", "base", 4, 10, "u")]
    assert average_estimate(one) is None
    alike = [*one, *outcomes("a", "base", 8, 10, "v"), *outcomes("b", "base", 4, 10, "v")]
    found = average_estimate(alike)
    assert found is not None
    assert found.stderr == pytest.approx(0, abs=1e-12)
    other = average_estimate([*one, *outcomes("a", "base", 0, 10, "v")])
    assert other is not None
    assert other.stderr > 0.1
