"""The paper's tests of effects, on the authors' recorded runs and on invented verdicts."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.lieder_recordings import scored_documents

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
from lm_eval_ext.stats.table import DocumentRows, frame

pytestmark = pytest.mark.slow

PAPERS_MODELS = ("llama2_7B", "babbage-002")
"""The recorded models that are in the paper; gpt2 is in its repository only."""

A_N = "affirmative_negation"
ITEMS = 16

RunTables = dict[str, dict[str, Any]]
"""A table of scores by model and task."""

Verdict = Callable[[str, int, str], bool]
"""Decides for a task, an item and a comparison whether the model is right."""


@cache
def recorded_runs(folder: Path) -> RunTables:
    """Score the authors' recordings of both experiments."""
    runs: RunTables = {}
    for model in PAPERS_MODELS:
        runs[model] = {}
        for experiment in ("base", "diff"):
            documents: list[DocumentRows] = []
            scored = scored_documents(folder, experiment, model)
            for number, document in enumerate(scored):
                item = document.doc["item"]
                documents.append((str(number), str(number), (item,), document.rows))
            runs[model][f"lieder_{experiment}"] = frame(documents)
    return runs


def invented_document(task: str, item: int, family: str, is_right: Verdict) -> DocumentRows:
    """Return a document with rows for both metrics and all comparisons."""
    rows: list[dict[str, Any]] = []
    for metric in ("direct", "relative"):
        for comparison in score.WITH_DISTANCE:
            correct = float(is_right(task, item, comparison.name))
            row = {"metric": metric, "comparison": comparison.name, "family": family}
            rows.append({**row, "correct": correct})
    rows.append({"undefined": 0.0})
    return f"{item} {family}", "", (f"{item}_noun",), rows


def invented_runs(is_right: Verdict, models: int = 2) -> RunTables:
    """Return runs with all items in all families, in which all models have the same verdicts."""
    tables = {}
    for task in ("lieder_base", "lieder_diff"):
        documents = []
        for item in range(ITEMS):
            for family in FAMILIES:
                documents.append(invented_document(task, item, family, is_right))
        tables[task] = frame(documents)
    return {f"model {number}": tables for number in range(models)}


def pooled_by_test(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.test: finding for finding in findings if finding.model == POOLED}


def test_version_on_the_recorded_runs(real_data: Path) -> None:
    """The share right rises from .484 to .656; the paper reports p < .001 for seven models."""
    runs = recorded_runs(real_data)
    findings = analyse(EFFECTS["version"], runs, family=A_N, metric="direct")
    of_models = {}
    for finding in findings:
        if finding.models == 1:
            of_models[finding.model] = (finding.estimate, finding.p)
    assert of_models == {
        "llama2_7B": (7 / 32, 1 / 32),
        "babbage-002": (4 / 32, pytest.approx(0.40625)),
    }
    pooled = pooled_by_test(findings)
    assert list(pooled) == ["sign-flip", "linear mixed"]
    for finding in pooled.values():
        assert (finding.items, finding.models, finding.pairs) == (16, 2, 64)
    assert pooled["sign-flip"].estimate == 11 / 64
    assert pooled["sign-flip"].p == pytest.approx(0.0586, abs=1e-4)
    assert pooled["linear mixed"].estimate == pytest.approx(11 / 64)
    assert pooled["linear mixed"].p == pytest.approx(0.0162, abs=1e-4)


@pytest.mark.parametrize("effect", EFFECTS)
def test_recorded_effects_over_all_families(real_data: Path, effect: str) -> None:
    """Over all three families, both effects are significant in both tests."""
    runs = recorded_runs(real_data)
    pooled = pooled_by_test(analyse(EFFECTS[effect], runs, family=ALL, metric="direct"))
    assert {finding.pairs for finding in pooled.values()} == {2 * 3 * 32}
    assert pooled["linear mixed"].p is not None
    assert pooled["linear mixed"].p < 0.001
    assert pooled["sign-flip"].p is not None
    assert pooled["sign-flip"].p < 0.005


def right_in_the_second_version(task: str, item: int, comparison: str) -> bool:
    """Be right in a quarter of the first version's items, and in the whole second version."""
    return task == "lieder_diff" or item % 4 == 0


def wrong_in_the_second_version(task: str, item: int, comparison: str) -> bool:
    return not right_in_the_second_version(task, item, comparison)


def test_a_rise_is_positive_and_significant() -> None:
    """A share that rises by 0.75 is estimated as that by both tests."""
    runs = invented_runs(right_in_the_second_version)
    pooled = pooled_by_test(analyse(EFFECTS["version"], runs, family=A_N, metric="direct"))
    assert pooled["sign-flip"].estimate == 0.75
    assert pooled["linear mixed"].estimate == pytest.approx(0.75)
    assert pooled["sign-flip"].p is not None
    assert pooled["sign-flip"].p < 0.001


def test_a_fall_is_negative() -> None:
    """The opposite verdicts have the opposite effect."""
    runs = invented_runs(wrong_in_the_second_version)
    pooled = pooled_by_test(analyse(EFFECTS["version"], runs, family=A_N, metric="direct"))
    assert pooled["sign-flip"].estimate == pytest.approx(-0.75)


def test_an_effect_on_fresh_items_compares_the_fresh_tasks() -> None:
    """The comparisons stay the same; the tasks are those of fresh items."""
    pairs = on_fresh_items(EFFECTS["version"]).pairs
    assert pairs["neg_pos_s>pos_pos_s"] == (
        ("lieder_fresh_diff", "neg_pos_s>pos_pos_s"),
        ("lieder_fresh_base", "neg_pos_s>pos_pos_s"),
    )


@pytest.mark.parametrize("effect", EFFECTS)
def test_no_difference_is_no_effect(effect: str) -> None:
    """If an item has the same verdict in all conditions, the estimate is zero and p high."""

    def is_right(task: str, item: int, comparison: str) -> bool:
        return item % 2 == 0

    runs = invented_runs(is_right)
    pooled = pooled_by_test(analyse(EFFECTS[effect], runs, family=A_N, metric="relative"))
    assert pooled["sign-flip"].estimate == 0.0
    assert pooled["sign-flip"].p == 1.0
    assert pooled["linear mixed"].p is None or pooled["linear mixed"].p > 0.9


def test_distance_sets_the_second_clause_against_the_first() -> None:
    """Distance compares two pairs of comparisons, of which one differs here; version sees none."""

    def is_right(task: str, item: int, comparison: str) -> bool:
        return comparison == "neg_pos_s>pos_pos_s" or "neg_neg" in comparison

    runs = invented_runs(is_right, models=1)
    distance, *_ = analyse(EFFECTS["distance"], runs, family=A_N, metric="direct")
    assert distance.test == "sign-flip"
    assert distance.estimate == 0.5
    assert distance.pairs == 32
    version, *_ = analyse(EFFECTS["version"], runs, family=A_N, metric="direct")
    assert version.estimate == 0.0


def test_a_family_without_samples_is_refused() -> None:
    """The error names the family that no sample has."""

    def is_right(task: str, item: int, comparison: str) -> bool:
        return True

    with pytest.raises(OptionError, match="no direct scores of plain_negated"):
        analyse(
            EFFECTS["version"], invented_runs(is_right), family="plain_negated", metric="direct"
        )
