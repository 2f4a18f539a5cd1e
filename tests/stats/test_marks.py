"""Marks: what is best, what only was not beaten, and how often chance alone gives a mark."""

import functools
import random
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from lm_eval_ext.cards import cards
from lm_eval_ext.stats.intervals import (
    UNIT,
    interval,
    jackknife,
    mean_estimate,
    probability_of,
)
from lm_eval_ext.stats.marks import ColumnTests, Standing, column_tests, standings
from lm_eval_ext.stats.measures import Measure, Question, Unit
from lm_eval_ext.stats.paired import holm
from lm_eval_ext.stats.statistics import (
    STATISTICS,
    better_than,
    counting_clusters,
    estimate,
    pairs,
)
from lm_eval_ext.stats.table import frame

SHARE = Measure(name="m", title="M", value=("v",))
HALF = SHARE.model_copy(update={"chance": 0.5})
GAIN = SHARE.model_copy(update={"unit": "points"})


def table(values: Sequence[float], clusters: int = 10) -> pd.DataFrame:
    """A long table with a row for each document."""
    return frame(
        (str(number), str(number), (f"c{number % clusters}",), [{"v": value}])
        for number, value in enumerate(values)
    )


def share_of(right: int, documents: int = 40) -> list[float]:
    """Scores of which the first ones are 1."""
    return [1.0] * right + [0.0] * (documents - right)


def column(measure: Measure, systems: dict[str, pd.DataFrame]) -> ColumnTests:
    """Test each of these systems against chance and against the others."""
    question = Question(measure)
    values = {name: estimate(rows, question).value for name, rows in systems.items()}
    return column_tests(values, systems, question, pairs(systems, question), measure.baseline)


def standing(measure: Measure, systems: dict[str, pd.DataFrame]) -> dict[str, Standing]:
    """Return how each system stands in a table of one column."""
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
        pytest.param(SHARE, (30,), ("alone",), id="one model alone"),
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
    systems = {f"m{number}": table(share_of(count)) for number, count in enumerate(right)}
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
    """A gain whose interval holds 0 is not marked, and an unbeaten loss does not look beaten."""
    systems = {"a": table(values), "b": table([value - 0.01 for value in values])}
    assert standing(GAIN, systems)["a"] == expected


def test_few_clusters_are_not_tested() -> None:
    """Five clusters cannot show anything, so the mark says "untested" instead of "not better"."""
    systems = {"a": table(share_of(40), 5), "b": table(share_of(39), 5)}
    assert set(standing(HALF, systems).values()) == {"untested"}


@pytest.mark.parametrize("right", range(12, 41, 4))
def test_the_p_value_belongs_to_the_interval(right: int) -> None:
    """The interval of level 1 - p ends at the baseline: so p < 0.05 where it excludes it."""
    mean = mean_estimate(share_of(right), [str(number % 10) for number in range(40)])
    bounds = interval(mean, UNIT)
    assert bounds.low is not None
    assert bounds.high is not None
    for baseline in (0.3, 0.5, 0.7):
        p_value = probability_of(mean, baseline, UNIT)
        assert p_value is not None
        assert (p_value < 0.05) == (not bounds.low <= baseline <= bounds.high)
    assert probability_of(mean, bounds.low, UNIT) == pytest.approx(0.05)


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
def test_a_baseline_follows_from_the_unit(
    unit: Unit, lower_is_better: bool, expected: float | None
) -> None:
    """The value that a model has to exceed follows from the unit, where chance is not stated."""
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
    """A value that is best in a table of its column alone is not, among 20 columns at chance."""
    alone = ColumnTests({"a": 0.7, "b": 0.6}, {"a": 0.02, "b": 0.4}, frozenset(), frozenset("ab"))
    chance = ColumnTests({"a": 0.5, "b": 0.5}, {"a": 1.0, "b": 1.0}, frozenset(), frozenset("ab"))
    assert standings({0: alone})[0] == {"a": "best", "b": "unproven"}
    crowd = standings({0: alone, **dict.fromkeys(range(1, 20), chance)})
    assert crowd[0] == {"a": "unproven", "b": "unproven"}
    # With enough real findings the level of each is nearly 0.05.
    real = standings(dict.fromkeys(range(20), alone))
    assert {column_standings["a"] for column_standings in real.values()} == {"best"}


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
    pool = p_values_of_guesses(items, alike)
    tables = 400
    marked_tables = 0
    for _ in range(tables):
        tests = {}
        for number in range(columns):
            tests[number] = guessed_column(rng.choices(pool, k=models))
        marks = {mark for column in standings(tests).values() for mark in column.values()}
        if "best" in marks:
            marked_tables += 1
    assert marked_tables <= 0.05 * tables, f"{marked_tables} of {tables} tables have a mark"


def guessed_column(p_values: Sequence[float | None]) -> ColumnTests:
    """Return a column of models that are not compared with each other, with adjusted p-values."""
    names = [f"m{model}" for model in range(len(p_values))]
    tested = [
        (name, p_value)
        for name, p_value in zip(names, p_values, strict=True)
        if p_value is not None
    ]
    adjusted = holm([p_value for _, p_value in tested])
    against_chance = dict(zip((name for name, _ in tested), adjusted, strict=True))
    return ColumnTests(dict.fromkeys(names, 0.5), against_chance, frozenset(), frozenset(names))


@functools.cache
def p_values_of_guesses(items: int, alike: float) -> list[float | None]:
    """Return p-values of models that guess: a pool, since each test takes milliseconds."""
    rng = random.Random(f"{items} {alike}")
    return [p_value_of_guesses(rng, items, alike) for _ in range(300)]


def p_value_of_guesses(rng: random.Random, items: int, alike: float) -> float | None:
    """Return the p-value of a model that guesses three documents of each item."""
    rows = []
    for item in range(items):
        item_guess = float(rng.random() < 0.5)
        for number in range(3):
            document_guess = float(rng.random() < 0.5)
            value = item_guess if rng.random() < alike else document_guess
            name = f"{item}-{number}"
            rows.append((name, name, (f"c{item}",), [{"v": value}]))
    return better_than(frame(rows), Question(HALF), 0.5)


def relative_rows(answered: int, *, interpretations: int = 16) -> pd.DataFrame:
    """Return rows of a model that gets a third right of the first interpretations, else nothing."""
    documents = []
    for interpretation in range(interpretations):
        for number in range(12):
            for form in ("base", "plausible"):
                row = {
                    "interpretation": f"i{interpretation}",
                    "form": form,
                    "database": "populated",
                    "correct": float(interpretation < answered and number < 4),
                }
                name = f"{interpretation}-{number}-{form}"
                documents.append((name, name, (f"i{interpretation}",), [row]))
    return frame(documents)


@pytest.mark.parametrize(
    ("answered", "used_clusters", "has_interval"),
    [
        pytest.param(2, 2, False, id="two interpretations"),
        pytest.param(4, 4, False, id="16 of 192 right base answers"),
        pytest.param(6, 6, True, id="as many as an interval needs"),
        pytest.param(16, 16, True, id="all"),
    ],
)
def test_what_relative_performance_leaves_out_does_not_narrow_its_interval(
    answered: int, used_clusters: int, *, has_interval: bool
) -> None:
    """100 % from a few interpretations is not 16 of 16."""
    question = cards()["magnifico"].question_of("relative_performance")
    shown = estimate(relative_rows(answered), question)
    assert shown.value == 100
    assert shown.clusters == 16
    assert shown.used_clusters == used_clusters
    assert (shown.low is not None) == has_interval


def test_the_difference_of_two_relative_performances_stands_on_what_either_uses() -> None:
    question = cards()["magnifico"].question_of("relative_performance")
    weak_models = {"a": relative_rows(4), "b": relative_rows(3)}
    a_strong_one = {"a": relative_rows(16), "b": relative_rows(3)}
    assert pairs(weak_models, question)[0].low is None
    assert pairs(a_strong_one, question)[0].low is not None


def test_intervals_of_a_weak_model_hold_the_truth_more_often_if_only_used_clusters_count() -> None:
    """16 interpretations with 6 base questions, of which 10 % are right; new words halve that."""
    rng = np.random.default_rng(1)
    measure = cards()["magnifico"].question_of("relative_performance").measure
    rate, correlation = 0.1, 0.3
    concentration = (1 - correlation) / correlation
    outcomes: dict[str, list[bool]] = {"used": [], "all": []}
    for _ in range(600):
        rates = rng.beta(rate * concentration, (1 - rate) * concentration, 16)
        sums = np.zeros((16, 16, 2, 2))
        for number, base_rate in enumerate(rates):
            sums[number, number, 0] = rng.binomial(6, base_rate), 6
            sums[number, number, 1] = rng.binomial(18, base_rate / 2), 18
        counted_clusters = {
            "used": counting_clusters(sums, measure),
            "all": np.ones(16, dtype=bool),
        }
        for name, counting in counted_clusters.items():
            estimated = jackknife(sums, STATISTICS["relative"], np.full(16, 24), counting)
            low, high, _ = interval(estimated, measure.limits)
            if low is not None and high is not None:
                outcomes[name].append(low <= 50 <= high)
    assert np.mean(outcomes["used"]) > 0.87
    assert np.mean(outcomes["all"]) < 0.85


@pytest.mark.parametrize(
    ("values", "lower_is_better", "expected"),
    [
        pytest.param({"a": 0.6, "b": 0.5}, False, "untested", id="a better value"),
        pytest.param({"a": 0.4, "b": 0.5}, False, "best", id="a worse value"),
        pytest.param({"a": 0.5, "b": 0.5}, False, "best", id="the same value"),
        pytest.param({"a": 0.4, "b": 0.5}, True, "untested", id="a better value, lower is better"),
    ],
)
def test_no_value_is_best_below_one_that_could_not_be_tested(
    values: dict[str, float], lower_is_better: bool, expected: Standing
) -> None:
    tests = ColumnTests(
        values,
        p_values={"b": 0.001},
        beaten=frozenset(),
        compared=frozenset("ab"),
        lower_is_better=lower_is_better,
    )
    assert standings({"": tests})[""] == {"a": "untested", "b": expected}
