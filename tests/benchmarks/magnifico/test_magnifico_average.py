"""Average execution accuracy: each interpretation counts the same."""

import numpy as np
import pytest
from magnifico_outcomes import Outcome, outcomes
from magnifico_outcomes import found as found_of

from lm_eval_ext.stats.statistics import Figure, mean_of_sums


def found(scored: list[Outcome]) -> Figure:
    return found_of(scored, "sql_average_accuracy")


def average_accuracy(scored: list[Outcome]) -> float | None:
    return found(scored).value


def test_an_interpretation_counts_once_however_many_examples_it_has() -> None:
    scored = [*outcomes("a", "base", 90, 100), *outcomes("b", "base", 1, 2)]
    assert average_accuracy(scored) == pytest.approx((0.9 + 0.5) / 2)


def test_forms_of_an_interpretation_count_each() -> None:
    scored = [*outcomes("a", "plausible", 4, 4), *outcomes("a", "foreign", 0, 1)]
    assert average_accuracy(scored) == 0.5
    assert average_accuracy([]) is None


def test_a_group_without_answers_does_not_count() -> None:
    sums = np.array([[[(1, 2), (0, 0)]], [[(1, 2), (3, 3)]], [[(0, 0), (0, 0)]]], dtype=float)
    assert mean_of_sums(sums) == pytest.approx([0.5, 0.75, np.nan], nan_ok=True)


def test_the_error_leaves_out_databases() -> None:
    one = [*outcomes("a", "base", 8, 10, "u"), *outcomes("b", "base", 4, 10, "u")]
    assert found(one).stderr is None
    alike = [*one, *outcomes("a", "base", 8, 10, "v"), *outcomes("b", "base", 4, 10, "v")]
    assert found(alike).stderr == pytest.approx(0, abs=1e-12)
    other = found([*one, *outcomes("a", "base", 0, 10, "v")]).stderr
    assert other is not None
    assert other > 0.1
