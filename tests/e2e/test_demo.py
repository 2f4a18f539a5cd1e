"""The recipe `demo`: a model trained from scratch, evaluated by plain lm_eval."""

import json
from pathlib import Path

import pytest
from support.commands import Command

from lm_eval_ext.cards import cards

pytestmark = pytest.mark.e2e

DOCUMENTS = {
    "lieder_mini": range(24),
    "diner_mini_name": range(24),
    "magnifico_mini": range(24),
    "cogs_mini_id": range(0, 200, 4),
    "cogs_mini_testlex": range(0, 210, 4),
    "cogs_mini_gen": range(0, 500, 4),
}


def test_the_demonstration_model_is_above_chance(
    cli: Command,
    lm_eval: Command,
    demonstration_model: Path,
    kept_cache: Path,
) -> None:
    done = lm_eval(
        "--tasks", ",".join(DOCUMENTS), "--model", "hf", "--device", "cpu", "--batch_size", "32",
        "--samples", json.dumps({task: list(indices) for task, indices in DOCUMENTS.items()}),
        "--model_args", f"pretrained={demonstration_model}", "--gen_kwargs", "max_gen_toks=160",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    results = done.results()["results"]
    scores = results["lieder_mini"]
    chance = cards()["lieder"].measures["direct"].chance
    assert chance is not None
    for metric in ("direct/existence", "direct/plurality", "relative"):
        assert scores[f"{metric},none"] > chance + 0.3, metric
    low_scores = {
        "diner_mini_name": "micro_f1,name",
        "magnifico_mini": "sql_average_accuracy/novel,query",
    }
    for task, metric in low_scores.items():
        assert 0.1 < results[task][metric] < 1, task
    in_distribution = results["cogs_mini_id"]["exact_match,none"]
    known_words = results["cogs_mini_testlex"]["exact_match,none"]
    new_places = results["cogs_mini_gen"]["exact_match,none"]
    assert in_distribution > 0.6
    assert in_distribution > known_words + 0.3, "key words have one example each"
    assert in_distribution > new_places + 0.4
    assert results["cogs_mini_gen"]["exact_match/structural,none"] < 0.2
    again = cli("train", "demo", "-o", str(demonstration_model.parent), cold=True)
    assert again.returncode == 0, again.stderr[-2000:]
    assert "step" not in again.stderr, "a second run does not train"
