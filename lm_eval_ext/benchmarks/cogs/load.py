"""From COGS's files, or our own grammar, to lm-eval's documents."""

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, model_validator

from lm_eval_ext.atomic import atomic_folder, atomic_text, sha256_of_text
from lm_eval_ext.benchmarks.cogs import mini
from lm_eval_ext.benchmarks.cogs.lexicons import ITEMS, UNMODIFIED, replacements, substitute
from lm_eval_ext.benchmarks.cogs.records import Corpus, Example, Split
from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import TaskData, loader
from lm_eval_ext.reading import Exact, lines_of

if TYPE_CHECKING:
    from lm_eval_ext.data import DataFile

SOURCES = {
    "train": ("cogs", "train"),
    "dev": ("cogs", "dev"),
    "id": ("cogs", "test"),
    "testlex": ("cogs_exposure", "test_lex"),
    "gen": ("cogs", "gen"),
}
"""The declared source and file of each split; cogs_mini's files have the same names."""

SMALL = 50
"""Examples per type in ``gen_small``."""

Revision = Annotated[Literal["2020", "2022"], BeforeValidator(str)]
"""Gen before and after the authors' correction; the paper used the first."""


class Words(Exact):
    """The words that replace the key words.

    Attributes:
        corpus: ``cogs`` or ``mini``.
        lexicon: One of :data:`~lm_eval_ext.benchmarks.cogs.lexicons.LEXICONS`.
        seed: The seed that words are drawn from; only for the lexicon ``fresh``.
        shape: The form of the words; only for the lexicon ``fresh``.
        fresh: The seed for all benchmarks, instead of ``seed``; only for ``fresh``.
    """

    corpus: Corpus = "cogs"
    lexicon: str = UNMODIFIED
    seed: int | None = None
    shape: str | None = None
    fresh: int | None = None

    @model_validator(mode="after")
    def _legal(self) -> "Words":
        self.words()
        return self

    def words(self) -> Mapping[str, str]:
        """Return the replacement of each key word of the corpus."""
        return replacements(
            self.lexicon,
            seed=self.seed,
            shape=self.shape,
            fresh=self.fresh,
            items=mini.items() if self.corpus == "mini" else ITEMS,
        )


class Style(Words):
    """Prompts: the sentence alone, or as a model was fine-tuned.

    COGS is for models that were fine-tuned to translate a sentence into its logical form, so there
    is no instruction.

    Attributes:
        prefix: The text before each sentence.
        separator: The text after each sentence.
        leading_space: Whether a sentence that starts with a new word gets a space before it, as in
            the authors' files ``..._space_prepended``; not for the lexicon ``unmodified``.
    """

    prefix: str = ""
    separator: str = ""
    leading_space: bool = False

    @model_validator(mode="after")
    def _legal_space(self) -> "Style":
        if self.leading_space and self.lexicon == UNMODIFIED:
            raise OptionError(
                "leading_space is for texts that start with a new word, and the lexicon "
                f"{UNMODIFIED} has no new words; leave it out"
            )
        return self

    def ask(self, example: Example, words: Mapping[str, str]) -> tuple[str, str]:
        """Return the prompt and the answer of an example."""
        sentence = substitute(example.sentence, words, leading_space=self.leading_space)
        return self.prefix + sentence + self.separator, substitute(example.form, words)


class Options(Style):
    """The options of a task.

    Attributes:
        split: ``id``, ``testlex``, ``gen`` or ``gen_small``.
        gen_revision: The version of Gen: ``2020`` is the paper's, ``2022`` the corrected one.
        instruction: Whether a chat model gets an instruction before a bare sentence
            (:mod:`~lm_eval_ext.benchmarks.cogs.answers`).
    """

    split: Split = "gen"
    gen_revision: Revision = "2020"
    instruction: bool = True


@loader(prefix="cogs_", options=Options)
def dataset(options: Options) -> TaskData:
    """Load a split for lm-eval, as the split ``test``.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    split, files = examples(options.corpus, options.split, options.gen_revision)
    words = options.words()
    texts = []
    for example in split:
        prompt, form = options.ask(example, words)
        texts.append({"sentence": prompt, "form": form})
    return documents(options, split, texts, files)


@loader(prefix="cogs_", options=Options)
def pairs(options: Options) -> TaskData:
    """Load a split whose documents ask each example twice: without and with substitution.

    ``context`` and ``form`` are lists of two, with the unmodified words first.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    split, files = examples(options.corpus, options.split, options.gen_revision)
    words = options.words()
    texts = []
    for example in split:
        prompt, form = options.ask(example, {})
        new_prompt, new_form = options.ask(example, words)
        texts.append({"context": [prompt, new_prompt], "form": [form, new_form]})
    return documents(options, split, texts, files)


def documents(
    options: Words,
    split: Iterable[Example],
    texts: Iterable[Mapping[str, Any]],
    files: Sequence["DataFile"],
) -> TaskData:
    """Return the documents of a task: the columns that all tasks have, and an example's texts."""
    shared = options.model_dump(include={"corpus", "split"})
    rows = []
    for example, columns in zip(split, texts, strict=True):
        rows.append({"id": example.id, "type": example.type, **shared, **columns})
    return TaskData(documents=rows, provenance=provenance.describe(files) if files else None)


def examples(
    corpus: str, split: str, gen_revision: str = "2020"
) -> "tuple[Sequence[Example], list[DataFile]]":
    """Return a split with the corpus's own words, and the file that it was read from, if any.

    Args:
        corpus: ``cogs`` or ``mini``.
        split: A split of a task, or ``train`` or ``dev``.
        gen_revision: The version of Gen, before or after the authors' correction.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    name = split.removesuffix("_small")
    if corpus == "mini":
        whole_split = mini.examples(name)
        files = []
    else:
        source, file_name = SOURCES[name]
        file = require(source, file_name)
        rows = read_rows(file.path)
        if name == "gen" and gen_revision == "2020":
            rows = before_correction(rows)
            file = dataclasses.replace(file, name="gen of 2020", sha256=SHA256_2020)
        whole_split = numbered(rows, name)
        files = [file]
    if split == "gen_small":
        return small(whole_split), files
    return whole_split, files


class Row(NamedTuple):
    """A line of a COGS file."""

    sentence: str
    form: str
    type: str


def numbered(rows: Iterable[Row], split: str) -> list[Example]:
    """Return rows as examples.

    Their types leave out the ending that all of the authors' Test-Lex have.
    """
    examples = []
    for number, row in enumerate(rows, start=1):
        type_ = row.type.removesuffix("_1100_delimited")
        examples.append(Example(f"{split}/{number}", row.sentence, row.form, type_))
    return examples


def read_rows(path: Path) -> list[Row]:
    """Read a COGS file: tab-separated, without header or quoting.

    Raises:
        DataError: The file cannot be read, or a line has another form; the message names it.
    """
    rows = []
    for location, line in lines_of(path):
        match line.split("\t"):
            case [sentence, form, type_] if sentence and form and type_:
                rows.append(Row(sentence, form, type_))
            case _:
                raise DataError(
                    f"{location}: not a sentence, a logical form and a type, separated by tabs"
                )
    return rows


def write_rows(target: Path, rows: Iterable[Row], style: Style) -> None:
    """Write a variant of COGS's rows, completely or not at all.

    With ``leading_space``, a logical form that starts with a new word gets a space, too.

    Raises:
        OptionError: The target cannot be written.
    """
    replace_words = partial(substitute, words=style.words(), leading_space=style.leading_space)
    with atomic_text(target) as out:
        for row in rows:
            out.write(f"{replace_words(row.sentence)}\t{replace_words(row.form)}\t{row.type}\n")


def write_mini(folder: Path, style: Style) -> None:
    """Write every split of cogs_mini in COGS's format.

    Raises:
        OptionError: The folder is not empty or cannot be written.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise OptionError(f"{folder} is not empty; name another folder")
    with atomic_folder(folder) as unfinished:
        for split, (_, name) in SOURCES.items():
            examples = mini.examples(split)
            rows = [Row(example.sentence, example.form, example.type) for example in examples]
            write_rows(unfinished / f"{name}.tsv", rows, style)


def small(examples: Sequence[Example], per_type: int = SMALL) -> list[Example]:
    """Return a fixed part: of each type, the examples with the smallest hashes, in their order.

    The hash is the SHA-256 of the unmodified sentence, so the part is the same for all lexicons
    and both revisions of Gen, and nothing is drawn at run time.
    """
    hashes_by_type: dict[str, list[tuple[bytes, str]]] = defaultdict(list)
    for example in examples:
        digest = hashlib.sha256(example.sentence.encode()).digest()
        hashes_by_type[example.type].append((digest, example.id))
    chosen: set[str] = set()
    for hashes in hashes_by_type.values():
        chosen.update(example_id for _, example_id in sorted(hashes)[:per_type])
    return [example for example in examples if example.id in chosen]


SHA256_2020 = "410369d993e7cf3af9bb75835a77b1a332b56e60985a8bf1e7d75c30e91d4828"
"""The checksum of the whole uncorrected file."""

CORRECTED = (
    592, 868, 1125, 1309, 1820, 2416, 2425, 2499, 3494, 3542, 4021, 4388, 5287, 6343, 6394, 8322,
    9822, 9879, 10035, 10304, 10318, 10504, 11081, 11197, 11419, 11808, 12100, 12117, 12231,
    12528, 13180, 13707, 13831, 14171, 14377, 14419, 14632, 15014, 15472, 15586, 16810, 17043,
    17725, 18446, 18916, 19066, 19347, 19921, 19929, 20018, 20576,
)  # fmt: skip
"""The corrected lines, counted from 1; the correction is the last role of the logical form."""


def before_correction(rows: Iterable[Row]) -> list[Row]:
    """Return Gen as the paper used it, given the current file.

    On 2022-09-13 the authors corrected 51 logical forms of obj_pp_to_subj_pp: the subject of a
    verb such as "rolled" is its theme, not its agent. Only these roles differ, so they are
    changed back; it is not known which upstream commit has the uncorrected file.

    Raises:
        DataError: The result is not byte for byte the file that the paper used.
    """
    uncorrected = list(rows)
    for number in CORRECTED:
        if number <= len(uncorrected):
            row = uncorrected[number - 1]
            form_before, theme, form_behind = row.form.rpartition(" theme ")
            if theme:
                uncorrected[number - 1] = row._replace(form=f"{form_before} agent {form_behind}")
    content = "".join("\t".join(row) + "\n" for row in uncorrected)
    if sha256_of_text(content) != SHA256_2020:
        raise DataError(
            "the gen file of 2020 cannot be computed: this gen file is not COGS's corrected one; "
            "fetch it again (lm-eval-ext data fetch cogs)"
        )
    return uncorrected
