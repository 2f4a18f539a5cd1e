"""Mixed models: against other estimators of the same effect, and where there is none."""

import math
import random
import sys

import numpy as np
import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.mixed import Coefficient, mixed_linear, mixed_logistic

pytestmark = pytest.mark.slow

Rows = tuple[list[float], list[tuple[float, float]], list[str]]


def made(effect: float, *, spread: float = 1.0, seed: int = 0, items: int = 16) -> Rows:
    """Verdicts in a design like LIEDER's: 16 items, 14 verdicts under each of two conditions."""
    rng = random.Random(seed)
    rows = []
    for item in range(items):
        own = rng.gauss(0, spread)
        for condition in (0.0, 1.0):
            for number in range(14):
                kind = float(number % 2)
                chance = 1 / (1 + math.exp(-(own + effect * condition + kind - 0.5)))
                rows.append((float(rng.random() < chance), (condition, kind), f"item {item}"))
    outcomes, predictors, clusters = zip(*rows, strict=True)
    return list(outcomes), list(predictors), list(clusters)


def estimate(found: Coefficient | None) -> Coefficient:
    assert found is not None
    assert found.low < found.value < found.high
    return found


@pytest.mark.parametrize(("effect", "spread"), [(0.0, 0.3), (0.8, 1.0), (-1.2, 2.0)])
def test_logistic_is_conditional_logistic_regression(effect: float, spread: float) -> None:
    """That one assumes nothing about the intercepts' distribution, and has no integral."""
    from statsmodels.discrete.conditional_models import ConditionalLogit

    outcomes, predictors, clusters = made(effect, spread=spread, seed=3)
    ours = estimate(mixed_logistic(outcomes, predictors, clusters))
    y, x, groups = map(np.asarray, (outcomes, predictors, clusters))
    theirs = ConditionalLogit(y, x, groups=groups).fit(disp=0)
    assert ours.value == pytest.approx(theirs.params[0], rel=0.03)
    assert ours.stderr == pytest.approx(theirs.bse[0], rel=0.02)


def test_without_differences_between_clusters_it_is_the_log_odds_ratio() -> None:
    verdicts, conditions = [1, 0, 0, 0, 1, 1, 0, 1] * 5, [[float(i % 8 > 3)] for i in range(40)]
    clusters = [f"{i // 8}" for i in range(40)]
    found = estimate(mixed_logistic(verdicts, conditions, clusters))
    assert found.value == pytest.approx(math.log(3 / (1 / 3)), abs=1e-4)
    assert found.stderr == pytest.approx(math.sqrt(2 * (1 / 5 + 1 / 15)), rel=1e-3)
    assert estimate(mixed_linear(verdicts, conditions, clusters)).value == pytest.approx(0.5)


def test_linear_is_the_difference_of_means_in_a_balanced_design() -> None:
    outcomes, predictors, clusters = made(0.8)
    both = [
        [o for o, (condition, _) in zip(outcomes, predictors, strict=True) if condition == which]
        for which in (0.0, 1.0)
    ]
    first, second = (sum(one) / len(one) for one in both)
    found = estimate(mixed_linear(outcomes, predictors, clusters))
    assert found.value == pytest.approx(second - first)


@pytest.mark.parametrize("fit", [mixed_linear, mixed_logistic])
def test_an_effect_is_found_and_none_is_not(fit: object) -> None:
    assert callable(fit)
    found = [[fit(*made(effect, seed=seed)) for seed in range(8)] for effect in (0.0, 1.5)]
    rates = [sum(estimate(one).p < 0.05 for one in of_effect) for of_effect in found]
    assert rates[0] <= 1
    assert rates[1] == 8


@pytest.mark.parametrize("fit", [mixed_linear, mixed_logistic])
def test_the_order_of_rows_and_the_names_of_clusters_do_not_matter(fit: object) -> None:
    assert callable(fit)
    outcomes, predictors, clusters = made(0.8)
    rows = list(zip(outcomes, predictors, [f"no. {name}" for name in clusters], strict=True))
    random.Random(1).shuffle(rows)
    again = fit(*zip(*rows, strict=True))
    assert vars(again) == pytest.approx(
        vars(estimate(fit(outcomes, predictors, clusters))), rel=1e-3
    )


def test_wrong_for_right_turns_the_sign() -> None:
    outcomes, predictors, clusters = made(0.8)
    one = estimate(mixed_logistic(outcomes, predictors, clusters))
    other = estimate(mixed_logistic([1 - o for o in outcomes], predictors, clusters))
    assert other.value == pytest.approx(-one.value, rel=1e-3)
    assert other.p == pytest.approx(one.p, rel=1e-2)


def test_what_cannot_be_estimated_is_none() -> None:
    conditions, clusters = [[float(i % 2)] for i in range(20)], [f"{i // 4}" for i in range(20)]
    same = [1.0] * 20
    separated = [one[0] for one in conditions]
    assert mixed_linear(same, conditions, clusters) is None
    assert mixed_logistic(same, conditions, clusters) is None
    assert mixed_logistic(separated, conditions, clusters) is None


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.api", None)
    with pytest.raises(OptionError, match=r"pip install 'lm-eval-ext\[lieder\]'"):
        mixed_linear(*made(0.0))
