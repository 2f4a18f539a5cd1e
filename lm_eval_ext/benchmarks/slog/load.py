"""From SLOG's files to lm-eval's documents, with demonstrations where a task has them."""

import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from lm_eval_ext.benchmarks.slog import demonstrations
from lm_eval_ext.benchmarks.slog.records import Example
from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.loading import TaskData, loader
from lm_eval_ext.harness.provenance import describe
from lm_eval_ext.reading import Exact, embedded

PASSWORD = b"SLOG"
"""Its authors publish it: gen is meant to be hard to read for crawlers, not for people."""

PROMPTS = {
    "bare": "{}",
    "llama": "### Input: {} ### Output:\n",
    "labelled": "Sentence: {}\nLogical form:",
}
"""The authors' inputs of T5 and of LLaMa, and ours before demonstrations."""


class Options(Exact):
    """The options of a task.

    Attributes:
        split: ``gen``, ``test`` or ``mini``, which has a few sentences of our own.
        form: The notation of logical forms, ``cogs`` or ``varfree``.
        prompt: One of :data:`PROMPTS`.
        seed: The seed that demonstrations are drawn from; None for tasks without any.
    """

    split: Literal["gen", "test", "mini"] = "gen"
    form: Literal["cogs", "varfree"] = "varfree"
    prompt: Literal["bare", "llama", "labelled"] = "bare"
    seed: int | None = None

    @model_validator(mode="after")
    def _published(self) -> "Options":
        if self.form == "cogs" and (self.split == "mini" or self.seed is not None):
            message = "slog_form=cogs has no demonstrations: leave out slog_seed and slog_mini"
            raise OptionError(message)
        return self

    def document(self, example: Example) -> dict[str, str]:
        """Return the columns of an example, the prompt among them."""
        prompt = PROMPTS[self.prompt].format(example.sentence)
        return {**example._asdict(), "notation": self.form, "input": prompt}


@loader(prefix="slog_", options=Options)
def dataset(options: Options) -> TaskData:
    """Load a split as ``test``, and the demonstrations as ``train``.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    if options.split == "mini":
        provenance = None
        texts = embedded(__file__, "mini.yaml")
        examples = {split: parse(text, split) for split, text in texts.items()}
    else:
        names = {"test": "gen"}
        if options.split == "test":
            names["test"] = f"{options.form}_test"
        if options.seed is not None:
            names["train"] = "varfree_train"
        files = {split: require("slog", name) for split, name in names.items()}
        provenance = describe(files.values())
        examples = {split: read(file.path, options.form) for split, file in files.items()}
    shown_examples = examples.get("train", [])
    if options.seed is not None:
        shown_examples = demonstrations.choose(shown_examples, options.seed)
    return TaskData(
        documents=map(options.document, examples["test"]),
        provenance=provenance,
        demonstrations=map(options.document, shown_examples),
    )


@cache  # decrypting gen's file takes a second, and four tasks read it
def read(path: Path, form: str, password: bytes = PASSWORD) -> list[Example]:
    """Read a file of SLOG, or the file with forms in this notation in its zip.

    Raises:
        DataError: The file cannot be read, or a line is not an example; the message names it.
    """
    try:
        if path.suffix != ".zip":
            return parse(path.read_text(encoding="utf-8"), path.stem)
        with zipfile.ZipFile(path) as archive:
            content = archive.read(f"generalization_sets/gen_{form}LF.tsv", pwd=password)
        return parse(content.decode("utf-8"), "gen")
    except (OSError, RuntimeError, KeyError, zipfile.BadZipFile, zlib.error, ValueError) as error:
        raise DataError(
            f"{path}: cannot be read ({error}); fetch it again (lm-eval-ext data fetch slog)"
        ) from None


def parse(text: str, split: str) -> list[Example]:
    """Return examples from lines of sentence, form and type with tabs between.

    Raises:
        ValueError: A line has other columns.
    """
    examples = []
    for number, line in enumerate(text.splitlines(), start=1):
        columns = line.split("\t")
        if len(columns) != 3 or not all(columns):  # noqa: PLR2004 - the three columns
            raise ValueError(f"line {number} is not a sentence, a form and a type")
        sentence, form, type_ = columns
        examples.append(Example(f"{split}/{number}", sentence, form, type_))
    return examples
