"""The mixed model: real effects are found, others are not, and constant outcomes have none."""

import random
import sys
from typing import NamedTuple

import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.mixed import mixed_linear

pytestmark = pytest.mark.slow


class Design(NamedTuple):
    """The arguments of :func:`mixed_linear`."""

    outcomes: list[float]
    predictors: list[tuple[float, float]]
    clusters: list[str]


def lieder_design(effect: float, seed: int = 0) -> Design:
    """Draw verdicts as in LIEDER: 16 items, 14 verdicts under each of two conditions."""
    rng = random.Random(seed)
    design = Design([], [], [])
    for item in range(16):
        item_rate = rng.uniform(0.2, 0.6)
        for condition in (0.0, 1.0):
            for number in range(14):
                right = rng.random() < item_rate + effect * condition
                design.outcomes.append(float(right))
                design.predictors.append((condition, float(number % 2)))
                design.clusters.append(f"item {item}")
    return design


def p_value(design: Design) -> float:
    """Return the p-value of the effect, whose interval must hold the estimate."""
    effect = mixed_linear(*design)
    assert effect is not None
    assert effect.low < effect.value < effect.high
    return effect.p


def test_no_effect_is_rarely_significant() -> None:
    p_values = [p_value(lieder_design(0.0, seed)) for seed in range(8)]
    assert sum(p < 0.05 for p in p_values) <= 1


@pytest.mark.parametrize("seed", range(8))
def test_a_real_effect_is_significant(seed: int) -> None:
    assert p_value(lieder_design(0.3, seed)) < 0.05


def test_constant_outcomes_have_no_estimate() -> None:
    conditions = [[float(number % 2)] for number in range(20)]
    clusters = [str(number // 4) for number in range(20)]
    assert mixed_linear([1.0] * 20, conditions, clusters) is None


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(OptionError, match=r"pip install '\.\[lieder\]'"):
        mixed_linear(*lieder_design(0.0))
