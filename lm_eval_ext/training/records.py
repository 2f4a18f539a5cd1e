"""What is known of a training: its key, its gates, ``training.json``, and its model file."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.errors import OptionError
from lm_eval_ext.reading import read_yaml
from lm_eval_ext.results.files import UNLEARNED
from lm_eval_ext.text import one_line
from lm_eval_ext.training.answers import processes
from lm_eval_ext.training.recipe import Planned, Recipe
from lm_eval_ext.training.starting import OLD_WEIGHTS

RECORD = "training.json"
WORK, FIRST, MODELS = ".training", "first", "models"
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
    gates: Sequence[Gate]
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


def key_of(recipe: Recipe, seed: int, **more: Any) -> dict[str, Any]:
    """All that decides about the weights, as JSON has it."""
    own = recipe.model_dump(exclude=_WORDS_ONLY)
    text = json.dumps({"format": FORMAT, "recipe": own, "seed": seed, **more})
    found: dict[str, Any] = json.loads(text)
    return found


def digest(key: Mapping[str, Any]) -> str:
    """A short name of a key: trainings that differ have different ones."""
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]


def check_same(folder: Path, *keys: Mapping[str, Any]) -> None:
    """Refuses to take for done what another recipe trained, and says what differs first."""
    lines = (json.dumps(key, indent=0, ensure_ascii=False).splitlines() for key in keys)
    for was, is_ in zip(*lines, strict=False):
        if was != is_:
            raise OptionError(
                f"{folder}: another training lies here, with {one_line(was, limit=80)} instead of "
                f"{one_line(is_, limit=80)}; name another folder, or remove this one"
            )


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Writes a file, once for all processes."""
    if processes().is_main_process:
        with atomic_text(file) as out:
            out.write(json.dumps(content, indent=1, ensure_ascii=False))
    processes().wait_for_everyone()


def pretraining_tokens(recipe: Recipe, source: str) -> int | None:
    """How many tokens of running text came before, where that is known."""
    if recipe.training.spans:
        return int(recipe.training.spans.tokens)
    if recipe.model.config or recipe.model.weights == "new":
        return 0
    before = finished(Path(source))
    return before.record["pretraining_tokens"] if before else None


def weights_of(start: Path) -> dict[str, str]:
    """SHA-256 of the weights that training started from, by file."""
    forms = ("*.safetensors", OLD_WEIGHTS)
    return {file.name: sha256_of(file) for form in forms for file in sorted(start.glob(form))}


def machine() -> dict[str, Any]:
    """Versions and hardware."""
    import torch

    state = processes()
    libraries = ("lm-eval-ext", "lm_eval", "accelerate", "tokenizers", "torch", "transformers")
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else state.device.type
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
        "device": device,
        "processes": state.num_processes,
        "threads": torch.get_num_threads(),
    }


def finished(folder: Path) -> Trained | None:
    """A training that is done; None if there is none.

    Raises:
        DataError: Its record is broken.
    """
    if not (file := folder / RECORD).is_file():
        return None
    record = read_yaml(file, TypeAdapter(dict[str, Any]))
    return Trained(folder, [Gate(**one) for one in record["gates"]], record)


def write_model_file(file: Path, planned: Planned, trained: Trained) -> None:
    """A model file for ``lm-eval-ext run``."""
    import yaml

    record = trained.record
    arguments = {"pretrained": str(trained.folder), "max_length": record["max_length"]}
    content: dict[str, Any] = {
        "model": "hf",
        "model_args": {key: value for key, value in arguments.items() if value is not None},
        "display_name": planned.title,
        "size": record["parameters"],
        "batch_size": planned.recipe.training.per_device_train_batch_size,
        "pretraining_tokens": record["pretraining_tokens"],
        **record["model_file"],
        **planned.recipe.model_file,
        UNLEARNED: None if trained.learned else trained.told(),
    }
    known = {key: value for key, value in content.items() if value is not None}
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(file) as out:
        yaml.safe_dump(known, out, allow_unicode=True, sort_keys=False)
