"""From SLOG's files to lm-eval's documents, with demonstrations where a task has them."""

import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import model_validator

from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.fewshot import shuffled
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

COVER = (
    "object_modifying_RC", "wh_Q_simple_trans", "pp_4", "cp_4", "center_embed_2", "center_embed_4",
    "standalone_NP_PP", "standalone_NP_RC",
)  # fmt: skip
"""Types of train that every list of demonstrations has, before the in-distribution ones."""

MOST = 64
"""Demonstrations that are chosen; a task shows the first of them."""


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

    def document(self, one: "Example") -> dict[str, Any]:
        """The columns of an example, the prompt among them."""
        asked = PROMPTS[self.prompt].format(one.sentence)
        return {**one._asdict(), "notation": self.form, "input": asked}


class Example(NamedTuple):
    """A sentence with its logical form; ``type`` is what it tests, ``id`` split and line."""

    id: str
    sentence: str
    form: str
    type: str


@loader(prefix="slog_", options=Options)
def dataset(options: Options) -> TaskData:
    """Loads a split as ``test``, and the demonstrations as ``train``.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    if options.split == "mini":
        provenance, texts = None, embedded(__file__, "mini.yaml")
        found = {split: parse(rows, split) for split, rows in texts.items()}
    else:
        names = {"test": "gen" if options.split == "gen" else f"{options.form}_test"}
        names |= {"train": "varfree_train"} if options.seed is not None else {}
        files = {split: require("slog", name) for split, name in names.items()}
        provenance = describe(files.values())
        found = {split: read(file.path, options.form) for split, file in files.items()}
    if options.seed is not None:
        found["train"] = demonstrations(found["train"], options.seed)
    test, train = (map(options.document, found.get(split, ())) for split in ("test", "train"))
    return TaskData(documents=test, provenance=provenance, demonstrations=train)


@cache  # decrypting gen's file takes a second, and four tasks read it
def read(path: Path, form: str, password: bytes = PASSWORD) -> list[Example]:
    """Reads a file of SLOG, or of its zip the one with forms in this notation.

    Raises:
        DataError: It cannot be read, or a line is not an example; the message names it.
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
    """Examples from lines of sentence, form and type with tabs between."""
    rows = [line.split("\t") for line in text.splitlines()]
    for number, row in enumerate(rows, start=1):
        if len(row) != 3 or not all(row):  # noqa: PLR2004 - the three columns
            raise ValueError(f"line {number} is not a sentence, a form and a type")
    return [Example(f"{split}/{number}", *row) for number, row in enumerate(rows, start=1)]


def demonstrations(train: Sequence[Example], seed: int) -> list[Example]:
    """Chooses examples that cover the constructions of the training set.

    One of each type of :data:`COVER`, then in-distribution ones, of which no two have the same
    roles in the same order: 144 such patterns are in the data, and frequent ones are drawn first.
    """
    drawn = [train[place] for place in shuffled(len(train), seed, "SLOG, demonstrations")]
    first: Mapping[str, Example] = {one.type: one for one in reversed(drawn)}
    patterns: dict[str, Example] = {}
    for one in drawn:
        if one.type == "in_distribution":
            patterns.setdefault(" ".join(re.findall(r"\w+ =", one.form)), one)
    chosen = [first[type_] for type_ in COVER if type_ in first]
    return [*chosen, *patterns.values()][:MOST]
