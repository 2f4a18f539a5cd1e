"""From stimulus files to lm-eval's documents: one document per group of sentences."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from lm_eval_ext.benchmarks.lieder import mini, prompt
from lm_eval_ext.benchmarks.lieder.records import (
    FOUR_CONTEXTS,
    SIX_CONTEXTS,
    Experiment,
    Group,
    Sentence,
)
from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import loader

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo

GROUP_SIZE = 12
"""Sentences per group: 4 contexts x 3 continuations, or 6 x 2 in experiment ``two``."""

EXPECTED = {1: True, 0: False, -1: None}
"""The dataset's ``expected`` column, as :attr:`Sentence.felicitous`."""


@loader(prefix="lieder_")
def dataset(lieder_experiment: Experiment = "base", fresh: int | None = None) -> "DatasetDict":
    """Loads one experiment for lm-eval, as the split ``test``.

    Args:
        lieder_experiment: ``base`` (1, implicit novelty), ``diff`` (2, explicit novelty),
            ``two`` (3, numerals) or ``mini`` (embedded, our own items).
        fresh: Refused: nothing is drawn here.

    Raises:
        OptionError: The experiment does not exist, or a seed is given.
        DataError: The file is not available or not valid.
    """
    legal = get_args(Experiment)
    if lieder_experiment not in legal:
        raise OptionError(f"no LIEDER experiment {lieder_experiment!r}; use {', '.join(legal)}")
    if fresh is not None:
        raise OptionError(
            f"fresh draws new items, and lieder_{lieder_experiment} has a fixed set; use "
            "lieder_fresh, or run it by itself without fresh"
        )
    if lieder_experiment == "mini":
        groups: Sequence[Group] = mini.groups()
        info = provenance.describe_embedded("lieder_mini", mini.digest())
    else:
        file = require("lieder", lieder_experiment)
        groups = read(file.path, lieder_experiment)
        info = provenance.describe([file])
    return documents(groups, lieder_experiment, info)


def documents(
    groups: Iterable[Group], experiment: Experiment, info: "DatasetInfo"
) -> "DatasetDict":
    """The split ``test``, one document per group."""
    from datasets import Dataset, DatasetDict

    rows = [to_document(group, experiment) for group in groups]
    return DatasetDict({"test": Dataset.from_list(rows, info=info)})


def to_document(group: Group, experiment: Experiment) -> dict[str, Any]:
    """Flattens a group into a row: parallel lists, and the felicitous conditions."""
    return {
        "item": group.item,
        "family": group.family,
        "experiment": experiment,
        "condition": [sentence.condition for sentence in group.sentences],
        "context": [sentence.context for sentence in group.sentences],
        "continuation": [sentence.continuation for sentence in group.sentences],
        "felicitous": [sentence.condition for sentence in group.sentences if sentence.felicitous],
    }


def read(path: Path, experiment: Experiment) -> list[Group]:
    """Reads a stimulus file: rows with ``id``, ``sent`` and ``expected``, in groups of 12.

    Raises:
        DataError: A row or a group is not valid; the message names the line.
    """
    rows = list(_rows(path))
    if not rows or len(rows) % GROUP_SIZE:
        raise DataError(
            f"{path}: {len(rows)} rows, which is not a multiple of {GROUP_SIZE}; "
            "fetch the file again (lm-eval-ext data fetch lieder)"
        )
    contexts = SIX_CONTEXTS if experiment == "two" else FOUR_CONTEXTS
    return [
        _group(rows[start : start + GROUP_SIZE], contexts)
        for start in range(0, len(rows), GROUP_SIZE)
    ]


@dataclass(frozen=True)
class _Row:
    """A line of a stimulus file; ``place`` names it in messages."""

    place: str
    item: str
    family: str
    suffix: str
    sentence: str
    felicitous: bool | None


def _rows(path: Path) -> Iterator[_Row]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            place = f"{path}:{number}"
            try:
                row = json.loads(line)
                item, noun, operator, other, *_, continuation = row["id"].split("_")
                yield _Row(
                    place=place,
                    item=f"{item}_{noun}",
                    family=f"{operator}_{other}",
                    suffix=prompt.CONTINUATIONS[continuation],
                    sentence=str(row["sent"]),
                    felicitous=EXPECTED[row["expected"]],
                )
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(
                    f"{place}: not a row with id, sent and expected ({error!r})"
                ) from None


def _group(rows: Sequence[_Row], contexts: Sequence[str]) -> Group:
    """Makes a group of 12 rows.

    The context follows from a row's position, as in the authors' own analysis. The id does not
    give it: ``know_doubt`` is pos_neg in one family, ``affirmative_negation`` in another.
    """
    first = rows[0]
    per_context = GROUP_SIZE // len(contexts)
    sentences = []
    for position, row in enumerate(rows):
        if row.item != first.item:
            raise DataError(f"{row.place}: item {row.item} in a group of item {first.item}")
        try:
            text, continuation = prompt.split(row.sentence)
        except ValueError as error:
            raise DataError(f"{row.place}: {error}") from None
        condition = f"{contexts[position // per_context]}_{row.suffix}"
        sentences.append(Sentence(condition, text, continuation, row.felicitous))
    if len({sentence.condition for sentence in sentences}) != GROUP_SIZE:
        raise DataError(f"{first.place}: a condition occurs twice in the group that starts here")
    return Group(first.item, first.family, tuple(sentences))
