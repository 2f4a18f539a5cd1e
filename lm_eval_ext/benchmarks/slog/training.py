"""SLOG's material for training: sentences and variable-free forms."""

from collections.abc import Mapping
from typing import Any

from lm_eval_ext.benchmarks.slog.load import Options, read
from lm_eval_ext.data import require
from lm_eval_ext.reading import checked
from lm_eval_ext.training.recipe import Material


def prepare(data: Mapping[str, Any], seed: int) -> Material:
    """The material of a recipe, whose ``data`` are a task's options; of dev every eighth example.

    Raises:
        OptionError: An option is wrong.
        DataError: A file is missing or broken.
    """
    options = checked(Options, data, "recipe, data")
    found, facts = {}, {}
    for split in ("train", "dev"):
        file = require("slog", f"varfree_{split}")
        facts[f"slog/varfree_{split}"] = file.sha256
        documents = map(options.document, read(file.path, "varfree"))
        found[split] = [(one["input"], one["form"]) for one in documents]
    train, dev = found["train"], found["dev"][::8]
    metadata = {f"slog_{name}": value for name, value in data.items()}
    return Material(train, dev, {"dev": dev}, facts, model_file={"metadata": metadata})
