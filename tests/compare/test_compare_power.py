"""How many items show a difference: from runs whose spread is known, and bad input."""

import json
import re
import shutil
from collections.abc import Callable
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

QUESTION: dict[str, Any] = {"task": "lieder_mini", "difference": 0.05}


def test_the_spread_of_several_models_is_the_mean_over_all_pairs(runs: Path) -> None:
    """The mean is one of variances, not their sum; documents are counted by cluster."""
    (table,) = compare(read_models([runs]), ["lieder_mini"], ScoreQuery()).tables
    variances = [(pair.stderr or 0) ** 2 for pair in table.pairs]
    assert len(set(variances)) == 3
    three_models = needed([runs], **QUESTION)
    variance = three_models.spread**2
    assert variance == pytest.approx(16 * sum(variances) / 3)
    assert three_models.clusters is not None
    assert three_models.clusters == clusters_needed(0.05, variance)
    assert three_models.documents == 3 * three_models.clusters
    assert (three_models.metric, three_models.unit) == ("direct", "item")
    assert "3 models" in three_models.source
    two_models = needed([runs / "good", runs / "poor"], **QUESTION)
    assert two_models.spread**2 == pytest.approx(16 * variances[0])
    seven_models = needed([runs], **QUESTION, models=7)
    assert seven_models.clusters == clusters_needed(0.05, variance, alpha=0.05 / 21)


def test_stated_rates_need_no_runs() -> None:
    rates: dict[str, Any] = {"difference": 0.05, "rate": 0.8}
    items = needed([], task="lieder_base", **rates, icc=0.2, per_cluster=3)
    assert (items.clusters, items.documents, items.unit) == (469, 1407, "item")
    assert needed([], task="lieder_base", **rates, per_cluster=1.5).documents
    foreign_task = needed([], task="mmlu", **rates)
    assert foreign_task.unit == "cluster"
    assert foreign_task.documents == foreign_task.clusters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"difference": 0}, "--difference: Input should be greater than 0, got 0"),
        ({"power": 1}, "--power: Input should be less than 1, got 1"),
        ({"models": 1}, "--models: Input should be greater than or equal to 2"),
        ({"per_cluster": 0}, "--per-cluster: Input should be greater than or equal to 1"),
        ({"rate": None}, "give results of a pilot run; or --rate, with --icc"),
        ({"rate": 0.99}, "0.965 and 1.015 are not both from 0 to 1"),
    ],
    ids=str,
)
def test_bad_input_is_named(options: dict[str, Any], message: str) -> None:
    valid = {"task": "lieder_base", "difference": 0.05, "rate": 0.8, "icc": 0.2}
    with pytest.raises(LmEvalExtError, match=re.escape(message)):
        needed([], **{**valid, **options})


def test_a_pilot_needs_two_models(runs: Path) -> None:
    with pytest.raises(LmEvalExtError, match="no task lieder_mini is in the results of two models"):
        needed([runs / "good"], **QUESTION)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "lieder_two"}, "no task lieder_two is in the results of two models"),
        ({"task": "cogs_mini_[gi]*"}, "is cogs_mini_gen, cogs_mini_id; name one of them"),
        ({"metric": "nope"}, "lieder_mini has no metric nope; available: direct"),
        (
            {"difference": 5},
            "--difference 5 is not legal; direct goes from 0 to 1; 5 points are 0.05",
        ),
        ({"metric": "undefined"}, "lieder_mini: nothing varies"),
        ({"per_cluster": 3}, "give results of a pilot run; or --rate"),
    ],
    ids=str,
)
def test_a_pilot_without_an_answer_is_refused(
    runs: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(LmEvalExtError, match=re.escape(message)):
        needed([runs], **{**QUESTION, **options})


def power_command(runs: Path, task: str, *options: str) -> str:
    """Return the output of ``lm-eval-ext power`` with a pilot of two models."""
    pilot = [str(runs / "good"), str(runs / "poor")]
    return CliRunner().invoke(app, ["power", task, *pilot, *options]).output


def test_the_command_prints_a_summary_or_json(runs: Path) -> None:
    output = power_command(runs, "lieder_mini", "--difference", "0.2")
    title, needs, available, shows, *_ = output.splitlines()
    assert title == "lieder_mini, direct: two models that differ by 0.2"
    match = re.fullmatch(
        r"needed: (\d+) items, \d+ documents; power 0.8, level 0.05, 2 models", needs
    )
    assert match
    assert available == "the task has: 16 items"
    assert re.fullmatch(r"16 items show: a difference of 0\.1\d+ or more", shows)
    content = json.loads(power_command(runs, "lieder_mini", "--difference", "0.2", "--json"))
    assert content["clusters"] == int(match[1])


def test_a_difference_that_the_task_cannot_show_has_no_number_of_items(runs: Path) -> None:
    """No output asks for 415 generalization types where 21 exist."""
    output = power_command(runs, "cogs_mini_gen", "--difference", "0.01")
    assert "needed" not in output
    assert "this task cannot show it: it has too few generalization types" in output
    assert "the task has: 10 generalization types" in output
    assert "a pilot of 10 generalization types is small" in " ".join(output.split())


def test_a_trial_does_not_show_how_many_items_a_task_has(runs: Path, tmp_path: Path) -> None:
    """It takes documents from as many items as possible, so their shares differ."""
    for name in ("good", "poor"):
        shutil.copytree(runs / name, tmp_path / name)
        for path in (tmp_path / name).rglob("results_*.json"):
            content = json.loads(path.read_text())
            counts = content["n-samples"].get("lieder_mini")
            if counts:
                counts["original"] = 2 * counts["effective"]
                content["config"]["limit"] = counts["effective"]
                path.write_text(json.dumps(content))
    output = " ".join(power_command(tmp_path, "lieder_mini", "--difference", "0.2").split())
    assert "needed: " in output
    assert "the task has: " not in output
    assert "a trial of 48 of 96 documents, which does not show how many items" in output
    pilot = [str(tmp_path / "good"), str(tmp_path / "poor")]
    refused = CliRunner().invoke(app, ["power", "lieder_mini", *pilot])
    message = "the number of items of lieder_mini is not known (a trial does not show it)"
    assert message in str(refused.exception)


def test_a_pilot_may_have_two_prompts(changed: Callable[..., Path], runs: Path) -> None:
    def change_prompt(_number: int, sample: dict[str, Any]) -> dict[str, Any]:
        return {**sample, "prompt_hash": "another"}

    other_prompts = changed(edit_row=change_prompt)
    pilot = ["lieder_mini", str(other_prompts), str(runs / "poor"), "--difference", "0.2"]
    refused = CliRunner().invoke(app, ["power", *pilot])
    assert "--across-settings" in str(refused.exception), refused.output
    done = CliRunner().invoke(app, ["power", *pilot, "--across-settings"])
    assert "needed: " in done.output, done.exception


def test_items_show_the_difference_that_needs_them() -> None:
    """The two questions are each other's inverse."""
    stated = {"task": "lieder_fresh_base", "rate": 0.8, "icc": 0.2, "per_cluster": 3}
    clusters = needed([], **stated, difference=0.05).clusters
    assert clusters is not None
    shows = needed([], **stated, items=clusters).shows
    assert shows == pytest.approx(0.05, rel=0.01)


def test_without_a_number_of_items_power_takes_those_of_the_task(runs: Path) -> None:
    output = power_command(runs, "lieder_mini")
    assert output.startswith("lieder_mini, direct: power 0.8, level 0.05, 2 models\n")
    with_items = power_command(runs, "lieder_mini", "--items", "16")
    assert output == with_items
    stated = needed([], task="lieder_base", rate=0.8, icc=0.2, per_cluster=3)
    assert stated.items == 16
    assert stated.shows is not None
    with pytest.raises(LmEvalExtError, match="items of my_task is not known; give --items"):
        needed([], task="my_task", rate=0.8)
    with pytest.raises(LmEvalExtError, match=r"has 4 items, fewer than 6, .* give --items"):
        needed([], task="lieder_base", rate=0.8, per_cluster=12)
