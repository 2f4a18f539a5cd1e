"""Tiny recipes, each trained once: their gates, and what lm-eval asks and makes of the models."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval import simple_evaluate

from lm_eval_ext.benchmarks.diner.component_answers import listed_words
from lm_eval_ext.runs.tasks import our_task_manager
from lm_eval_ext.training.command import Trained
from lm_eval_ext.training.starting import generate_answers

BARS = {
    "cogs_tiny": 0.85,
    "cogs_tiny_causal": 0.75,
    "cogs_tiny_pretrained": 0.85,
    "diner_tiny": 0.9,
    "diner_tiny_cpft": 0.9,
    "tkqa_tiny": 0.8,
}
"""Each recipe with the bar of its gate on the development set; slog_tiny needs data to fetch."""

one_worker = pytest.mark.xdist_group
"""Marks tests that wait for the training of the same recipe, in one worker only."""

TrainedRecipe = Callable[[str], Trained]


def recipes(names: Iterable[str]) -> list[Any]:
    """Return the names as parameters, each to be tested in the worker of its recipe."""
    return [pytest.param(name, marks=one_worker(name)) for name in names]


def model_settings(trained: Trained) -> dict[str, Any]:
    """Return the content of a trained model's file."""
    assert trained.model_file is not None
    settings: dict[str, Any] = yaml.safe_load(trained.model_file.read_text())
    return settings


def evaluate(trained: Trained, task: str, metadata: Mapping[str, str], **options: Any) -> Any:
    """Evaluate a trained model as its file says, with the same batch size."""
    settings = model_settings(trained)
    model_args = settings["model_args"] | {"pretrained": str(trained.folder), "device": "cpu"}
    return simple_evaluate(
        model="hf",
        model_args=model_args,
        tasks=[task],
        task_manager=our_task_manager(metadata=settings.get("metadata", {}) | metadata),
        bootstrap_iters=0,
        batch_size=settings["batch_size"],
        **options,
    )


def gate_of(trained: Trained, name: str) -> Mapping[str, Any]:
    """Return a gate of a training: its bar, its score and its number of examples."""
    (gate,) = [gate for gate in trained.record["gates"] if gate["name"] == name]
    return gate


@pytest.mark.parametrize("name", recipes(BARS))
def test_the_gates_are_passed(name: str, trained_recipe: TrainedRecipe) -> None:
    """A recipe's model passes all gates; outside of COGS, training keeps all texts."""
    trained = trained_recipe(name)
    assert trained.has_learned, trained.gates_text()
    gate = gate_of(trained, "dev")
    assert gate["bar"] == BARS[name]
    assert gate["examples"] == 200
    assert "did_not_learn" not in model_settings(trained)
    if not name.startswith("cogs"):
        assert trained.record["not_kept"]["texts"] == 0


@pytest.mark.parametrize("name", recipes(name for name in BARS if name.startswith("cogs")))
def test_cogs_models_know_exposed_words_and_score_as_on_their_gate(
    name: str, trained_recipe: TrainedRecipe
) -> None:
    """lm-eval's score and the gate's are shares of right answers, to other and few examples."""
    trained = trained_recipe(name)
    exposure = gate_of(trained, "exposure")
    assert exposure["score"] == 1.0
    assert exposure["bar"] == 1.0
    results = evaluate(trained, "cogs_mini_id", {}, limit=24)["results"]
    score = results["cogs_mini_id"]["exact_match,none"]
    assert score == pytest.approx(gate_of(trained, "dev")["score"], abs=0.25)


def predicted_foods(predictions: Path) -> dict[str, Sequence[str]]:
    """Return the foods that an auxiliary model named, by the instruction that it read."""
    foods: dict[str, Sequence[str]] = {}
    for line in predictions.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        *_, food_answer = row["filtered_resps"]
        foods[row["doc"]["instruction"]] = listed_words(food_answer)
    return foods


@one_worker("diner_tiny_cpft")
def test_lm_eval_asks_with_the_prompts_of_the_training(trained_recipe: TrainedRecipe) -> None:
    """Prompts have the auxiliary model's predictions, and answers are those that gates see."""
    trained = trained_recipe("diner_tiny_cpft")
    metadata = model_settings(trained)["metadata"]
    (predictions,) = trained.folder.parent.glob("first/auxiliary-*/components.jsonl")
    assert Path(metadata["diner_components_file"]).parts[-4:] == predictions.parts[-4:]
    evaluated = evaluate(
        trained, "diner_mini_cp", {"diner_components_file": str(predictions)}, log_samples=True
    )
    samples = evaluated["samples"]["diner_mini_cp"]
    foods_by_instruction = predicted_foods(predictions)
    prompts = []
    responses = []
    with_food = 0
    for sample in samples:
        prompt = sample["arguments"][0][0]
        foods = foods_by_instruction[sample["doc"]["instruction"]]
        assert ",".join(foods) in prompt
        with_food += bool(foods)
        prompts.append(prompt)
        responses.append(sample["resps"][0][0].strip())
    assert with_food > len(samples) / 2
    answers = generate_answers(trained.folder, prompts, max_gen_toks=16)
    assert responses == [answer.strip() for answer in answers]
