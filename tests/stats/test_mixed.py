"""The mixed model: what it finds, and where there is nothing to find."""

import math
import random
import sys

import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.mixed import Coefficient, mixed_linear

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


def test_linear_is_the_difference_of_means_in_a_balanced_design() -> None:
    outcomes, predictors, clusters = made(0.8)
    both = [
        [o for o, (condition, _) in zip(outcomes, predictors, strict=True) if condition == which]
        for which in (0.0, 1.0)
    ]
    first, second = (sum(one) / len(one) for one in both)
    found = estimate(mixed_linear(outcomes, predictors, clusters))
    assert found.value == pytest.approx(second - first)


def test_an_effect_is_found_and_none_is_not() -> None:
    found = [[mixed_linear(*made(effect, seed=seed)) for seed in range(8)] for effect in (0.0, 1.5)]
    rates = [sum(estimate(one).p < 0.05 for one in of_effect) for of_effect in found]
    assert rates[0] <= 1
    assert rates[1] == 8


def test_the_order_of_rows_and_the_names_of_clusters_do_not_matter() -> None:
    outcomes, predictors, clusters = made(0.8)
    rows = list(zip(outcomes, predictors, [f"no. {name}" for name in clusters], strict=True))
    random.Random(1).shuffle(rows)
    again = mixed_linear(*zip(*rows, strict=True))
    assert vars(again) == pytest.approx(
        vars(estimate(mixed_linear(outcomes, predictors, clusters))), rel=1e-3
    )


def test_what_cannot_be_estimated_is_none() -> None:
    conditions, clusters = [[float(i % 2)] for i in range(20)], [f"{i // 4}" for i in range(20)]
    same = [1.0] * 20
    assert mixed_linear(same, conditions, clusters) is None


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.api", None)
    with pytest.raises(OptionError, match=r"pip install 'lm-eval-ext\[lieder\]'"):
        mixed_linear(*made(0.0))
