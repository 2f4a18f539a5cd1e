"""SLOG's material for training: sentences and variable-free forms."""

from collections.abc import Mapping
from typing import Any

from lm_eval_ext.benchmarks.slog.load import Options, read
from lm_eval_ext.data import require
from lm_eval_ext.reading import checked
from lm_eval_ext.training.material import Material

DEV = slice(None, None, 8)
"""Of the development set, what is evaluated on the way."""


def prepare(data: Mapping[str, Any], seed: int) -> Material:
    """The material of a recipe, whose ``data`` are a task's options.

    Raises:
        OptionError: An option is wrong.
        DataError: A file is missing or broken.
    """
    options = checked(Options, data, "recipe, data")
    files = {split: require("slog", f"varfree_{split}") for split in ("train", "dev")}
    documents = {
        split: [options.document(one) for one in read(file.path, "varfree")]
        for split, file in files.items()
    }
    train, dev = ([(one["input"], one["form"]) for one in found] for found in documents.values())
    return Material(
        train,
        dev[DEV],
        {"dev": dev[DEV]},
        {f"slog/varfree_{split}": file.sha256 for split, file in files.items()},
        model_file={"metadata": {f"slog_{name}": value for name, value in data.items()}},
    )
