"""Trainings of tiny models on 36 pairs of words, by a recipe that a test writes."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import pytest
import yaml
from typer.testing import CliRunner, Result

from lm_eval_ext.cli.app import app
from lm_eval_ext.reading import Strict
from lm_eval_ext.training.recipe import Material, Pair

WORDS = ("red", "blue", "green", "dog", "cat", "bird")


def _word_pairs() -> list[Pair]:
    """Return a pair for every two words: the last one, once or several times, is the prompt."""
    pairs = []
    for count, word in enumerate(WORDS, 1):
        for first_word in WORDS:
            pairs.append((" ".join([word] * count), f"{first_word} {word}"))
    return pairs


PAIRS = _word_pairs()
MATERIAL = Material(
    PAIRS, PAIRS[:8], {"all": PAIRS[:4]}, model_file={"batch_size": 4}, max_gen_toks=16
)

CONFIGS: dict[str, dict[str, Any]] = {
    "t5": {
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 16,
        "num_layers": 1,
        "num_heads": 2,
        "dropout_rate": 0.1,
    },
    "gpt2": {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64},
    "llama": {
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "tie_word_embeddings": False,
    },
}
"""A tiny model of each type, by its ``model_type``."""

TRAINING = {
    "max_steps": 6,
    "per_device_train_batch_size": 8,
    "optim": "muon",
    "learning_rate": 0.01,
    "embedding_learning_rate": 0.02,
    "eval_steps": 2,
}


class WriteRecipe(Protocol):
    """A function that writes a recipe and returns its path."""

    def __call__(self, name: str = "tiny", model_type: str = "t5", **changes: Any) -> str: ...


def recipe_writer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> WriteRecipe:
    """Return a function that writes recipes which train on PAIRS to a folder."""
    source: Any = SimpleNamespace(
        Options=Strict, GATES=("all",), prepare=lambda options, seed: MATERIAL
    )
    monkeypatch.setitem(sys.modules, "pairs", source)

    def write_recipe(name: str = "tiny", model_type: str = "t5", **changes: Any) -> str:
        content = {
            "title": "Words the other way round",
            "paper": "none",
            "departures": [],
            "source": "pairs",
            "gates": {"all": 0.0},
            "model": {
                "config": {"model_type": model_type, **CONFIGS[model_type]},
                "tokenizer": {"kind": "words"},
            },
        }
        content.update(changes)
        content["training"] = {**TRAINING, **changes.get("training", {})}
        file = folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(content, sort_keys=False))
        return str(file)

    return write_recipe


def train_command(*words: str) -> Result:
    """Run ``lm-eval-ext train`` with these words in this process."""
    return CliRunner().invoke(app, ["train", *words])


def evaluation_losses(record: Any) -> list[float]:
    """Return the losses on the development set that a training's record has, in their order."""
    losses = []
    for point in record["curve"]:
        if "eval_loss" in point:
            losses.append(point["eval_loss"])
    return losses


def have_same_weights(*folders: Path) -> bool:
    """Return whether models have the same weights, to the last bit."""
    return len({(folder / "model.safetensors").read_bytes() for folder in folders}) == 1
