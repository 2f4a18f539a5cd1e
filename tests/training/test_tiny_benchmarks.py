"""Tiny recipes of DiNeR and Tk-QA, each trained once: their gates, and what lm-eval asks."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval import simple_evaluate
from support.tasks import load_task

from lm_eval_ext.benchmarks.diner.component_answers import parts
from lm_eval_ext.training.answers import answers_of
from lm_eval_ext.training.recipe import read_recipe, shipped

alone = pytest.mark.xdist_group
"""What one recipe trains is waited for by one worker only."""

BARS = {"diner_tiny": 0.9, "diner_tiny_cpft": 0.9, "tkqa_tiny": 0.8}
"""Each recipe with the bar of its gate."""


def test_every_tiny_recipe_is_trained_here() -> None:
    tiny = {name for name in shipped() if "_tiny" in name and read_recipe(name).source != "cogs"}
    not_here = {"diner_tiny_auxiliary", "slog_tiny"}
    assert tiny == BARS.keys() | not_here, "the first comes first in diner_tiny_cpft"


@pytest.mark.parametrize("name", [pytest.param(one, marks=alone(one)) for one in BARS])
def test_the_gates_are_passed(name: str, trained_recipe: Any) -> None:
    trained = trained_recipe(name)
    assert trained.learned, trained.gates
    gates = {gate.name: gate for gate in trained.gates}
    assert gates["dev"].bar == BARS[name]
    assert gates["dev"].examples == 200
    assert trained.record["not_kept"]["texts"] == 0
    settings = yaml.safe_load(trained.model_file.read_text())
    assert "did_not_learn" not in settings


@alone("diner_tiny_cpft")
def test_lm_eval_asks_with_the_prompts_of_the_training(trained_recipe: Any) -> None:
    """The auxiliary model's predictions stand in them, and answers are those that gates see."""
    trained = trained_recipe("diner_tiny_cpft")
    settings = yaml.safe_load(trained.model_file.read_text())
    (predicted,) = trained.folder.glob("first/auxiliary-*/components.jsonl")
    named = Path(settings["metadata"]["diner_components_file"])
    assert named.parts[-4:] == predicted.parts[-4:]
    rows = [json.loads(line) for line in predicted.read_text(encoding="utf-8").splitlines()]
    foods = {row["doc"]["instruction"]: parts(row["filtered_resps"][2]) for row in rows}
    metadata = settings["metadata"] | {"diner_components_file": str(predicted)}
    task = load_task("diner_mini_cp", **metadata)
    docs = list(task.test_docs())
    prompts = [task.doc_to_text(doc) for doc in docs]
    stated = [",".join(foods[doc["instruction"]]) for doc in docs]
    assert all(text in prompt for text, prompt in zip(stated, prompts, strict=True))
    assert sum(map(bool, stated)) > len(docs) / 2
    found = simple_evaluate(
        model=settings["model"], model_args={"pretrained": str(trained.folder), "device": "cpu"},
        tasks=[task], bootstrap_iters=0, batch_size=24, log_samples=True,
    )  # fmt: skip
    assert found is not None
    samples = {one["doc"]["id"]: one["resps"][0][0] for one in found["samples"]["diner_mini_cp"]}
    own = answers_of(trained.folder, prompts, most=16)
    assert [samples[doc["id"]].strip() for doc in docs] == [text.strip() for text in own]
