"""Tiny recipes, each trained once: their gates, and what lm-eval asks and makes of the models."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval import simple_evaluate

from lm_eval_ext.benchmarks.diner.component_answers import parts
from lm_eval_ext.runs.tasks import our_task_manager
from lm_eval_ext.training.starting import generate_answers

BARS = {
    "cogs_tiny": 0.85, "cogs_tiny_causal": 0.75, "cogs_tiny_pretrained": 0.85,
    "diner_tiny": 0.9, "diner_tiny_cpft": 0.9, "tkqa_tiny": 0.8,
}  # fmt: skip
"""Each recipe with the bar of its gate on the development set; slog_tiny needs data to fetch."""

alone = pytest.mark.xdist_group
"""What one recipe trains is waited for by one worker only."""


def evaluated(trained: Any, task: str, metadata: Any, **more: Any) -> Any:
    """What lm-eval makes of a model, with the batch size of its file."""
    settings = yaml.safe_load(trained.model_file.read_text())
    moved = {"pretrained": str(trained.folder), "device": "cpu"}
    return simple_evaluate(
        model="hf", model_args=settings["model_args"] | moved, tasks=[task],
        task_manager=our_task_manager(metadata=settings.get("metadata", {}) | metadata),
        bootstrap_iters=0, batch_size=settings["batch_size"], **more,
    )  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(one, marks=alone(one)) for one in BARS])
def test_the_gates_are_passed(name: str, trained_recipe: Any) -> None:
    trained = trained_recipe(name)
    assert trained.has_learned, trained.gates_text()
    gates = {gate["name"]: gate for gate in trained.record["gates"]}
    assert (gates["dev"]["bar"], gates["dev"]["examples"]) == (BARS[name], 200)
    assert "did_not_learn" not in yaml.safe_load(trained.model_file.read_text())
    if not name.startswith("cogs"):
        assert trained.record["not_kept"]["texts"] == 0
        return
    assert gates["exposure"]["score"] == gates["exposure"]["bar"] == 1.0
    found = evaluated(trained, "cogs_mini_id", {}, limit=24)
    score = found["results"]["cogs_mini_id"]["exact_match,none"]
    # Both are shares of right answers, of other examples, and here of few.
    assert score == pytest.approx(gates["dev"]["score"], abs=0.25)


@alone("diner_tiny_cpft")
def test_lm_eval_asks_with_the_prompts_of_the_training(trained_recipe: Any) -> None:
    """The auxiliary model's predictions stand in them, and answers are those that gates see."""
    trained = trained_recipe("diner_tiny_cpft")
    metadata = yaml.safe_load(trained.model_file.read_text())["metadata"]
    (predicted,) = trained.folder.parent.glob("first/auxiliary-*/components.jsonl")
    assert Path(metadata["diner_components_file"]).parts[-4:] == predicted.parts[-4:]
    own = {"diner_components_file": str(predicted)}
    samples = evaluated(trained, "diner_mini_cp", own, log_samples=True)["samples"]["diner_mini_cp"]
    lines = map(json.loads, predicted.read_text(encoding="utf-8").splitlines())
    foods = {row["doc"]["instruction"]: parts(row["filtered_resps"][2]) for row in lines}
    prompts = {one["doc"]["instruction"]: one["arguments"][0][0] for one in samples}
    assert all(",".join(foods[text]) in prompt for text, prompt in prompts.items())
    assert sum(bool(foods[text]) for text in prompts) > len(prompts) / 2
    answers = generate_answers(trained.folder, list(prompts.values()), max_gen_toks=16)
    assert [one["resps"][0][0].strip() for one in samples] == [text.strip() for text in answers]
