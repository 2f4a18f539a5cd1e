"""SLOG's material for training: sentences and variable-free forms."""

from lm_eval_ext.benchmarks.slog.load import Options, read
from lm_eval_ext.data import require
from lm_eval_ext.training.recipe import Material, Pair

GATES = ("dev",)


def prepare(options: Options, seed: int) -> Material:
    """Return the material of a recipe, whose ``data`` are a task's options.

    Of the development set, every eighth example is used.

    Raises:
        DataError: A file is missing or broken.
    """
    facts = {}
    pairs: dict[str, list[Pair]] = {}
    for split in ("train", "dev"):
        file = require("slog", f"varfree_{split}")
        facts[f"slog/varfree_{split}"] = file.sha256
        documents = map(options.document, read(file.path, "varfree"))
        pairs[split] = [(document["input"], document["form"]) for document in documents]
    dev = pairs["dev"][::8]
    user_options = options.model_dump(exclude_unset=True)
    metadata = {f"slog_{name}": value for name, value in user_options.items()}
    return Material(
        train=pairs["train"],
        dev=dev,
        gates={"dev": dev},
        facts=facts,
        model_file={"metadata": metadata},
        max_gen_toks=1024,
    )
