"""From COGS's files, or the grammar of our own, to lm-eval's documents."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.cogs import files, mini, prompt, revisions
from lm_eval_ext.benchmarks.cogs.lexicons import FRESH, ITEMS, UNMODIFIED, replacements
from lm_eval_ext.benchmarks.cogs.records import Example, types_of
from lm_eval_ext.data import require
from lm_eval_ext.errors import OptionError
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
"""Which declared file holds a split."""


@loader(prefix="cogs_")
def dataset(
    *,
    cogs_corpus: str = "cogs",
    cogs_lexicon: str = UNMODIFIED,
    cogs_split: str = "gen",
    cogs_gen_revision: str = "2020",
    cogs_seed: int | None = None,
    cogs_shape: str | None = None,
    cogs_separator: str = "",
    cogs_leading_space: bool = False,
) -> "DatasetDict":
    """Loads a split for lm-eval, as the split ``test``.

    Each document has ``id``, ``type``, ``corpus``, ``split``, ``sentence`` (what is asked) and
    ``form`` (the answer), in the words of the lexicon.

    Args:
        cogs_corpus: ``cogs`` or ``mini``.
        cogs_lexicon: One of :data:`~lm_eval_ext.benchmarks.cogs.lexicons.LEXICONS`.
        cogs_split: ``id``, ``testlex``, ``gen`` or ``gen_small``.
        cogs_gen_revision: Of COGS's Gen: ``2020``, the paper's, or ``2022``, corrected.
        cogs_seed: For the lexicon ``fresh``, which words; others have seeds of their own.
        cogs_shape: For the lexicon ``fresh``, what the words look like.
        cogs_separator: Put behind the sentence.
        cogs_leading_space: Whether a sentence that starts with a new word gets a space before it.

    Raises:
        OptionError: For a value that is not legal.
        DataError: If a file is not at hand or does not hold what it should.
    """
    loaded, info = examples(cogs_corpus, cogs_split, str(cogs_gen_revision))
    words = words_of(cogs_corpus, cogs_lexicon, cogs_seed, cogs_shape)
    style = _style(separator=cogs_separator, leading_space=cogs_leading_space)
    documents = [
        {
            **_common(example, cogs_corpus, cogs_split),
            "sentence": prompt.question(example, words, **style),
            "form": prompt.answer(example, words),
        }
        for example in loaded
    ]
    return _as_test(documents, info)


@loader(prefix="cogs_")
def pairs(
    *,
    cogs_corpus: str = "cogs",
    cogs_lexicon: str = UNMODIFIED,
    cogs_split: str = "gen",
    cogs_gen_revision: str = "2020",
    cogs_seed: int | None = None,
    cogs_shape: str | None = None,
    cogs_separator: str = "",
    cogs_leading_space: bool = False,
) -> "DatasetDict":
    """Loads a split whose documents ask every example twice: without and with substitution.

    ``context`` and ``form`` are lists of two, the unmodified words first; the rest, the
    arguments and the errors are those of :func:`dataset`.
    """
    loaded, info = examples(cogs_corpus, cogs_split, str(cogs_gen_revision))
    lexicons = (
        words_of(cogs_corpus, UNMODIFIED, None, None),
        words_of(cogs_corpus, cogs_lexicon, cogs_seed, cogs_shape),
    )
    style = _style(separator=cogs_separator, leading_space=cogs_leading_space)
    documents = [
        {
            **_common(example, cogs_corpus, cogs_split),
            "context": [prompt.question(example, words, **style) for words in lexicons],
            "form": [prompt.answer(example, words) for words in lexicons],
        }
        for example in loaded
    ]
    return _as_test(documents, info)


def examples(
    corpus: str, split: str, gen_revision: str = "2020"
) -> tuple[list[Example], "DatasetInfo"]:
    """A split in the corpus's own words, and where it comes from.

    Raises:
        OptionError: For a value that is not legal.
        DataError: As :func:`dataset`.
    """
    types = types_of(corpus, split)
    if gen_revision not in revisions.REVISIONS:
        raise OptionError(
            f"cogs_gen_revision: no {gen_revision!r}; use {' or '.join(revisions.REVISIONS)}"
        )
    if corpus == "mini":
        found = mini.examples(split.removesuffix("_small"))
        info = provenance.describe_embedded("cogs_mini", mini.digest())
    else:
        file = require(*SOURCES[split])
        lines = files.read(file.path)
        if file.name == "gen" and gen_revision == "2020":
            lines = revisions.before_correction(lines)
            file = dataclasses.replace(file, name="gen of 2020", sha256=revisions.SHA256_2020)
        found = files.examples(lines, split.removesuffix("_small"), str(file.path))
        files.check_types(found, types, str(file.path))
        info = provenance.describe([file])
    return (files.small(found) if split == "gen_small" else found), info


def words_of(corpus: str, lexicon: str, seed: int | None, shape: str | None) -> Mapping[str, str]:
    """What the key words of a corpus become.

    A seed changes nothing where the lexicon is a published one, so that one ``--metadata`` may
    serve a run over several lexicons.

    Raises:
        OptionError: As :func:`~lm_eval_ext.benchmarks.cogs.lexicons.replacements`.
    """
    items = mini.items() if corpus == "mini" else ITEMS
    if lexicon != FRESH:
        seed = shape = None
    return replacements(lexicon, seed=seed, shape=shape, items=items)


def _style(*, separator: str, leading_space: bool) -> dict[str, Any]:
    if not isinstance(separator, str) or not isinstance(leading_space, bool):
        raise OptionError(
            f"cogs_separator is {separator!r}, which must be text; "
            f"cogs_leading_space is {leading_space!r}, which must be true or false"
        )
    return {"separator": separator, "leading_space": leading_space}


def _common(example: Example, corpus: str, split: str) -> dict[str, str]:
    return {"id": example.id, "type": example.type, "corpus": corpus, "split": split}


def _as_test(documents: list[dict[str, Any]], info: "DatasetInfo") -> "DatasetDict":
    from datasets import Dataset, DatasetDict

    return DatasetDict({"test": Dataset.from_list(documents, info=info)})
