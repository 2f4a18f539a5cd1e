"""Recipes: those that ship, values that are refused, and the command line before it trains."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from support.tasks import load_task
from support.tiny_training import WriteRecipe, train_command

from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.training import command, recipe
from lm_eval_ext.training.recipe import plan_models, read_recipe


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"training.lerning_rate": 1}, "unknown key; did you mean learning_rate"),
        ({"training.max_sorce_length": 9}, "did you mean max_source_length"),
        ({"optim": "muon"}, r"optim: unknown key[^?]*$"),
        ({"training.weight_decay": "much"}, r"training: weight_decay: .*valid number"),
        ({"training.optim": "sgdd"}, r"training.*sgdd"),
        ({"training.spans.tokens": "many"}, r"spans.tokens: .*valid number"),
        ({"gates.all": 1.5}, r"gates\.all.*less than or equal to 1"),
        ({"seeds": ["a"]}, r"seeds\.0: .*valid integer"),
        ({"model.config.model_type": "tt5"}, "model identifier: tt5"),
        ({"model": {"start": "/nope"}}, "model: start: no such folder /nope"),
        ({"model.config.d_modle": 3}, "t5 has no 'd_modle'; did you mean d_model"),
        (
            {"model": {"start": "no/such/folder"}},
            "model: start: no such folder no/such/folder",
        ),
        ({"model": {"start": "somewhere", "tokenizer": {}}}, "give start, or config"),
        ({"gates.test": 1.0}, "pairs has no 'test'; it has all"),
        ({"source": "lm_eval_ext.nosuch"}, "source: no module .*nosuch"),
    ],
    ids=str,
)
def test_a_recipe_that_cannot_work_is_refused_in_a_line(
    write_recipe: WriteRecipe, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    """The error names the key, and nothing is written."""
    with pytest.raises(LmEvalExtError, match=message) as error:
        command.train(write_recipe(), tmp_path / "out", settings=settings)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.glob("out/*/*.json"))


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("cogs_tiny", "cogs_mini_id"),
        ("diner_tiny", "diner_mini_name"),
        ("tkqa_tiny", "conceptual_mini"),
    ],
)
def test_gates_leave_the_room_that_the_tasks_leave(name: str, task: str) -> None:
    """A gate's answer may be as long as the task's."""
    shipped = read_recipe(name)
    material = recipe.prepare(shipped.source, shipped.data, 0)
    assert material.max_gen_toks == load_task(task).config.generation_kwargs["max_gen_toks"]


USERS_DATA = {
    "cogs_pretraining": {"data.folder": "."},
    "cogs_pretraining_size": {"first.pretrained.data.folder": "."},
    "diner_pretraining": {"data.recipes": "recipes.json"},
    "diner_t5_own_pretraining": {"first.pretrained.data.recipes": "recipes.json"},
    "tkqa": {"data.train": "train.json", "data.dev": "dev.json"},
}
"""Settings without which a recipe cannot be read: the user's files."""


def test_recipes_ship() -> None:
    """Those of a paper and the tiny ones."""
    assert {"cogs_t5_base", "cogs_tiny"} <= set(recipe.shipped())


@pytest.mark.parametrize("name", recipe.shipped())
def test_a_recipe_that_ships_is_legal_and_says_where_its_values_are_from(name: str) -> None:
    """It names the paper, what departs from it, and a source that prepares examples."""
    planned = next(iter(plan_models(name, USERS_DATA.get(name)).values()))
    assert planned.departures
    assert len(planned.paper) > 40
    assert callable(import_module(planned.source).prepare)


def test_a_config_of_another_architecture_has_no_key_of_the_recipe_that_it_extends() -> None:
    """A decoder has no d_model of T5."""
    model = read_recipe("cogs_tiny_causal").model
    assert model.config is not None
    assert "d_model" not in model.config


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nosuch", "no recipe nosuch"),
        ("cogs_tny", "did you mean cogs_tiny"),
        ("cogs_tiny --set steps", "write key=value"),
        ("cogs_tiny --seeds 0-4", "--seeds 0-4: write whole numbers with commas"),
        ("cogs_tiny --start /no/folder", "start: no such folder /no/folder"),
        ("cogs_tiny_pretrained --dry-run --set gates.foo=1", "it has exposure, d"),
        ("cogs_tiny_pretrained --set first.pretrained.gates.foo=1", "has no 'foo'"),
        ("cogs_tiny_pretrained --set first.pretrained.data.rar=1", "data.*mean rare"),
    ],
)
def test_the_command_line_refuses_before_anything_is_trained(
    tmp_path: Path, words: str, message: str
) -> None:
    """The error names the word, and nothing is written."""
    result = train_command(*words.split(), "-o", str(tmp_path / "out"))
    assert isinstance(result.exception, OptionError)
    assert re.search(message, str(result.exception))
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("changes", "words", "message"),
    [
        ({"tasks": "cogs_mini_gem"}, [], "cogs_mini_gem"),
        ({}, ["--dry-run", "--set", "training.lerning_rate=1"], "did you mean learning"),
        (
            {"vary": {"a": {"b": {}, "c": {"data.d": 1}}}},
            [],
            "data of pairs: d: unknown key",
        ),
    ],
    ids=["an unknown task", "an unknown key", "an unknown option in a level"],
)
def test_the_command_line_refuses_a_recipe_before_anything_is_trained(
    write_recipe: WriteRecipe,
    tmp_path: Path,
    changes: dict[str, Any],
    words: list[str],
    message: str,
) -> None:
    """The error names the mistake in the recipe's file, and nothing is written."""
    result = train_command(write_recipe(**changes), *words, "-o", str(tmp_path / "out"))
    assert isinstance(result.exception, OptionError)
    assert re.search(message, str(result.exception))
    assert not (tmp_path / "out").exists()


def test_the_command_line_lists_recipes() -> None:
    """Each has its title behind its name."""
    assert "cogs_tiny: COGS mini, a tiny T5" in train_command("--list").output


@pytest.mark.usefixtures("small_index")
def test_the_command_line_says_how_to_evaluate(write_recipe: WriteRecipe, tmp_path: Path) -> None:
    """It has the recipe's tasks; Muon works with a schedule that asks for its rate."""
    words = [write_recipe(), "-o", str(tmp_path / "out"), "--seeds", "5,6"]
    for setting in (
        "tasks=cogs_mini_gen",
        "training.max_steps=1",
        "gates={}",
        "training.lr_scheduler_type=polynomial",
    ):
        words += ["--set", setting]
    result = train_command(*words)
    assert "--tasks cogs_mini_gen --output results" in result.stdout
    assert re.search(r"tiny-seed-6: trained in \d+ s; no gates\n", result.stdout)
