"""Metrics that aren't averages, as lm-eval asks for them, and the intervals beside metrics."""

from typing import Any

import pytest
from lm_eval.api.registry import get_aggregation

from lm_eval_ext.harness.metrics import (
    document_results,
    metric_entries,
    register_estimate,
    register_statistic,
)
from lm_eval_ext.harness.names import NONE, STDERR
from lm_eval_ext.harness.noting import Noted, by_filter, noting
from lm_eval_ext.stats import Estimate


def test_a_figure_gets_no_none_and_may_not_exist() -> None:
    register_statistic("test_largest", lambda values: max(values) if values else None)
    aggregate = get_aggregation("test_largest")
    assert aggregate([None, 3.0, None, 5.0]) == 5.0
    assert aggregate([None]) == NONE


def test_an_estimate_is_computed_once_for_the_same_values() -> None:
    asked: list[list[Any]] = []

    def estimate(values: list[Any]) -> Estimate | None:
        asked.append(values)
        return Estimate(sum(values), 0.5, len(values), 2, 2.0) if len(values) > 1 else None

    register_estimate("test_spread", estimate)
    register_statistic("test_spread", sum)
    one, two, three = float("0.25"), float("0.75"), float("0.5")
    entries = [{"metric": "m", "aggregation": "test_spread", "range": [0, None]}]
    noted: Noted = {}
    value = noting({"m": get_aggregation("test_spread")}, entries, noted)["m"]
    error = get_aggregation("test_spread" + STDERR)
    # lm-eval gives each of them a list of its own.
    assert (value([one, None, two]), error([one, None, two])) == (1.0, 0.5)
    assert len(asked) == 1
    assert error([one, three, None]) == 0.5
    assert error([one, None]) == NONE
    assert len(asked) == 3
    assert noted == {"m": [{"documents": 2, "clusters": 2}]}, "too few clusters for an interval"


def test_intervals_are_noted_by_metric_and_filter() -> None:
    entries = metric_entries(["share"])
    aggregations = {one["metric"]: get_aggregation(one["aggregation"]) for one in entries}
    noted: Noted = {}
    watched = noting(aggregations, entries, noted)
    for right in (1.0, 0.0):
        rows = [document_results({"share": right}, str(place % 8)) for place in range(16)]
        for metric in ("share", "share" + STDERR):
            watched[metric]([row[metric] for row in rows])
    found = by_filter(noted, ["strict", "loose"])
    assert set(found) == {"share,strict", "share,loose"}
    assert found["share,strict"]["high"] == 1
    assert found["share,loose"]["low"] == 0
    assert {one["clusters"] for one in found.values()} == {8}
    assert watched["share"]([0.5, 0.5]) == 0.5, "scores without clusters, of a user's own function"
    assert noted["share"][-1] is None


@pytest.mark.parametrize(
    "name", ["magnifico_relative_performance", "magnifico_average_accuracy", "diner_micro_f1"]
)
def test_ours_are_there(name: str) -> None:
    import lm_eval_ext.benchmarks.diner.counts
    import lm_eval_ext.benchmarks.magnifico.score

    assert lm_eval_ext.benchmarks.diner.counts and lm_eval_ext.benchmarks.magnifico.score
    for ending in ("", STDERR):
        assert get_aggregation(name + ending)([None]) == NONE
