"""Relative performance and average accuracy: the paper's formulas by hand, undefined cases."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asking import ask

from lm_eval_ext.stats.statistics import Estimate, mean_of_sums, relative_of_sums
from lm_eval_ext.stats.table import DocumentRows, Row


class Outcome(NamedTuple):
    """A scored document."""

    correct: bool
    interpretation: str
    form: str
    cluster: str


def outcomes(
    interpretation: str, form: str, right: int, total: int, cluster: str = "db"
) -> list[Outcome]:
    """Return outcomes of equal documents, of which the given number are right."""
    return [Outcome(number < right, interpretation, form, cluster) for number in range(total)]


def estimate_of(scored: list[Outcome], measure: str = "relative_performance") -> Estimate:
    """Return the metric of a run that has these outcomes."""
    documents: list[DocumentRows] = []
    for number, outcome in enumerate(scored):
        row: Row = {
            "database": "populated",
            "interpretation": outcome.interpretation,
            "form": outcome.form,
            "correct": outcome.correct,
        }
        documents.append((str(number), str(number), (outcome.cluster,), [row]))
    return ask("magnifico", documents, measure)


@pytest.mark.parametrize(
    "scored",
    [outcomes("a", "plausible", 3, 3), outcomes("a", "base", 3, 3), []],
    ids=["only novel examples", "only base examples", "no examples"],
)
def test_without_pairs_of_base_and_novel_examples_there_is_no_value(
    scored: list[Outcome],
) -> None:
    assert estimate_of(scored).value is None


def test_without_a_value_there_is_no_standard_error() -> None:
    scored = [*outcomes("a", "base", 3, 3, "db1"), *outcomes("a", "base", 3, 3, "db2")]
    assert estimate_of(scored).stderr is None


@st.composite
def runs(draw: st.DrawFn) -> list[Outcome]:
    """Draw the outcomes of a run on several databases."""
    scored = []
    for cluster in draw(st.lists(st.sampled_from("uvwxyz"), min_size=2, max_size=6, unique=True)):
        for interpretation in "ab":
            for form in ("base", "plausible", "foreign"):
                size = draw(st.integers(0, 4))
                scored += outcomes(interpretation, form, draw(st.integers(0, size)), size, cluster)
    return scored


def accuracy(scored: list[Outcome], interpretation: str, form: str) -> float | None:
    """Return the share of right outcomes; None if there are none at all."""
    values = []
    for outcome in scored:
        if (outcome.interpretation, outcome.form) == (interpretation, form):
            values.append(outcome.correct)
    if not values:
        return None
    return sum(values) / len(values)


@given(runs())
def test_relative_performance_agrees_with_the_formula_written_out(scored: list[Outcome]) -> None:
    ratios = []
    for form in ("plausible", "foreign"):
        for interpretation in "ab":
            base = accuracy(scored, interpretation, "base")
            novel = accuracy(scored, interpretation, form)
            if base is not None and novel is not None and base >= 0.05:
                ratios.append(min(novel / base, 1))
    value = estimate_of(scored).value
    assert (value is None) == (not ratios)
    if value is not None:
        assert value == pytest.approx(100 * sum(ratios) / len(ratios))
        assert 0 <= value <= 100


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Columns: base right, base, novel right, novel.
        ([(2, 10, 9, 10), (8, 10, 4, 10)], 75),
        ([(1, 20, 0, 40), (8, 10, 4, 10)], 25),
        ([(1, 21, 0, 40), (8, 10, 4, 10)], 50),
        ([(8, 10, 0, 0), (8, 10, 4, 10)], 50),
        ([(0, 0, 4, 10), (8, 10, 4, 10)], 50),
        ([(0, 10, 4, 10)], np.nan),
    ],
    ids=[
        "a ratio is never above 100",
        "5 % of the base examples are enough",
        "4.8 % of them are not",
        "no novel example",
        "no base example",
        "no base example is right",
    ],
)
def test_resamples_are_scored_by_the_same_formula(
    counts: list[tuple[int, int, int, int]], expected: float
) -> None:
    all_right = [(1, 1, 1, 1)] * len(counts)
    sums = np.array([counts, all_right], dtype=float).reshape(2, -1, 2, 2)
    assert relative_of_sums(sums) == pytest.approx([expected, 100], nan_ok=True)


@pytest.mark.parametrize(
    ("scored", "expected"),
    [
        ([*outcomes("a", "base", 90, 100), *outcomes("b", "base", 1, 2)], (0.9 + 0.5) / 2),
        ([*outcomes("a", "plausible", 4, 4), *outcomes("a", "foreign", 0, 1)], 0.5),
        ([], None),
    ],
    ids=["two interpretations", "two forms of one interpretation", "no examples"],
)
def test_in_the_average_an_interpretation_and_its_forms_count_once_each(
    scored: list[Outcome], expected: float | None
) -> None:
    value = estimate_of(scored, "sql_average_accuracy").value
    assert value == pytest.approx(expected)


def test_resamples_are_averaged_over_interpretations_that_have_documents() -> None:
    sums = np.array([[[(1, 2), (0, 0)]], [[(1, 2), (3, 3)]], [[(0, 0), (0, 0)]]], dtype=float)
    assert mean_of_sums(sums) == pytest.approx([0.5, 0.75, np.nan], nan_ok=True)
