"""From the stimulus files to documents: one document per group of sentences."""

import json
from collections.abc import Iterator
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
    from datasets import DatasetDict

GROUP_SIZE = 12
"""Sentences per group: 4 contexts x 3 continuations, or 6 x 2 in experiment ``two``."""

EXPECTED = {1: True, 0: False, -1: None}
"""The dataset's ``expected`` column, as :attr:`Sentence.felicitous`."""


@loader(prefix="lieder_")
def dataset(lieder_experiment: Experiment = "base") -> "DatasetDict":
    """Loads one experiment for lm-eval, as the split ``test``.

    Each document holds a group: ``item``, ``family``, ``experiment``, the parallel lists
    ``condition``, ``context`` and ``continuation``, and ``felicitous``, the conditions that a
    competent speaker accepts.

    Args:
        lieder_experiment: ``base`` (1, implicit novelty), ``diff`` (2, explicit novelty),
            ``two`` (3, numerals) or ``mini`` (embedded, our own items).

    Raises:
        OptionError: If there is no such experiment.
        DataError: If the file is not at hand or does not hold what it should.
    """
    from datasets import Dataset, DatasetDict

    legal = get_args(Experiment)
    if lieder_experiment not in legal:
        raise OptionError(f"no LIEDER experiment {lieder_experiment!r}; use {', '.join(legal)}")
    if lieder_experiment == "mini":
        loaded = mini.groups()
        info = provenance.describe_embedded("lieder_mini", mini.digest())
    else:
        file = require("lieder", lieder_experiment)
        loaded = read(file.path, lieder_experiment)
        info = provenance.describe([file])
    documents = [to_document(group, lieder_experiment) for group in loaded]
    return DatasetDict({"test": Dataset.from_list(documents, info=info)})


def to_document(group: Group, experiment: Experiment) -> dict[str, Any]:
    """Flattens a group into the columns that lm-eval's dataset holds."""
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

    The id names item, family and continuation. It does not name the context: ``know_doubt``
    is pos_neg in one family, ``affirmative_negation`` in another. That follows from the
    sentence's place in its group, as in the authors' own analysis.

    Raises:
        DataError: If a row or a group is not what the format says; the line is named.
    """
    rows = list(_rows(path))
    if not rows or len(rows) % GROUP_SIZE:
        raise DataError(
            f"{path}: {len(rows)} rows do not make groups of {GROUP_SIZE}; "
            "fetch it again (lm-eval-ext data fetch lieder)"
        )
    contexts = SIX_CONTEXTS if experiment == "two" else FOUR_CONTEXTS
    per_context = GROUP_SIZE // len(contexts)
    places = [context for context in contexts for _ in range(per_context)]
    groups = []
    for start in range(0, len(rows), GROUP_SIZE):
        members = rows[start : start + GROUP_SIZE]
        group = Group(
            item=members[0].item,
            family=members[0].family,
            sentences=tuple(
                row.in_group(members[0], context)
                for row, context in zip(members, places, strict=True)
            ),
        )
        if len({sentence.condition for sentence in group.sentences}) != GROUP_SIZE:
            raise DataError(f"{members[0].place}: a condition occurs twice in this group of 12")
        groups.append(group)
    return groups


@dataclass(frozen=True)
class _Row:
    place: str
    item: str
    family: str
    ending: str
    sentence: str
    felicitous: bool | None

    def in_group(self, first: "_Row", context: str) -> Sentence:
        if self.item != first.item:
            raise DataError(f"{self.place}: item {self.item} stands in the group of {first.item}")
        try:
            text, continuation = prompt.split(self.sentence)
            condition = prompt.condition(context, self.ending)
        except (ValueError, KeyError) as error:
            raise DataError(f"{self.place}: {error}") from None
        return Sentence(condition, text, continuation, self.felicitous)


def _rows(path: Path) -> Iterator[_Row]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            place = f"{path}:{number}"
            try:
                row = json.loads(line)
                number_, noun, first, second, *_, ending = row["id"].split("_")
                yield _Row(
                    place=place,
                    item=f"{number_}_{noun}",
                    family=f"{first}_{second}",
                    ending=ending,
                    sentence=str(row["sent"]),
                    felicitous=EXPECTED[row["expected"]],
                )
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(f"{place}: no row with id, sent and expected ({error!r})") from None
