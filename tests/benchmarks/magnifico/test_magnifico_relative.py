"""Relative performance and average accuracy: the paper's formulas by hand, undefined cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asking import ask

from lm_eval_ext.stats.statistics import Estimate, mean_of_sums, relative_of_sums

Outcome = tuple[bool, str, str, str]
"""Whether it is right, interpretation, form and database."""


def outcomes(
    interpretation: str, form: str, right: int, all_of: int, cluster: str = "db"
) -> list[Outcome]:
    return [(n < right, interpretation, form, cluster) for n in range(all_of)]


def found(scored: list[Outcome], measure: str = "relative_performance") -> Estimate:
    documents = (
        (
            str(place), str(place), (cluster,),
            [{"database": "populated", "interpretation": name, "form": form, "correct": right}],
        )
        for place, (right, name, form, cluster) in enumerate(scored)
    )  # fmt: skip
    return ask("magnifico", documents, measure)


def test_novel_examples_without_base_ones_do_not_count() -> None:
    for scored in (outcomes("a", "plausible", 3, 3), outcomes("a", "base", 3, 3), []):
        assert found(scored).value is None
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
    value = found(scored).value
    assert (value is None) == (not ratios)
    if value is not None:
        assert value == pytest.approx(100 * sum(ratios) / len(ratios))
        assert 0 <= value <= 100


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # Columns: base right, base, novel right, novel.
        ([(2, 10, 9, 10), (8, 10, 4, 10)], 75),  # one is never above 100
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


def test_in_the_average_an_interpretation_and_its_forms_count_once_each() -> None:
    def average(scored: list[Outcome]) -> float | None:
        return found(scored, "sql_average_accuracy").value

    sizes = [*outcomes("a", "base", 90, 100), *outcomes("b", "base", 1, 2)]
    assert average(sizes) == pytest.approx((0.9 + 0.5) / 2)
    assert average([*outcomes("a", "plausible", 4, 4), *outcomes("a", "foreign", 0, 1)]) == 0.5
    assert average([]) is None
    sums = np.array([[[(1, 2), (0, 0)]], [[(1, 2), (3, 3)]], [[(0, 0), (0, 0)]]], dtype=float)
    assert mean_of_sums(sums) == pytest.approx([0.5, 0.75, np.nan], nan_ok=True)
