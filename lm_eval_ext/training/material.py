"""What a recipe trains on: examples of a benchmark, or running text."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.training.recipe import PACKAGE

Pair = tuple[str, str]
"""A prompt, exactly as the task asks it, and its answer."""


def exact(answer: str, target: str) -> float:
    """1.0 for the same text, whitespace at its ends aside."""
    return float(answer.strip() == target.strip())


@dataclass(frozen=True)
class Material:
    """What a source prepares.

    Attributes:
        train: Examples to train on; for running text, a document in each answer.
        dev: Examples whose loss is computed on the way.
        gates: Sets of examples that a recipe's gates may name.
        facts: What the examples come from, such as checksums of files; for the record.
        score: Of an answer, by its text and the target's: 0 to 1.
        vocabulary: Texts that a new tokenizer is made from; without any, those to train on.
        whole: Texts that are one token each of a new tokenizer.
        problem_with: Looks at a tokenizer, which was loaded from its folder; returns what it
            does wrong with this material, or "".
        grow: Writes a copy of a model's folder with further tokens into a new folder.
        model_file: Keys of the model file, such as metadata for the tasks.
        lossy: Whether texts that a tokenizer does not keep are counted in the record instead of
            refused: texts that people wrote have characters that it lacks.
    """

    train: Sequence[Pair]
    dev: Sequence[Pair] = ()
    gates: Mapping[str, Sequence[Pair]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    score: Callable[[str, str], float] = exact
    vocabulary: Sequence[str] = ()
    whole: Sequence[str] = ()
    problem_with: Callable[[Any], str] = lambda tokenizer: ""
    grow: Callable[[Path, Path], None] | None = None
    model_file: Mapping[str, Any] = field(default_factory=dict)
    lossy: bool = False

    def digest(self) -> str:
        """SHA-256 (hex) over all that is trained on and compared with."""
        sets = {"train": self.train, "dev": self.dev, **self.gates}
        found = hashlib.sha256()
        for name, pairs in sorted(sets.items()):
            found.update(json.dumps([name, *pairs]).encode())
        return found.hexdigest()


def prepare(source: str, data: Mapping[str, Any], seed: int) -> Material:
    """Asks a source for its material.

    A benchmark's module ``training`` has the function ``prepare(data, seed)``, which checks its
    options (:func:`~lm_eval_ext.reading.checked`) and returns a :class:`Material`.

    Raises:
        OptionError: There is no such source, or an option of it is wrong.
        DataError: Data are missing or broken.
    """
    known = sources()
    if source not in known:
        raise OptionError(f"no source {source!r}; use {', '.join(known)}")
    found: Material = import_module(known[source]).prepare(data, seed)
    return found


def sources() -> dict[str, str]:
    """What prepares examples, with its module; all but ``text`` are benchmarks."""
    files = [file.relative_to(PACKAGE.parent) for file in PACKAGE.glob("**/training.py")]
    found = {one.parent.name: ".".join(one.with_suffix("").parts) for one in sorted(files)}
    return {**found, "text": "lm_eval_ext.training.text"}
