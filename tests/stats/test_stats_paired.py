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
from lm_eval_ext.stats.intervals import DIFFERENCE
from lm_eval_ext.stats.paired import mcnemar, paired_difference, paired_statistic, swap_test

LEVEL = 0.95


def sign_flip(sums: Sequence[float], *, seed: int = 0) -> float:
    """Of the sums by cluster."""
    gaps = {f"{place:04}": np.array([one]) for place, one in enumerate(sums)}
    nothing = {name: np.zeros(1) for name in gaps}
    p = swap_test(gaps, nothing, lambda total: total[:, 0], seed=seed)
    return 1.0 if p is None else p  # of a single cluster


def ratio(sums: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return sums[:, 0] / sums[:, 1]


def totals_of(rows: Sequence[tuple[int, int]], size: float = 4.0) -> list[dict[str, np.ndarray]]:  # type: ignore[type-arg]
    return [{str(c): np.array([row[i], size]) for c, row in enumerate(rows)} for i in (0, 1)]


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
    # A little more than the level: the page has the figures.
    assert binomial_band(runs, LEVEL)[0] <= covered / runs <= 0.98


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
        assert (found.p, found.low) == (1.0, None), "four clusters have no interval"
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


def test_a_model_against_itself_has_a_width() -> None:
    """That 48 answers never differ does not show that no answer would."""
    clusters = [str(place // 3) for place in range(48)]
    found = paired_difference([1.0] * 48, [1.0] * 48, clusters, limits=DIFFERENCE)
    assert found.low is not None
    assert found.high is not None
    assert found.low == -found.high
    assert 0.02 < found.high < 0.1
    assert found.p == 1


def test_a_single_document_each_is_nearly_a_paired_t_interval() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=60), rng.normal(size=60)
    found = paired_difference(list(first), list(second), [str(i) for i in range(60)])
    expected = stats.ttest_rel(first, second).confidence_interval(LEVEL)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=0.02)


def test_the_order_of_documents_changes_nothing() -> None:
    rng = np.random.default_rng(6)
    for differ in (24, 60):  # all exchanges, and drawn ones
        clusters = [str(place // 2) for place in range(60)]
        one = list(rng.normal(size=60))
        two = [*rng.normal(0.8, 1, size=differ), *one[differ:]]
        found = paired_difference(one, two, clusters)
        order = list(rng.permutation(60))
        shuffled = [[values[place] for place in order] for values in (one, two, clusters)]
        assert paired_difference(*shuffled) == found  # type: ignore[arg-type]
        assert found.p is not None
        assert 0 < found.p < 1


@pytest.mark.parametrize("clusters", [2, 5, 6])
def test_few_clusters_that_agree_are_no_proof(clusters: int) -> None:
    names = [str(place % clusters) for place in range(60)]
    p = paired_difference([1.0] * 60, [0.0] * 60, names).p
    assert p is not None
    assert p == 2 ** (1 - clusters)
    assert (p < 0.05) is (clusters >= 6)


def test_what_cannot_be_compared_is_an_error() -> None:
    with pytest.raises(ValueError, match="no documents"):
        paired_difference([], [], [])
    with pytest.raises(ValueError, match="not as many"):
        paired_difference([1.0], [2.0], ["a", "b"])
    one, two = {"a": np.ones(2)}, {"b": np.ones(2)}
    with pytest.raises(ValueError, match="same clusters"):
        paired_statistic(one, two, ratio, ["a"])


def test_a_statistic_of_equal_systems_and_of_undefined_values() -> None:
    clusters = [str(place) for place in range(12)]
    totals = {name: np.array([int(name) % 3, 3.0]) for name in clusters}
    same = paired_statistic(totals, totals, ratio, clusters, limits=DIFFERENCE)
    assert (same.value, same.p, same.stderr) == (0.0, 1.0, 0.0)
    assert same.low is not None
    assert same.low < 0

    def nowhere(sums: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return np.full(len(sums), np.nan)

    undefined = paired_statistic(totals, totals, nowhere, clusters)
    assert math.isnan(undefined.value)
    assert (undefined.p, undefined.low, undefined.test) == (None, None, None)
    one = paired_statistic({"a": np.ones(1)}, {"a": np.zeros(1)}, lambda s: s[:, 0], ["a"])
    assert (one.value, one.p) == (1.0, None)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_exchanging_systems_in_clusters_is_flipping_signs(rows: list[tuple[int, int]]) -> None:
    """For a mean; and a handful of clusters cannot make a small p."""
    found = paired_statistic(*totals_of(rows), ratio, [str(c) for c in range(len(rows))])
    assert found.p == pytest.approx(sign_flip([a - b for a, b in rows]))
    assert found.p is not None
    assert found.p >= 2 ** (1 - len(rows))


def test_a_mean_as_a_statistic_agrees_with_its_formula() -> None:
    rng = np.random.default_rng(8)
    rows = [(a, b, str(c)) for c in range(80) for a, b in rng.normal(size=(3, 2))]
    clusters = [c for *_, c in rows]
    formula = paired_difference([a for a, _, _ in rows], [b for _, b, _ in rows], clusters)
    totals = [
        {c: np.array([sum(r[i] for r in rows if r[2] == c), 3.0]) for c in set(clusters)}
        for i in (0, 1)
    ]
    found = paired_statistic(*totals, ratio, clusters)
    assert found.value == pytest.approx(formula.value)
    assert found.stderr == pytest.approx(formula.stderr)
    assert found.low == pytest.approx(formula.low, abs=0.02)
