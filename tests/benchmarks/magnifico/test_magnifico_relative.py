"""Relative performance: the paper's formula by hand, order, clusters, undefined cases."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from magnifico_outcomes import Outcome, outcomes
from magnifico_outcomes import found as found_of

from lm_eval_ext.stats.statistics import Figure, relative_of_sums


def found(scored: list[Outcome]) -> Figure:
    return found_of(scored, "relative_performance")


def relative_performance(scored: list[Outcome]) -> float | None:
    return found(scored).value


def test_interpretations_below_five_percent_are_left_out() -> None:
    good = [*outcomes("a", "base", 10, 20), *outcomes("a", "plausible", 5, 20)]
    at_the_threshold = [*outcomes("b", "base", 1, 20), *outcomes("b", "plausible", 0, 20)]
    below = [*outcomes("c", "base", 1, 21), *outcomes("c", "plausible", 0, 20)]
    assert relative_performance(good + below) == 50
    assert relative_performance(good + at_the_threshold) == 25
    assert relative_performance(below) is None
    assert found(below).stderr is None


def test_over_forms_it_is_the_mean_of_theirs() -> None:
    base = [*outcomes("a", "base", 10, 10), *outcomes("b", "base", 10, 10)]
    plausible = [*outcomes("a", "plausible", 4, 10), *outcomes("b", "plausible", 6, 10)]
    foreign = [*outcomes("a", "foreign", 1, 10), *outcomes("b", "foreign", 2, 10)]
    both = [relative_performance(base + plausible), relative_performance(base + foreign)]
    assert relative_performance(base + plausible + foreign) == pytest.approx(np.mean(both))


def test_novel_examples_without_base_ones_do_not_count() -> None:
    assert relative_performance(outcomes("a", "plausible", 3, 3)) is None
    assert relative_performance(outcomes("a", "base", 3, 3)) is None
    assert relative_performance([]) is None
    alone = outcomes("a", "base", 3, 3, "one") + outcomes("a", "base", 3, 3, "two")
    assert found(alone).stderr is None


@st.composite
def runs(draw: st.DrawFn) -> list[Outcome]:
    scored = []
    for cluster in draw(st.lists(st.sampled_from("uvwxyz"), min_size=2, max_size=6, unique=True)):
        for interpretation in "ab":
            for form in ("base", "plausible", "foreign"):
                size = draw(st.integers(0, 4))
                scored += outcomes(interpretation, form, draw(st.integers(0, size)), size, cluster)
    return scored


@given(runs())
def test_it_agrees_with_the_formula_written_out(scored: list[Outcome]) -> None:
    ratios = []
    for form in ("plausible", "foreign"):
        for interpretation in "ab":
            base = [s[0] for s in scored if s[1:3] == (interpretation, "base")]
            novel = [s[0] for s in scored if s[1:3] == (interpretation, form)]
            if base and novel and sum(base) / len(base) >= 0.05:
                ratios.append(min(sum(novel) / len(novel) / (sum(base) / len(base)), 1))
    value = relative_performance(scored)
    assert (value is None) == (not ratios)
    if value is not None:
        assert value == pytest.approx(100 * sum(ratios) / len(ratios))
        assert 0 <= value <= 100


def test_the_error_is_that_of_resampled_databases() -> None:
    rng = random.Random(4)
    by_cluster = {}
    for number in range(12):
        ability = rng.uniform(0.3, 0.9)
        by_cluster[f"db{number}"] = [
            (rng.random() < ability * (0.7 if form != "base" else 1), name, form, f"db{number}")
            for name in "abc"
            for form in ("base", "plausible")
            for _ in range(6)
        ]
    names = sorted(by_cluster)
    values = []
    for _ in range(300):
        drawn = [
            outcome for name in rng.choices(names, k=len(names)) for outcome in by_cluster[name]
        ]
        value = relative_performance(drawn)
        assert value is not None
        values.append(value)
    whole = found([outcome for name in names for outcome in by_cluster[name]])
    assert whole.stderr == pytest.approx(np.std(values, ddof=1), rel=0.2)
    assert (whole.clusters, whole.documents) == (12, 12 * 36)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # Columns: base right, base, novel right, novel.
        ([(8, 10, 4, 10)], 50),
        ([(2, 10, 9, 10)], 100),  # never above 100
        ([(2, 10, 9, 10), (8, 10, 4, 10)], 75),
        ([(1, 20, 0, 40), (8, 10, 4, 10)], 25),  # 5 % of the base examples are enough
        ([(1, 21, 0, 40), (8, 10, 4, 10)], 50),  # 4.8 % are not
        ([(8, 10, 0, 0), (8, 10, 4, 10)], 50),  # no novel example
        ([(0, 0, 4, 10), (8, 10, 4, 10)], 50),  # no base example
        ([(0, 10, 4, 10)], np.nan),
    ],
)
def test_resamples_are_scored_by_the_same_formula(
    pairs: list[tuple[int, int, int, int]], expected: float
) -> None:
    sums = np.array([pairs, [(1, 1, 1, 1)] * len(pairs)], dtype=float).reshape(2, -1, 2, 2)
    assert relative_of_sums(sums) == pytest.approx([expected, 100], nan_ok=True)
