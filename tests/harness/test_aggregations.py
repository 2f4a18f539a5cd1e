"""Metrics that aren't averages, as lm-eval asks for them."""

from typing import Any

import pytest
from lm_eval.api.registry import get_aggregation

from lm_eval_ext.harness.metrics import register_statistic, register_uncertainty
from lm_eval_ext.harness.names import HIGH, LOW, NONE, STDERR
from lm_eval_ext.stats import Uncertainty


def test_a_figure_gets_no_none_and_may_not_exist() -> None:
    register_statistic("test_largest", lambda values: max(values) if values else None)
    aggregate = get_aggregation("test_largest")
    assert aggregate([None, 3.0, None, 5.0]) == 5.0
    assert aggregate([None]) == NONE


def test_a_spread_is_computed_once_for_the_same_values() -> None:
    asked: list[list[Any]] = []

    def uncertainty(values: list[Any]) -> Uncertainty | None:
        asked.append(values)
        return Uncertainty(1.0, min(values), max(values)) if len(values) > 1 else None

    register_uncertainty("test_spread", uncertainty)
    one, two, three = float("0.25"), float("0.75"), float("0.5")
    parts = [get_aggregation("test_spread" + ending) for ending in (STDERR, LOW, HIGH)]
    # lm-eval gives each of them a list of its own.
    assert [part([one, None, two]) for part in parts] == [1.0, 0.25, 0.75]
    assert len(asked) == 1
    assert [part([one, three, None]) for part in parts] == [1.0, 0.25, 0.5]
    assert [part([one, None]) for part in parts] == [NONE, NONE, NONE]
    assert len(asked) == 3


@pytest.mark.parametrize(
    "name", ["magnifico_relative_performance", "magnifico_average_accuracy", "diner_micro_f1"]
)
def test_ours_are_there(name: str) -> None:
    import lm_eval_ext.benchmarks.diner.score
    import lm_eval_ext.benchmarks.magnifico.score

    assert lm_eval_ext.benchmarks.diner.score and lm_eval_ext.benchmarks.magnifico.score
    for ending in ("", STDERR, LOW, HIGH):
        assert get_aggregation(name + ending)([None]) == NONE
