"""Tiny recipes, each trained once: their gates, and what lm-eval makes of the models."""

from typing import Any

import pytest
import yaml
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.training.recipe import read_recipe, shipped

SCORED = {
    "cogs_tiny": ("cogs_mini_id", "exact_match"),
    "cogs_tiny_causal": ("cogs_mini_id", "exact_match"),
    "cogs_tiny_pretrained": ("cogs_mini_id", "exact_match"),
}
"""What lm-eval asks a recipe's model, and the score that is near the development set's."""


def test_every_tiny_recipe_that_has_gates_is_trained_here() -> None:
    tiny = {name: read_recipe(name) for name in shipped() if "_tiny" in name}
    assert {name for name, one in tiny.items() if one.tasks and one.source == "cogs"} == set(SCORED)


@pytest.mark.parametrize("name", SCORED)
def test_the_gates_are_passed_and_lm_eval_agrees(name: str, trained_recipe: Any) -> None:
    trained = trained_recipe(name)
    assert trained.learned, trained.gates
    gates = {gate.name: gate for gate in trained.gates}
    assert gates["exposure"].score == gates["exposure"].bar == 1.0
    assert gates["dev"].bar >= 0.75

    settings = yaml.safe_load(trained.model_file.read_text())
    assert "did_not_learn" not in settings
    task, metric = SCORED[name]
    metadata = {**settings.get("metadata", {}), "cogs_corpus": "mini"}
    manager = TaskManager(include_defaults=False, include_path=tasks_folder(), metadata=metadata)
    found = simple_evaluate(
        model=settings["model"], model_args={"pretrained": str(trained.folder), "device": "cpu"},
        tasks=[task], task_manager=manager, limit=settings["batch_size"], bootstrap_iters=0,
        batch_size=settings["batch_size"],
    )  # fmt: skip
    assert found is not None
    score = found["results"][task][f"{metric},none"]
    # Both are shares of right answers, of other examples, and here of few.
    assert score == pytest.approx(gates["dev"].score, abs=0.25)
