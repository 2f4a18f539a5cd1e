"""From COGS's files, or the grammar of our own, to lm-eval's documents.

Reading COGS's files, and the fixed part of Gen for expensive models.

Gen as it was before September 2022, from Gen as it is now.

On 2022-09-13 the authors corrected 51 logical forms of obj_pp_to_subj_pp: the subject of a verb
such as "rolled" is its theme, not its agent. The paper used the file from before (fact sheet).
No commit upstream is known for certain to have that file, but the correction can be taken back:
the sentences and everything else are the same. A digest over the result vouches for it.
"""

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.cogs import mini, prompt
from lm_eval_ext.benchmarks.cogs.lexicons import FRESH, ITEMS, UNMODIFIED, replacements
from lm_eval_ext.benchmarks.cogs.records import TEST_LEX_SUFFIX, Example, types_of
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
    if gen_revision not in REVISIONS:
        raise OptionError(f"cogs_gen_revision: no {gen_revision!r}; use {' or '.join(REVISIONS)}")
    if corpus == "mini":
        found = mini.examples(split.removesuffix("_small"))
        info = provenance.describe_embedded("cogs_mini", mini.digest())
    else:
        file = require(*SOURCES[split])
        lines = read(file.path)
        if file.name == "gen" and gen_revision == "2020":
            lines = before_correction(lines)
            file = dataclasses.replace(file, name="gen of 2020", sha256=SHA256_2020)
        found = read_examples(lines, split.removesuffix("_small"), str(file.path))
        check_types(found, types, str(file.path))
        info = provenance.describe([file])
    return (small(found) if split == "gen_small" else found), info


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


COLUMNS = 3
SMALL = 50
"""Examples per type in the small part."""


def read(path: Path) -> list[str]:
    """The lines of a file.

    Raises:
        DataError: If it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def read_examples(lines: Iterable[str], split: str, place: str) -> list[Example]:
    """Takes lines apart: sentence, logical form, type.

    Args:
        lines: Of one file.
        split: What ids start with.
        place: Names the file in messages.

    Raises:
        DataError: For a line of another shape; it is named.
    """
    found = []
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t")
        if len(columns) != COLUMNS or not all(columns):
            raise DataError(
                f"{place}:{number}: not a sentence, a logical form and a type, separated by tabs"
            )
        sentence, form, type_ = columns
        found.append(Example(f"{split}/{number}", sentence, form, _type_name(type_)))
    return found


def _type_name(type_: str) -> str:
    return type_.removesuffix(TEST_LEX_SUFFIX)


def check_types(found: Iterable[Example], legal: Collection[str], place: str) -> None:
    """Holds a test file to the types that its metrics are named after.

    Raises:
        DataError: For another one; the line is named.
    """
    for example in found:
        if example.type not in legal:
            line = example.id.rpartition("/")[2]
            raise DataError(
                f"{place}:{line}: no type {example.type!r} is known here; use {', '.join(legal)}"
            )


def small(found: Iterable[Example], per_type: int = SMALL) -> list[Example]:
    """A part that is the same for everyone: of each type those of the smallest hashes.

    The hash is the SHA-256 of the unmodified sentence, so nothing is drawn at run time and all
    lexicons and both revisions of Gen have the same part. The order stays the file's.
    """
    ranked: dict[str, list[tuple[bytes, str]]] = defaultdict(list)
    found = list(found)
    for example in found:
        digest = hashlib.sha256(example.sentence.encode()).digest()
        ranked[example.type].append((digest, example.id))
    chosen = {id_ for members in ranked.values() for _, id_ in sorted(members)[:per_type]}
    return [example for example in found if example.id in chosen]


REVISIONS = ("2020", "2022")
"""Before and after the correction; the paper's is the first."""

SHA256_2020 = "410369d993e7cf3af9bb75835a77b1a332b56e60985a8bf1e7d75c30e91d4828"
"""Of the whole file from before."""

CORRECTED = (
    592, 868, 1125, 1309, 1820, 2416, 2425, 2499, 3494, 3542, 4021, 4388, 5287, 6343, 6394, 8322,
    9822, 9879, 10035, 10304, 10318, 10504, 11081, 11197, 11419, 11808, 12100, 12117, 12231,
    12528, 13180, 13707, 13831, 14171, 14377, 14419, 14632, 15014, 15472, 15586, 16810, 17043,
    17725, 18446, 18916, 19066, 19347, 19921, 19929, 20018, 20576,
)  # fmt: skip
"""The lines, from 1, that were corrected. In each it is the last role of the logical form."""


def before_correction(lines: Sequence[str]) -> list[str]:
    """Takes the correction back.

    Args:
        lines: Of today's file.

    Raises:
        DataError: If the result is not the file that the paper used, byte for byte.
    """
    old = list(lines)
    for index in (number - 1 for number in CORRECTED if number <= len(old)):
        before, _, after = old[index].rpartition(" theme ")
        old[index] = f"{before} agent {after}"
    content = "".join(f"{line}\n" for line in old)
    if hashlib.sha256(content.encode()).hexdigest() != SHA256_2020:
        raise DataError(
            "the gen file of 2020 cannot be had from this gen file, which is not that of COGS; "
            "fetch it again (lm-eval-ext data fetch cogs)"
        )
    return old
