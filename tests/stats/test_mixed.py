"""The mixed model: what it finds, and where there is nothing to find."""

import random
import sys

import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.mixed import Coefficient, mixed_linear

pytestmark = pytest.mark.slow

Rows = tuple[list[float], list[tuple[float, float]], list[str]]


def made(effect: float, seed: int = 0) -> Rows:
    """Verdicts in a design like LIEDER's: 16 items, 14 verdicts under each of two conditions."""
    rng = random.Random(seed)
    rows = []
    for item in range(16):
        own = rng.uniform(0.2, 0.6)
        for condition in (0.0, 1.0):
            for number in range(14):
                right = rng.random() < own + effect * condition
                rows.append((float(right), (condition, float(number % 2)), f"item {item}"))
    outcomes, predictors, clusters = zip(*rows, strict=True)
    return list(outcomes), list(predictors), list(clusters)


def found(*rows: object) -> Coefficient:
    one = mixed_linear(*rows)  # type: ignore[arg-type]
    assert one is not None and one.low < one.value < one.high
    return one


def test_an_effect_is_found_and_none_is_not() -> None:
    ps = [[found(*made(effect, seed)).p for seed in range(8)] for effect in (0.0, 0.3)]
    assert sum(p < 0.05 for p in ps[0]) <= 1
    assert all(p < 0.05 for p in ps[1])


def test_what_cannot_be_estimated_is_none() -> None:
    conditions, clusters = [[float(i % 2)] for i in range(20)], [f"{i // 4}" for i in range(20)]
    assert mixed_linear([1.0] * 20, conditions, clusters) is None


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(OptionError, match=r"pip install '\.\[lieder\]'"):
        mixed_linear(*made(0.0))
