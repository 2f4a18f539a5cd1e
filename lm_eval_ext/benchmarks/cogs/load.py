"""From COGS's files, or our own grammar, to lm-eval's documents."""

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.cogs import mini, prompt
from lm_eval_ext.benchmarks.cogs.lexicons import (
    FRESH,
    ITEMS,
    LEXICONS,
    UNMODIFIED,
    UNPUBLISHED,
    replacements,
)
from lm_eval_ext.benchmarks.cogs.records import COLUMNS, TEST_LEX_SUFFIX, Example, types_of
from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import loader

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo

SOURCES = {
    "id": ("cogs", "test"),
    "testlex": ("cogs_exposure", "test_lex"),
    "gen": ("cogs", "gen"),
    "gen_small": ("cogs", "gen"),
}
"""The declared source and file of each split."""

SMALL = 50
"""Examples per type in ``gen_small``."""

REVISIONS = ("2020", "2022")
"""Gen before and after the authors' correction; the paper used the first."""


@loader(prefix="cogs_")
def dataset(
    *,
    cogs_corpus: str = "cogs",
    cogs_lexicon: str = UNMODIFIED,
    cogs_split: str = "gen",
    cogs_gen_revision: str = "2020",
    cogs_seed: int | None = None,
    cogs_shape: str | None = None,
    cogs_prefix: str = "",
    cogs_separator: str = "",
    cogs_leading_space: bool = False,
    cogs_instruction: bool = True,
    fresh: int | None = None,
) -> "DatasetDict":
    """Loads a split for lm-eval, as the split ``test``.

    Args:
        cogs_corpus: ``cogs`` or ``mini``.
        cogs_lexicon: One of :data:`~lm_eval_ext.benchmarks.cogs.lexicons.LEXICONS`, or of
            :data:`~lm_eval_ext.benchmarks.cogs.lexicons.UNPUBLISHED`.
        cogs_split: ``id``, ``testlex``, ``gen`` or ``gen_small``.
        cogs_gen_revision: Of COGS's Gen: ``2020``, the paper's, or ``2022``, corrected.
        cogs_seed: Of the words; only for the lexicon ``fresh``.
        cogs_shape: The form of the words; only for the lexicon ``fresh``.
        cogs_prefix: Precedes the sentence.
        cogs_separator: Appended to the sentence.
        cogs_leading_space: Whether a sentence that starts with a new word gets a space before it;
            not for the lexicon ``unmodified``, which has no new words.
        cogs_instruction: Whether a chat model gets an instruction before a bare sentence
            (:mod:`~lm_eval_ext.benchmarks.cogs.chat`).
        fresh: The seed for all benchmarks, instead of ``cogs_seed``; only for ``fresh``.

    Raises:
        OptionError: A value is invalid.
        DataError: A file is unavailable or invalid.
    """
    words = words_of(cogs_corpus, cogs_lexicon, cogs_seed, cogs_shape, fresh)
    _check_flag("cogs_instruction", cogs_instruction)
    style = _style(cogs_lexicon, cogs_prefix, cogs_separator, leading_space=cogs_leading_space)
    rows, info = _rows(cogs_corpus, cogs_split, cogs_gen_revision, [words], style)
    return _as_test([{**row, "sentence": text, "form": form} for row, [text], [form] in rows], info)


@loader(prefix="cogs_")
def pairs(
    *,
    cogs_corpus: str = "cogs",
    cogs_lexicon: str = UNMODIFIED,
    cogs_split: str = "gen",
    cogs_gen_revision: str = "2020",
    cogs_seed: int | None = None,
    cogs_shape: str | None = None,
    cogs_prefix: str = "",
    cogs_separator: str = "",
    cogs_leading_space: bool = False,
    cogs_instruction: bool = True,
    fresh: int | None = None,
) -> "DatasetDict":
    """Loads a split whose documents ask each example twice: without and with substitution.

    ``context`` and ``form`` are lists of two, with the unmodified words first. Arguments and
    errors are those of :func:`dataset`.
    """
    lexicons = (
        words_of(cogs_corpus, UNMODIFIED, None, None),
        words_of(cogs_corpus, cogs_lexicon, cogs_seed, cogs_shape, fresh),
    )
    _check_flag("cogs_instruction", cogs_instruction)
    style = _style(cogs_lexicon, cogs_prefix, cogs_separator, leading_space=cogs_leading_space)
    rows, info = _rows(cogs_corpus, cogs_split, cogs_gen_revision, lexicons, style)
    return _as_test([{**row, "context": texts, "form": forms} for row, texts, forms in rows], info)


Rows = Iterator[tuple[dict[str, str], list[str], list[str]]]
"""A row's common columns, its prompts and its logical forms; one of each per lexicon."""


def _rows(
    corpus: str,
    split: str,
    gen_revision: str,
    lexicons: Sequence[Mapping[str, str]],
    style: Mapping[str, Any],
) -> tuple[Rows, "DatasetInfo"]:
    loaded, info = examples(corpus, split, str(gen_revision))

    def rows() -> Rows:
        for example in loaded:
            yield (
                {"id": example.id, "type": example.type, "corpus": corpus, "split": split},
                [prompt.question(example, words, **style) for words in lexicons],
                [prompt.answer(example, words) for words in lexicons],
            )

    return rows(), info


def _style(lexicon: str, prefix: str, separator: str, *, leading_space: bool) -> dict[str, Any]:
    """The options of a prompt, checked: ``--metadata`` gives values of any type."""
    for option, text in (("cogs_prefix", prefix), ("cogs_separator", separator)):
        if not isinstance(text, str):
            raise OptionError(f"{option} is {text!r}, which must be text")
    _check_flag("cogs_leading_space", leading_space)
    if leading_space and lexicon == UNMODIFIED:
        raise OptionError(
            f"cogs_leading_space is for sentences that start with a new word, and {UNMODIFIED} has "
            "no new words; leave it out, or run the tasks of another lexicon"
        )
    return {"prefix": prefix, "separator": separator, "leading_space": leading_space}


def _check_flag(option: str, value: object) -> None:
    if not isinstance(value, bool):
        raise OptionError(f"{option} is {value!r}, which must be true or false")


def _as_test(documents: list[dict[str, Any]], info: "DatasetInfo") -> "DatasetDict":
    from datasets import Dataset, DatasetDict

    return DatasetDict({"test": Dataset.from_list(documents, info=info)})


def words_of(
    corpus: str, lexicon: str, seed: int | None, shape: str | None, fresh: int | None = None
) -> Mapping[str, str]:
    """The replacement of each key word of a corpus.

    Raises:
        OptionError: As :func:`~lm_eval_ext.benchmarks.cogs.lexicons.replacements`, and for a seed
            or shape that the lexicon would not use: published ones have their own.
    """
    items = mini.items() if corpus == "mini" else ITEMS
    options = (("cogs_seed", seed), ("cogs_shape", shape), ("fresh", fresh))
    given = [name for name, value in options if value is not None]
    if lexicon in (*LEXICONS, *UNPUBLISHED) and lexicon != FRESH and given:
        raise OptionError(
            f"{given[0]} is only for the lexicon {FRESH}; the words of {lexicon} are fixed: "
            "leave it out, or run the tasks of fresh by themselves"
        )
    return replacements(lexicon, seed=seed, shape=shape, items=items, fresh=fresh)


def examples(
    corpus: str, split: str, gen_revision: str = "2020"
) -> tuple[Sequence[Example], "DatasetInfo"]:
    """A split with the corpus's own words, and its provenance.

    Raises:
        OptionError: A value is invalid.
        DataError: As :func:`dataset`.
    """
    types = types_of(corpus, split)
    if gen_revision not in REVISIONS:
        raise OptionError(f"cogs_gen_revision: no {gen_revision!r}; use {' or '.join(REVISIONS)}")
    found: Sequence[Example]
    if corpus == "mini":
        found = mini.examples(split.removesuffix("_small"))
        info = provenance.describe_embedded("cogs_mini", mini.digest())
    else:
        file = require(*SOURCES[split])
        lines = read(file.path)
        if file.name == "gen" and gen_revision == "2020":
            lines = before_correction(lines)
            file = dataclasses.replace(file, name="gen of 2020", sha256=SHA256_2020)
        found = read_examples(lines, split.removesuffix("_small"), str(file.path), types)
        info = provenance.describe([file])
    return (small(found) if split == "gen_small" else found), info


def read(path: Path) -> list[str]:
    """The lines of a file.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def read_examples(
    lines: Iterable[str], split: str, place: str, types: Collection[str] = ()
) -> list[Example]:
    """Reads lines of a sentence, a logical form and a type; ``place`` names the file in messages.

    ``types`` are those that have metrics; if there are none, any type is legal.

    Raises:
        DataError: A line has another form or type; the message names it.
    """
    found = []
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t")
        if len(columns) != COLUMNS or not all(columns):
            raise DataError(
                f"{place}:{number}: not a sentence, a logical form and a type, separated by tabs"
            )
        sentence, form, type_ = columns
        type_ = type_.removesuffix(TEST_LEX_SUFFIX)
        if types and type_ not in types:
            raise DataError(f"{place}:{number}: unknown type {type_!r}; use {', '.join(types)}")
        found.append(Example(f"{split}/{number}", sentence, form, type_))
    return found


def small(found: Iterable[Example], per_type: int = SMALL) -> list[Example]:
    """A fixed part: of each type, the examples with the smallest hashes, in the file's order.

    The hash is the SHA-256 of the unmodified sentence, so the part is the same for all lexicons
    and both revisions of Gen, and nothing is drawn at run time.
    """
    ranked: dict[str, list[tuple[bytes, str]]] = defaultdict(list)
    found = list(found)
    for example in found:
        digest = hashlib.sha256(example.sentence.encode()).digest()
        ranked[example.type].append((digest, example.id))
    chosen = {id_ for members in ranked.values() for _, id_ in sorted(members)[:per_type]}
    return [example for example in found if example.id in chosen]


SHA256_2020 = "410369d993e7cf3af9bb75835a77b1a332b56e60985a8bf1e7d75c30e91d4828"
"""Of the whole uncorrected file."""

CORRECTED = (
    592, 868, 1125, 1309, 1820, 2416, 2425, 2499, 3494, 3542, 4021, 4388, 5287, 6343, 6394, 8322,
    9822, 9879, 10035, 10304, 10318, 10504, 11081, 11197, 11419, 11808, 12100, 12117, 12231,
    12528, 13180, 13707, 13831, 14171, 14377, 14419, 14632, 15014, 15472, 15586, 16810, 17043,
    17725, 18446, 18916, 19066, 19347, 19921, 19929, 20018, 20576,
)  # fmt: skip
"""The corrected lines, counted from 1; the correction is the last role of the logical form."""


def before_correction(lines: Sequence[str]) -> list[str]:
    """Gen as the paper used it, from the current file.

    On 2022-09-13 the authors corrected 51 logical forms of obj_pp_to_subj_pp: the subject of a
    verb such as "rolled" is its theme, not its agent. Only these roles differ, so they are
    changed back; it is not known which upstream commit has the uncorrected file.

    Raises:
        DataError: The result is not byte for byte the file that the paper used.
    """
    old = list(lines)
    for index in (number - 1 for number in CORRECTED if number <= len(old)):
        before, _, after = old[index].rpartition(" theme ")
        old[index] = f"{before} agent {after}"
    content = "".join(f"{line}\n" for line in old)
    if hashlib.sha256(content.encode()).hexdigest() != SHA256_2020:
        raise DataError(
            "the gen file of 2020 cannot be computed: this gen file is not COGS's corrected one; "
            "fetch it again (lm-eval-ext data fetch cogs)"
        )
    return old
