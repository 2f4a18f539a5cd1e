"""The paper's tests: on the authors' recorded runs, and on verdicts that are made up."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_lieder_score import recorded

from lm_eval_ext.benchmarks.lieder import score
from lm_eval_ext.benchmarks.lieder.effects import (
    ALL,
    EFFECTS,
    POOLED,
    Finding,
    analyse,
    on_fresh_items,
)
from lm_eval_ext.benchmarks.lieder.records import FAMILIES
from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.table import Scored, frame

pytestmark = pytest.mark.slow

PAPERS = ("llama2_7B", "babbage-002")
"""Of the recorded runs those that are in the paper; gpt2 is in its repository only."""

A_N = "affirmative_negation"
Runs = dict[str, dict[str, Any]]


def runs_of(folder: Path) -> Runs:
    return {
        model: {
            f"lieder_{experiment}": frame(
                (str(place), str(place), (doc["item"],), rows)
                for place, (doc, rows) in enumerate(recorded(folder, experiment, model))
            )
            for experiment in ("base", "diff")
        }
        for model in PAPERS
    }


def made(right: Callable[[str, int, str], bool], models: int = 2) -> Runs:
    """Verdicts for 16 items in three families; ``right`` gets task, item and comparison."""

    def document(task: str, item: int, family: str) -> Scored:
        rows = [
            {
                "metric": metric, "comparison": one.name, "family": family,
                "correct": float(right(task, item, one.name)),
            }
            for metric in ("direct", "relative")
            for one in score.SEVENTEEN
        ]  # fmt: skip
        return f"{item} {family}", "", (f"{item}_noun",), [*rows, {"undefined": 0.0}]

    return {
        f"model {number}": {
            task: frame(document(task, item, family) for item in range(16) for family in FAMILIES)
            for task in ("lieder_base", "lieder_diff")
        }
        for number in range(models)
    }


def by_test(found: list[Finding], model: str = POOLED) -> dict[str, Finding]:
    return {row.test: row for row in found if row.model == model}


def test_version_on_the_recorded_runs(real_data: Path) -> None:
    """The share right rises from .484 to .656; the paper reports p < .001 for seven models."""
    found = analyse(EFFECTS["version"], runs_of(real_data), family=A_N, metric="direct")
    own = {row.model: row for row in found if row.models == 1}
    assert {name: (row.estimate, row.p) for name, row in own.items()} == {
        "llama2_7B": (7 / 32, 1 / 32),
        "babbage-002": (4 / 32, pytest.approx(0.40625)),
    }
    pooled = by_test(found)
    assert list(pooled) == ["sign-flip", "linear mixed"]
    assert {(row.items, row.models, row.pairs) for row in pooled.values()} == {(16, 2, 64)}
    assert pooled["sign-flip"].estimate == 11 / 64
    assert pooled["sign-flip"].p == pytest.approx(0.0586, abs=1e-4)
    assert pooled["linear mixed"].estimate == pytest.approx(11 / 64)
    assert pooled["linear mixed"].p == pytest.approx(0.0162, abs=1e-4)


def test_version_and_distance_over_all_families(real_data: Path) -> None:
    runs = runs_of(real_data)
    for effect in EFFECTS.values():
        pooled = by_test(analyse(effect, runs, family=ALL, metric="direct"))
        assert {row.pairs for row in pooled.values()} == {2 * 3 * 32}
        assert pooled["linear mixed"].p is not None and pooled["linear mixed"].p < 0.001
        assert pooled["sign-flip"].p is not None and pooled["sign-flip"].p < 0.005


def test_a_rise_is_found_in_its_direction() -> None:
    def right(task: str, item: int, comparison: str) -> bool:
        return task == "lieder_diff" or item % 4 == 0

    found = by_test(analyse(EFFECTS["version"], made(right), family=A_N, metric="direct"))
    fresh = on_fresh_items(EFFECTS["version"]).pairs
    assert fresh["neg_pos_s>pos_pos_s"] == (
        ("lieder_fresh_diff", "neg_pos_s>pos_pos_s"), ("lieder_fresh_base", "neg_pos_s>pos_pos_s"),
    )  # fmt: skip
    assert found["sign-flip"].estimate == 0.75
    assert found["linear mixed"].estimate == pytest.approx(0.75)
    assert found["sign-flip"].p is not None and found["sign-flip"].p < 0.001
    fallen = made(lambda task, item, name: not right(task, item, name))
    found = by_test(analyse(EFFECTS["version"], fallen, family=A_N, metric="direct"))
    assert found["sign-flip"].estimate == pytest.approx(-0.75)


def test_no_difference_is_no_effect() -> None:
    runs = made(lambda task, item, comparison: item % 2 == 0)
    for effect in EFFECTS.values():
        found = by_test(analyse(effect, runs, family=A_N, metric="relative"))
        assert found["sign-flip"].estimate == 0.0
        assert found["sign-flip"].p == 1.0
        assert found["linear mixed"].p is None or found["linear mixed"].p > 0.9


def test_distance_sets_the_second_clause_against_the_first() -> None:
    def right(task: str, item: int, comparison: str) -> bool:
        return comparison == "neg_pos_s>pos_pos_s" or "neg_neg" in comparison

    (alone, *_) = analyse(EFFECTS["distance"], made(right, 1), family=A_N, metric="direct")
    assert (alone.test, alone.estimate) == ("sign-flip", 0.5), "two kinds, one differs"
    assert alone.pairs == 32
    version = analyse(EFFECTS["version"], made(right, 1), family=A_N, metric="direct")
    assert version[0].estimate == 0.0


def test_a_family_that_no_sample_has() -> None:
    with pytest.raises(OptionError, match="no direct scores of plain_negated"):
        analyse(EFFECTS["version"], made(lambda *_: True), family="plain_negated", metric="direct")
