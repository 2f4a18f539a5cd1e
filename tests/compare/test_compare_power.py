"""How many items would show a difference: from runs whose spread is known, and bad input."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.compare.comparison import compare
from lm_eval_ext.compare.power import needed
from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.stats.power import clusters_needed

ASKED = {"task": "lieder_mini", "difference": 0.05}


def test_the_spread_of_several_models_is_the_mean_over_all_pairs(runs: Path) -> None:
    """Of variances: neither their sum nor that of one pair; documents are those of a cluster."""
    (table,) = compare(read_models([runs]), ["lieder_mini"], ScoreQuery()).tables
    variances = [(pair.stderr or 0) ** 2 for pair in table.pairs]
    assert len(set(variances)) == 3
    three = needed([runs], **ASKED)
    assert three.spread**2 == pytest.approx(16 * sum(variances) / 3)
    assert three.clusters == clusters_needed(0.05, three.spread**2)
    assert three.documents == 3 * (three.clusters or 0)
    assert (three.metric, three.unit) == ("direct", "item") and "3 models" in three.source
    assert needed([runs / "good", runs / "poor"], **ASKED).spread ** 2 == pytest.approx(
        16 * variances[0]
    )
    more = needed([runs], **ASKED, models=7)
    assert more.clusters == clusters_needed(0.05, three.spread**2, alpha=0.05 / 21)


def test_stated_rates() -> None:
    found = needed([], task="lieder_base", difference=0.05, rate=0.8, icc=0.2, per_cluster=3)
    assert (found.clusters, found.documents, found.unit) == (469, 1407, "item")
    assert needed([], task="lieder_base", difference=0.05, rate=0.8, per_cluster=1.5).documents
    other = needed([], task="mmlu", difference=0.05, rate=0.8)
    assert other.unit == "cluster" and other.documents == other.clusters


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"difference": 0}, "--difference: Input should be greater than 0, got 0"),
    ({"power": 1}, "--power: Input should be less than 1, got 1"),
    ({"models": 1}, "--models: Input should be greater than or equal to 2"),
    ({"per_cluster": 0}, "--per-cluster: Input should be greater than or equal to 1"),
    ({"rate": None}, "give results of a pilot run; or --rate, with --icc"),
    ({"rate": 0.99}, "0.965 and 1.015 are not both from 0 to 1"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    right = {"task": "lieder_base", "difference": 0.05, "rate": 0.8, "icc": 0.2}
    with pytest.raises(LmEvalExtError, match=re.escape(message)):
        needed([], **{**right, **options})


def test_bad_pilots(runs: Path) -> None:
    with pytest.raises(LmEvalExtError, match="no task lieder_mini is in the results of two models"):
        needed([runs / "good"], **ASKED)
    for options, message in (
        ({"task": "lieder_two"}, "no task lieder_two is in the results of two models"),
        ({"task": "cogs_mini_[gi]*"}, "is cogs_mini_gen, cogs_mini_id; name one of them"),
        ({"metric": "nope"}, "lieder_mini has no metric nope; available: direct"),
        ({"difference": 5}, "--difference 5 is not legal; direct goes from 0 to 1"),
        ({"metric": "undefined"}, "lieder_mini: nothing varies"),
        ({"per_cluster": 3}, "give results of a pilot run; or --rate"),
    ):
        with pytest.raises(LmEvalExtError, match=re.escape(message)):
            needed([runs], **{**ASKED, **options})


def test_the_command(runs: Path) -> None:
    pilot = ["power", "lieder_mini", *(str(runs / name) for name in ("good", "poor"))]
    pilot += ["--difference", "0.2"]
    first, second, third, fourth, *_ = CliRunner().invoke(app, pilot).output.splitlines()
    assert first == "lieder_mini, direct: two models that differ by 0.2"
    assert third == "the task has: 16 items"
    assert re.fullmatch(r"16 items show: a difference of 0\.1\d+ or more", fourth)
    line = r"needed: (\d+) items, \d+ documents; power 0.8, level 0.05, 2 models"
    found = re.fullmatch(line, second)
    told = json.loads(CliRunner().invoke(app, [*pilot, "--json"]).output)
    assert found and int(found[1]) == told["clusters"]


def test_what_a_task_cannot_show_is_not_needed(runs: Path) -> None:
    """It asked for 415 generalization types where 21 exist."""
    pilot = ["power", "cogs_mini_gen", *(str(runs / name) for name in ("good", "poor"))]
    output = CliRunner().invoke(app, [*pilot, "--difference", "0.01"]).output
    assert "needed" not in output
    assert "this task cannot show it: it has too few generalization types" in output
    assert "the task has: 10 generalization types" in output
    assert "a pilot of 10 generalization types is small" in " ".join(output.split())


def test_what_items_show_is_the_difference_that_needs_them() -> None:
    """The two questions are each other's inverse."""
    stated = {"task": "lieder_fresh_base", "rate": 0.8, "icc": 0.2, "per_cluster": 3}
    clusters = needed([], **stated, difference=0.05).clusters
    assert clusters is not None
    shows = needed([], **stated, items=clusters).shows
    assert shows == pytest.approx(0.05, rel=0.01)
    with pytest.raises(LmEvalExtError, match="give --difference for how many"):
        needed([], **stated)
