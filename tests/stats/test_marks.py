"""Marks: what is best, what only was not beaten, and how often chance alone gives a mark."""

import random
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest

from lm_eval_ext.cards import cards
from lm_eval_ext.stats.intervals import UNIT, interval, mean_estimate, probability_of
from lm_eval_ext.stats.marks import ColumnTests, Standing, column_tests, standings
from lm_eval_ext.stats.measures import Measure, Question
from lm_eval_ext.stats.paired import holm
from lm_eval_ext.stats.statistics import better_than, estimate, pairs
from lm_eval_ext.stats.table import frame

SHARE = Measure(name="m", title="M", value=("v",))
HALF = SHARE.model_copy(update={"chance": 0.5})
GAIN = SHARE.model_copy(update={"unit": "points"})


def table(values: Sequence[float], clusters: int = 10) -> pd.DataFrame:
    """A long table with a row for each document."""
    return frame(
        (str(place), str(place), (f"c{place % clusters}",), [{"v": value}])
        for place, value in enumerate(values)
    )


def share_of(right: int, documents: int = 40) -> list[float]:
    """Scores of which the first ones are 1."""
    return [1.0] * right + [0.0] * (documents - right)


def column(measure: Measure, systems: dict[str, pd.DataFrame]) -> ColumnTests:
    """The tests of a column of these systems."""
    question = Question(measure)
    values = {name: estimate(rows, question).value for name, rows in systems.items()}
    return column_tests(values, systems, question, pairs(systems, question), measure.baseline)


def standing(measure: Measure, systems: dict[str, pd.DataFrame]) -> dict[str, Standing]:
    """How each stands in a table of one column."""
    return standings({"": column(measure, systems)})[""]


@pytest.mark.parametrize(
    ("measure", "right", "expected"),
    [
        pytest.param(HALF, (36, 34, 5), ("best", "best", "beaten"), id="above chance"),
        pytest.param(HALF, (18, 17), ("unproven", "unproven"), id="below chance"),
        pytest.param(HALF, (23, 20), ("unproven", "unproven"), id="hardly above chance"),
        pytest.param(SHARE, (30, 29, 5), ("best", "best", "beaten"), id="above nothing"),
        pytest.param(SHARE, (0, 0), ("unproven", "unproven"), id="nothing right"),
        pytest.param(SHARE, (3, 2), ("unproven", "unproven"), id="right in three clusters"),
        pytest.param(SHARE, (30,), ("",), id="one model alone"),
        pytest.param(
            SHARE.model_copy(update={"lower_is_better": True}),
            (30, 29, 5),
            ("beaten", "beaten", "best"),
            id="lower is better",
        ),
        pytest.param(
            SHARE.model_copy(update={"lower_is_better": True}),
            (40, 40),
            ("unproven", "unproven"),
            id="all errors",
        ),
        pytest.param(
            SHARE.model_copy(update={"unit": "number"}),
            (30, 29),
            ("untested", "untested"),
            id="no known chance",
        ),
    ],
)
def test_a_mark_needs_a_test_against_chance_and_against_the_others(
    measure: Measure, right: tuple[int, ...], expected: tuple[Standing, ...]
) -> None:
    """A value that nobody beats is best only where it is significantly better than chance."""
    systems = {name: table(share_of(n)) for name, n in zip("abc", right, strict=False)}
    assert tuple(standing(measure, systems).values()) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([0.3] * 30 + [0.1] * 10, "best", id="a gain in all clusters"),
        pytest.param([0.9, -0.8] * 20, "unproven", id="a gain that varies"),
        pytest.param([-0.2] * 30 + [-0.1] * 10, "unproven", id="a loss that nobody beats"),
    ],
)
def test_a_gain_is_compared_with_0(values: list[float], expected: Standing) -> None:
    """A gain of .120 [-.173, .412] was marked, and an unbeaten loss looked beaten."""
    systems = {"a": table(values), "b": table([value - 0.01 for value in values])}
    assert standing(GAIN, systems)["a"] == expected


def test_few_clusters_are_not_tested() -> None:
    """Five clusters cannot show anything, so that is said instead of "not better"."""
    systems = {"a": table(share_of(40), 5), "b": table(share_of(39), 5)}
    assert set(standing(HALF, systems).values()) == {"untested"}


@pytest.mark.parametrize("right", range(12, 41, 4))
def test_the_p_value_belongs_to_the_interval(right: int) -> None:
    """The interval of level 1 - p ends at the baseline: so p < 0.05 where it excludes it."""
    found = mean_estimate(share_of(right), [str(place % 10) for place in range(40)])
    ends = interval(found, UNIT)
    assert ends.low is not None and ends.high is not None
    for baseline in (0.3, 0.5, 0.7):
        p = probability_of(found, baseline, UNIT)
        assert p is not None
        assert (p < 0.05) == (not ends.low <= baseline <= ends.high)
    p = probability_of(found, ends.low, UNIT)
    assert p == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("unit", "lower_is_better", "expected"),
    [
        pytest.param("points", False, 0.0, id="a gain"),
        pytest.param("points", True, None, id="a difference that is better small"),
        pytest.param("change", True, 0.0, id="a change of error"),
        pytest.param("share", False, 0.0, id="a share"),
        pytest.param("share", True, 1.0, id="a share of errors"),
        pytest.param("number", False, None, id="any number"),
    ],
)
def test_baselines(unit: Any, lower_is_better: bool, expected: float | None) -> None:
    """What a model has to exceed follows from the unit, where chance is not stated."""
    measure = SHARE.model_copy(update={"unit": unit, "lower_is_better": lower_is_better})
    assert measure.baseline == expected
    assert measure.model_copy(update={"chance": 0.25}).baseline == 0.25


def test_a_trivial_answer_raises_the_baseline() -> None:
    """Copying a demonstration's answer gains .181 on the GLUE tasks, and no model did."""
    card = cards()["conceptual"]
    gain = card.question_of("gain")
    assert card.baseline("conceptual_glue", gain) == 0.181
    assert card.baseline("conceptual_mini", gain) == 0.0


def test_columns_of_a_table_are_adjusted_for_each_other() -> None:
    """What is best in a table of its column alone is not, among 20 columns at chance."""
    alone = ColumnTests({"a": 0.7, "b": 0.6}, {"a": 0.02, "b": 0.4}, frozenset(), frozenset("ab"))
    chance = ColumnTests({"a": 0.5, "b": 0.5}, {"a": 1.0, "b": 1.0}, frozenset(), frozenset("ab"))
    assert standings({0: alone})[0] == {"a": "best", "b": "unproven"}
    crowd = standings({0: alone, **dict.fromkeys(range(1, 20), chance)})
    assert crowd[0] == {"a": "unproven", "b": "unproven"}
    # With enough real findings the level of each is nearly 0.05.
    real = standings(dict.fromkeys(range(20), alone))
    assert {one["a"] for one in real.values()} == {"best"}


@pytest.mark.parametrize(
    ("models", "columns", "items", "alike"),
    [
        pytest.param(2, 1, 12, 0.0, id="two models, one column"),
        pytest.param(6, 1, 12, 0.3, id="six models, correlated items"),
        pytest.param(3, 5, 12, 0.3, id="three models, five columns"),
        pytest.param(4, 3, 8, 0.6, id="few items that are all alike"),
    ],
)
def test_chance_marks_at_most_one_table_in_twenty(
    models: int, columns: int, items: int, alike: float
) -> None:
    """Simulated: all models guess; a table counts if anything in it would be marked.

    Whether a model is beaten by another is left out: it could only take marks away.
    """
    rng = random.Random(f"{models} {columns} {items} {alike}")
    tables, marked = 120, 0
    for _ in range(tables):
        tests = {}
        for number in range(columns):
            p_values = {f"m{model}": _p_of_guesses(rng, items, alike) for model in range(models)}
            known = {name: p for name, p in p_values.items() if p is not None}
            adjusted = dict(zip(known, holm(list(known.values())), strict=True))
            values = dict.fromkeys(p_values, 0.5)
            tests[number] = ColumnTests(values, adjusted, frozenset(), frozenset(p_values))
        shown = {one for row in standings(tests).values() for one in row.values()}
        marked += "best" in shown
    assert marked <= 0.05 * tables, f"{marked} of {tables} tables have a mark"


def _p_of_guesses(rng: random.Random, items: int, alike: float) -> float | None:
    """The p-value of a model that guesses three documents of each item."""
    values = []
    for _ in range(items):
        common = float(rng.random() < 0.5)
        for _ in range(3):
            own = float(rng.random() < 0.5)
            values.append(common if rng.random() < alike else own)
    clusters = [f"c{place // 3}" for place in range(3 * items)]
    rows = frame(
        (str(place), str(place), (cluster,), [{"v": value}])
        for place, (cluster, value) in enumerate(zip(clusters, values, strict=True))
    )
    return better_than(rows, Question(HALF), 0.5)
