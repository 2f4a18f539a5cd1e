"""SLOG's material for training: sentences and variable-free forms."""

from lm_eval_ext.benchmarks.slog.load import Options, read
from lm_eval_ext.data import require
from lm_eval_ext.training.recipe import Material

GATES = ("dev",)


def prepare(options: Options, seed: int) -> Material:
    """The material of a recipe, whose ``data`` are a task's options; of dev every eighth example.

    Raises:
        DataError: A file is missing or broken.
    """
    found, facts = {}, {}
    for split in ("train", "dev"):
        file = require("slog", f"varfree_{split}")
        facts[f"slog/varfree_{split}"] = file.sha256
        documents = map(options.document, read(file.path, "varfree"))
        found[split] = [(one["input"], one["form"]) for one in documents]
    train, dev = found["train"], found["dev"][::8]
    given = options.model_dump(exclude_unset=True)
    metadata = {f"slog_{name}": value for name, value in given.items()}
    return Material(
        train, dev, {"dev": dev}, facts, model_file={"metadata": metadata}, max_gen_toks=1024
    )
