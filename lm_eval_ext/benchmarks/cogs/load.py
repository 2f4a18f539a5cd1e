"""From COGS's files, or our own grammar, to lm-eval's documents."""

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    """What the key words become.

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
        """The replacement of each key word of the corpus."""
        options = self.model_dump(include={"lexicon", "seed", "shape", "fresh"})
        return replacements(**options, items=mini.items() if self.corpus == "mini" else ITEMS)


class Style(Words):
    """Prompts: the sentence alone, or as a model was fine-tuned.

    COGS is for models that were fine-tuned to translate a sentence into its logical form, so there
    is no instruction.

    Attributes:
        prefix: Before each sentence.
        separator: After it.
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
        """The prompt and the answer of an example."""
        sentence = substitute(example.sentence, words, leading_space=self.leading_space)
        return self.prefix + sentence + self.separator, substitute(example.form, words)


class Options(Style):
    """The options of a task.

    Attributes:
        split: ``id``, ``testlex``, ``gen`` or ``gen_small``.
        gen_revision: Which Gen: ``2020`` is the paper's, ``2022`` the corrected one.
        instruction: Whether a chat model gets an instruction before a bare sentence
            (:mod:`~lm_eval_ext.benchmarks.cogs.answers`).
    """

    split: Split = "gen"
    gen_revision: Revision = "2020"
    instruction: bool = True


@loader(prefix="cogs_", options=Options)
def dataset(options: Options) -> TaskData:
    """Loads a split for lm-eval, as the split ``test``.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    found, files = examples(options.corpus, options.split, options.gen_revision)
    words = options.words()
    asked = (options.ask(one, words) for one in found)
    texts = [{"sentence": sentence, "form": form} for sentence, form in asked]
    return documents(options, found, texts, files)


@loader(prefix="cogs_", options=Options)
def pairs(options: Options) -> TaskData:
    """Loads a split whose documents ask each example twice: without and with substitution.

    ``context`` and ``form`` are lists of two, with the unmodified words first.

    Raises:
        DataError: As :func:`dataset`.
    """
    found, files = examples(options.corpus, options.split, options.gen_revision)
    words = options.words()
    asked = (zip(options.ask(one, {}), options.ask(one, words), strict=True) for one in found)
    texts = [{"context": list(sentences), "form": list(forms)} for sentences, forms in asked]
    return documents(options, found, texts, files)


def documents(
    options: Words,
    found: Iterable[Example],
    texts: Iterable[Mapping[str, Any]],
    files: Sequence["DataFile"],
) -> TaskData:
    """The documents of a task: what all tasks have of an example, and its texts."""
    of_all = options.model_dump(include={"corpus", "split"})
    rows = [
        {"id": one.id, "type": one.type, **of_all, **own}
        for one, own in zip(found, texts, strict=True)
    ]
    return TaskData(documents=rows, provenance=provenance.describe(files) if files else None)


def examples(
    corpus: str, split: str, gen_revision: str = "2020"
) -> "tuple[Sequence[Example], list[DataFile]]":
    """A split, also ``train`` or ``dev``, with the corpus's own words, and its file if it has one.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    name = split.removesuffix("_small")
    if corpus == "mini":
        found, files = mini.examples(name), []
    else:
        file = require(*SOURCES[name])
        rows = read_rows(file.path)
        if file.name == "gen" and gen_revision == "2020":
            rows = before_correction(rows)
            file = dataclasses.replace(file, name="gen of 2020", sha256=SHA256_2020)
        found = numbered(rows, name)
        files = [file]
    return (small(found) if split == "gen_small" else found), files


Row = tuple[str, str, str]
"""A line of a COGS file: sentence, logical form and type."""


def numbered(rows: Iterable[Row], split: str) -> list[Example]:
    """Rows as examples, whose types leave out the ending that all of the authors' Test-Lex have."""
    return [
        Example(f"{split}/{number}", sentence, form, type_.removesuffix("_1100_delimited"))
        for number, (sentence, form, type_) in enumerate(rows, start=1)
    ]


def read_rows(path: Path) -> list[Row]:
    """Reads a COGS file: tab-separated, without header or quoting.

    Raises:
        DataError: The file cannot be read, or a line has another form; the message names it.
    """
    rows = []
    for place, line in lines_of(path):
        match line.split("\t"):
            case [sentence, form, type_] if sentence and form and type_:
                rows.append((sentence, form, type_))
            case _:
                raise DataError(
                    f"{place}: not a sentence, a logical form and a type, separated by tabs"
                )
    return rows


def write_rows(target: Path, rows: Iterable[Row], style: Style) -> None:
    """Writes a variant of COGS's rows, completely or not at all.

    With ``leading_space``, a logical form that starts with a new word gets a space, too.

    Raises:
        OptionError: The target cannot be written.
    """
    words = style.words()
    with atomic_text(target) as out:
        for sentence, form, type_ in rows:
            texts = (
                substitute(text, words, leading_space=style.leading_space)
                for text in (sentence, form)
            )
            out.write("\t".join((*texts, type_)) + "\n")


def write_mini(folder: Path, style: Style) -> None:
    """Writes every split of cogs_mini in COGS's format.

    Raises:
        OptionError: The folder is not empty or cannot be written.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise OptionError(f"{folder} is not empty; name another folder")
    with atomic_folder(folder) as part:
        for split, (_, name) in SOURCES.items():
            rows = [(one.sentence, one.form, one.type) for one in mini.examples(split)]
            write_rows(part / f"{name}.tsv", rows, style)


def small(found: Sequence[Example], per_type: int = SMALL) -> list[Example]:
    """A fixed part: of each type, the examples with the smallest hashes, in the file's order.

    The hash is the SHA-256 of the unmodified sentence, so the part is the same for all lexicons
    and both revisions of Gen, and nothing is drawn at run time.
    """
    ranked: dict[str, list[tuple[bytes, str]]] = defaultdict(list)
    for example in found:
        digest = hashlib.sha256(example.sentence.encode()).digest()
        ranked[example.type].append((digest, example.id))
    chosen = {id_ for members in ranked.values() for _, id_ in sorted(members)[:per_type]}
    return [example for example in found if example.id in chosen]


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
    """Gen as the paper used it, from the current file.

    On 2022-09-13 the authors corrected 51 logical forms of obj_pp_to_subj_pp: the subject of a
    verb such as "rolled" is its theme, not its agent. Only these roles differ, so they are
    changed back; it is not known which upstream commit has the uncorrected file.

    Raises:
        DataError: The result is not byte for byte the file that the paper used.
    """
    old = list(rows)
    for index in (number - 1 for number in CORRECTED if number <= len(old)):
        sentence, form, type_ = old[index]
        old[index] = sentence, " agent ".join(form.rsplit(" theme ", 1)), type_
    content = "".join("\t".join(row) + "\n" for row in old)
    if sha256_of_text(content) != SHA256_2020:
        raise DataError(
            "the gen file of 2020 cannot be computed: this gen file is not COGS's corrected one; "
            "fetch it again (lm-eval-ext data fetch cogs)"
        )
    return old
