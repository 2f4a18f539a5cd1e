"""Paired differences: intervals that cover, tests against libraries and against all signs."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lm_eval_ext.stats import paired
from lm_eval_ext.stats.bootstrap import paired_cluster_bootstrap
from lm_eval_ext.stats.paired import mcnemar, paired_difference, sign_flip

LEVEL = 0.95


@pytest.fixture
def interval_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time for p-values that a test does not look at."""
    monkeypatch.setattr(paired, "EXACT_UP_TO", 0)
    monkeypatch.setattr(paired, "DRAWS", 1)


def binomial_band(runs: int, rate: float) -> tuple[float, float]:
    """Between which shares a true rate lies in all but one of 10,000 simulations."""
    low, high = stats.binom.ppf([5e-5, 1 - 5e-5], runs, rate)
    return float(low) / runs, float(high) / runs


def simulated(
    rng: np.random.Generator, sizes: Sequence[int], effect: float, *, shared: float
) -> tuple[list[float], list[float], list[str]]:
    """Two systems' scores; documents of a cluster share a difficulty and a difference."""
    first, second, clusters = [], [], []
    for number, size in enumerate(sizes):
        difficulty, tilt = rng.normal(), rng.normal() * shared
        for _ in range(size):
            common = difficulty + rng.normal()
            first.append(common + effect + tilt + rng.normal())
            second.append(common + rng.normal())
            clusters.append(f"c{number}")
    return first, second, clusters


@pytest.mark.usefixtures("interval_only")
@pytest.mark.parametrize(
    ("sizes", "shared"),
    [([1] * 40, 0.0), ([3] * 16, 1.0), ([5] * 40, 2.0)],
    ids=["each document alone", "LIEDER's design", "strongly clustered"],
)
@pytest.mark.slow
def test_intervals_cover_at_the_nominal_rate(sizes: list[int], shared: float) -> None:
    rng = np.random.default_rng(7)
    runs, effect = 1000, 0.4
    covered = 0
    for _ in range(runs):
        found = paired_difference(*simulated(rng, sizes, effect, shared=shared))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= effect <= found.high
    low, high = binomial_band(runs, LEVEL)
    assert low <= covered / runs <= high


@pytest.mark.usefixtures("interval_only")
def test_ignoring_clusters_would_not_cover() -> None:
    """The simulation can fail: the same data, taken for independent."""
    rng = np.random.default_rng(7)
    runs, effect = 500, 0.4
    covered = 0
    for _ in range(runs):
        first, second, clusters = simulated(rng, [5] * 40, effect, shared=2.0)
        found = paired_difference(first, second, [str(i) for i in range(len(clusters))])
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= effect <= found.high
    assert covered / runs < binomial_band(runs, LEVEL)[0]


@pytest.mark.parametrize("sizes", [[1] * 12, [4] * 10, [1, 2, 3, 4, 5, 6] * 2])
def test_the_test_keeps_its_level_where_there_is_no_difference(sizes: list[int]) -> None:
    rng = np.random.default_rng(3)
    runs, level = 500, 0.1
    # Where signs are all tried, p has few values, and the level is not reached but kept.
    ps = []
    for _ in range(runs):
        first, second, clusters = simulated(rng, sizes, 0.0, shared=1.0)
        ps.append(paired_difference(first, second, clusters).p)
    rejected = sum(p is not None and p <= level for p in ps) / runs
    low, high = binomial_band(runs, level)
    assert low <= rejected <= high


@pytest.mark.usefixtures("interval_only")
def test_the_bootstrap_covers_at_nearly_the_nominal_rate() -> None:
    """Percentiles of 60 clusters; a ratio of sums, as the metrics are that need it."""
    rng = np.random.default_rng(11)
    runs, clusters = 300, 60
    rates = (0.7, 0.5)
    covered = 0
    for _ in range(runs):
        weight = rng.integers(1, 6, size=clusters)
        totals = [
            {f"c{i}": np.array([rng.binomial(weight[i], rate), weight[i]], dtype=np.float64)
             for i in range(clusters)}
            for rate in rates
        ]  # fmt: skip
        found = paired_cluster_bootstrap(
            *totals, lambda sums: sums[:, 0] / sums[:, 1], iterations=1000, seed=0
        )
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= rates[0] - rates[1] <= found.high
    # Percentile intervals of 60 clusters are a little narrow: normal in place of t.
    narrow = 1 - 2 * float(stats.t.sf(stats.norm.ppf(0.975), clusters - 1)) - 0.01
    assert covered / runs >= binomial_band(runs, narrow)[0]
    assert covered / runs <= binomial_band(runs, LEVEL)[1]


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_that_of_statsmodels(only_first: int, only_second: int) -> None:
    from statsmodels.stats.contingency_tables import mcnemar as reference

    expected = reference([[5, only_first], [only_second, 5]], exact=True).pvalue
    assert mcnemar(only_first, only_second) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60))
def test_right_and_wrong_without_clusters_is_mcnemars(pairs: list[tuple[bool, bool]]) -> None:
    found = paired_difference(
        [float(a) for a, _ in pairs],
        [float(b) for _, b in pairs],
        [str(i) for i in range(len(pairs))],
    )
    assert found.test == "mcnemar"
    assert found.p == mcnemar(
        sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    )


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_all_signs_are_tried(sums: list[int]) -> None:
    total = abs(sum(sums))
    signs = list(itertools.product((1, -1), repeat=len(sums)))
    as_far = sum(abs(sum(s * v for s, v in zip(row, sums, strict=True))) >= total for row in signs)
    assert sign_flip([value / 7 for value in sums]) == pytest.approx(as_far / len(signs))


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.randoms())
def test_the_order_of_clusters_changes_nothing(sums: list[float], random: "object") -> None:
    shuffled = sums.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert sign_flip(shuffled) == sign_flip(sums)


def test_drawn_signs_agree_with_all_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    sums = list(rng.normal(0.4, 1.0, size=14))
    exact = sign_flip(sums)
    monkeypatch.setattr(paired, "EXACT_UP_TO", 0)
    drawn = sign_flip(sums)
    assert 0.01 < exact < 0.5, "a case in which something can go wrong"
    assert abs(drawn - exact) < 4 * math.sqrt(exact * (1 - exact) / paired.DRAWS)
    assert drawn == sign_flip(sums), "the same seed draws the same signs"
    assert drawn != sign_flip(sums, seed=1)


def test_many_clusters_are_drawn_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = list(np.random.default_rng(5).normal(0.05, 1.0, size=400))
    whole = sign_flip(sums)
    monkeypatch.setattr(paired, "_CHUNK", 400 * 999)
    assert sign_flip(sums) == whole


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from("abcd")), min_size=1, max_size=30))
def test_a_system_against_itself_finds_nothing(rows: list[tuple[float, str]]) -> None:
    scores = [score for score, _ in rows]
    found = paired_difference(scores, scores, [cluster for _, cluster in rows])
    assert found.value == 0
    if len({cluster for _, cluster in rows}) > 1:
        assert (found.low, found.high, found.p) == (0.0, 0.0, 1.0)
    else:
        assert found.p is None, "one cluster tells nothing about others"


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.sampled_from("abcdef")),
        min_size=2,
        max_size=40,
    )
)
def test_turning_the_systems_around_turns_the_sign(rows: list[tuple[float, float, str]]) -> None:
    first, second, clusters = ([row[i] for row in rows] for i in range(3))
    one, two = (
        paired_difference(first, second, clusters),  # type: ignore[arg-type]
        paired_difference(second, first, clusters),  # type: ignore[arg-type]
    )
    assert one.value == -two.value
    assert one.p == two.p
    if one.low is not None:
        assert two.high is not None
        assert one.low == pytest.approx(-two.high)


def test_a_single_document_each_is_a_paired_t_interval() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=20), rng.normal(size=20)
    found = paired_difference(list(first), list(second), [str(i) for i in range(20)])
    expected = stats.ttest_rel(first, second).confidence_interval(LEVEL)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_what_cannot_be_compared_is_an_error() -> None:
    with pytest.raises(ValueError, match="no documents"):
        paired_difference([], [], [])
    with pytest.raises(ValueError, match="argument 2"):
        paired_difference([1.0], [1.0, 2.0], ["a", "b"])
    one, two = {"a": np.ones(2)}, {"b": np.ones(2)}
    with pytest.raises(ValueError, match="same clusters"):
        paired_cluster_bootstrap(one, two, lambda sums: sums[:, 0])


def test_the_bootstrap_of_equal_systems_and_of_undefined_values() -> None:
    totals = {str(i): np.array([i % 3, 1.0]) for i in range(12)}
    same = paired_cluster_bootstrap(totals, totals, lambda s: s[:, 0] / s[:, 1], iterations=100)
    assert same is not None
    assert (same.value, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)

    def nowhere(sums: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return np.full(len(sums), np.nan)

    assert paired_cluster_bootstrap(totals, totals, nowhere, iterations=10) is None
    one = paired_cluster_bootstrap({"a": np.ones(1)}, {"a": np.zeros(1)}, lambda s: s[:, 0])
    assert one is not None
    assert (one.value, one.p) == (1.0, None)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_exchanging_systems_in_clusters_is_flipping_signs(rows: list[tuple[int, int]]) -> None:
    """For a mean; and a handful of clusters cannot make a p as small as a bootstrap would."""
    totals = [{str(c): np.array([row[i], 4.0]) for c, row in enumerate(rows)} for i in (0, 1)]
    found = paired_cluster_bootstrap(*totals, lambda s: s[:, 0] / s[:, 1], iterations=50)
    assert found is not None
    assert found.p == pytest.approx(sign_flip([a - b for a, b in rows]))
    assert found.p >= 2 ** (1 - len(rows))


def test_the_bootstrap_of_a_mean_agrees_with_its_formula() -> None:
    rng = np.random.default_rng(8)
    rows = [(a, b, str(c)) for c in range(80) for a, b in rng.normal(size=(3, 2))]
    formula = paired_difference(
        [a for a, _, _ in rows], [b for _, b, _ in rows], [c for *_, c in rows]
    )
    totals = [
        {c: np.array([sum(r[i] for r in rows if r[2] == c), 3.0]) for c in {r[2] for r in rows}}
        for i in (0, 1)
    ]
    found = paired_cluster_bootstrap(*totals, lambda sums: sums[:, 0] / sums[:, 1])
    assert found is not None
    assert found.value == pytest.approx(formula.value)
    assert found.stderr == pytest.approx(formula.stderr, rel=0.05)
    assert found.low == pytest.approx(formula.low, abs=0.02)
