"""What is known of a training: its key, its gates, ``training.json``, and its model file."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.files import UNLEARNED
from lm_eval_ext.text import one_line
from lm_eval_ext.training.answers import processes
from lm_eval_ext.training.material import Material
from lm_eval_ext.training.recipe import Planned, Recipe
from lm_eval_ext.training.starting import OLD_WEIGHTS

RECORD = "training.json"
WORK, FIRST, MODELS = ".training", "first", "models"
CHECKPOINTS, FINAL = "checkpoints", "final"
FORMAT = 2
"""Of the record; larger when the same recipe would train differently."""

_WORDS_ONLY = {"title", "paper", "departures", "tasks", "model_file", "vary", "seed", "seeds"}
"""Keys of a recipe that change no weight."""


@dataclass(frozen=True)
class Gate:
    """What a trained model was asked before anything else, and how many answers were right.

    Attributes:
        name: The set of examples.
        examples: How many it has.
        score: The mean score of the answers, 0 to 1.
        bar: The least score that passes.
        wrong: Up to five prompts whose answer got less than a full score.
    """

    name: str
    examples: int
    score: float
    bar: float
    wrong: list[str]

    @property
    def passed(self) -> bool:
        """Whether the score reaches the bar."""
        return self.score >= self.bar


@dataclass(frozen=True)
class Trained:
    """A finished training.

    Attributes:
        folder: The model's.
        gates: In the recipe's order.
        record: The content of ``training.json``.
        model_file: For ``lm-eval-ext run --models``; None for a training that others need first.
        reused: Whether it was there already.
    """

    folder: Path
    gates: tuple[Gate, ...]
    record: Mapping[str, Any]
    model_file: Path | None = None
    reused: bool = False

    @property
    def learned(self) -> bool:
        """Whether every gate is passed."""
        return all(gate.passed for gate in self.gates)

    def told(self) -> str:
        """The gates and what they reached."""
        return ", ".join(
            f"{gate.name} {100 * gate.score:.1f} % of {gate.examples:,}"
            f"{'' if gate.passed else f' (at least {100 * gate.bar:g} %)'}"
            for gate in self.gates
        )

    def summary(self) -> str:
        """A line about it."""
        state = "learned" if self.learned else "DID NOT LEARN"
        steps = max((int(point.get("step", 0)) for point in self.record["curve"]), default=0)
        was = "was there" if self.reused else "trained"
        took = f"{steps:,} steps in {self.record['seconds']:.0f} s"
        return f"{self.folder}: {was}, {took}; {state}: {self.told() or 'no gates'}"


def key_of(
    recipe: Recipe, seed: int, material: Material, first: Mapping[str, Path]
) -> dict[str, Any]:
    """All that decides about the weights, as JSON has it; ``first`` are trainings before this."""
    before = {name: (_json(folder / RECORD) or {}).get("key") for name, folder in first.items()}
    facts = {
        "format": FORMAT, "recipe": recipe.model_dump(exclude=_WORDS_ONLY), "seed": seed,
        "examples": material.digest(), "first": before,
    }  # fmt: skip
    found: dict[str, Any] = json.loads(json.dumps(facts))
    return found


def recipe_digest(recipe: Recipe, seed: int) -> str:
    """A short name of a recipe with a seed: trainings that differ have different ones."""
    facts = json.dumps([recipe.model_dump(exclude=_WORDS_ONLY), seed], sort_keys=True)
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def begin(work: Path, key: Mapping[str, Any]) -> None:
    """Notes what is trained here; refuses a folder where another training left a checkpoint.

    What another one made before its first checkpoint, such as one that was refused, is removed.
    """
    file = work / "key.json"
    if (before := _json(file)) is not None and before != key:
        if (work / FINAL).is_dir() or any(work.glob(f"{CHECKPOINTS}/checkpoint-*")):
            check_same(file, before, key)
        for made in work.iterdir():
            if made.is_dir():
                shutil.rmtree(made)
    with atomic_text(file) as out:
        out.write(json.dumps(key, indent=1))


def check_same(file: Path, before: Any, now: Any, path: str = "") -> None:
    """Refuses to continue, or to take for done, what another recipe began."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            check_same(file, before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
    elif before != now:
        was, is_ = (one_line(repr(one), limit=60) for one in (before, now))
        raise OptionError(
            f"{file}: another training lies here, with {path} {was} instead of {is_}; name "
            "another folder, or remove this one"
        )


def pretraining_tokens(recipe: Recipe, source: str) -> float | None:
    """How many tokens of running text came before, where that is known."""
    if recipe.training.spans:
        return recipe.training.spans.tokens
    if recipe.model.config or recipe.model.weights == "new":
        return 0.0
    before = _json(Path(source) / RECORD)
    found = before.get("pretraining_tokens") if before else None
    return float(found) if isinstance(found, (int, float)) else None


def weights_of(start: Path) -> dict[str, str]:
    """SHA-256 of the weights that training started from, by file."""
    files = (file for form in ("*.safetensors", OLD_WEIGHTS) for file in start.glob(form))
    return {file.name: sha256_of(file) for file in sorted(files)}


def machine() -> dict[str, Any]:
    """Versions and hardware."""
    import platform
    from importlib.metadata import version

    import torch

    from lm_eval_ext import __version__

    state = processes()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else state.device.type
    libraries = ("accelerate", "lm_eval", "tokenizers", "torch", "transformers")
    return {
        "lm_eval_ext": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
        "device": device,
        "processes": state.num_processes,
        "threads": torch.get_num_threads(),
    }


def _json(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def finished(folder: Path) -> Trained | None:
    """A training that is done; None if there is none.

    Raises:
        DataError: Its record is broken.
    """
    if not (folder / RECORD).is_file():
        return None
    record = _json(folder / RECORD) or {}
    try:
        record["key"], record["recipe"]
        return Trained(folder, tuple(Gate(**one) for one in record["gates"]), record)
    except (KeyError, TypeError):
        raise DataError(f"{folder / RECORD}: not a record of a training; remove it") from None


def write_model_file(file: Path, planned: Planned, trained: Trained) -> None:
    """A model file for ``lm-eval-ext run``."""
    import yaml

    content: dict[str, Any] = {
        "model": "hf",
        "model_args": {"pretrained": str(trained.folder)},
        "display_name": planned.title,
        "size": trained.record["parameters"],
        "batch_size": planned.recipe.training.per_device_train_batch_size,
    }
    if (longest := trained.record["max_length"]) is not None:
        content["model_args"]["max_length"] = longest
    if (tokens := trained.record["pretraining_tokens"]) is not None:
        content["pretraining_tokens"] = int(tokens)
    content |= {**trained.record["model_file"], **planned.recipe.model_file}
    if not trained.learned:
        content[UNLEARNED] = trained.told()
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(file) as out:
        yaml.safe_dump(content, out, allow_unicode=True, sort_keys=False)
