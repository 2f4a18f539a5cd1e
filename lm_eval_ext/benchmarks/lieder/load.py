"""From the stimulus files to documents: one document per group of sentences."""

import json
from collections.abc import Iterable, Iterator
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

    The id names item and family, but not uniquely the context (``know_doubt`` is pos_neg in
    one family, ``affirmative_negation`` in another), so a sentence's condition follows from
    its place in the group, as in the authors' own analysis; the id's last part must agree.

    Raises:
        DataError: If a row or a group is not what the format says; the line is named.
    """
    contexts = SIX_CONTEXTS if experiment == "two" else FOUR_CONTEXTS
    rows = list(_rows(path))
    if not rows or len(rows) % GROUP_SIZE:
        raise DataError(
            f"{path}: {len(rows)} rows do not make groups of {GROUP_SIZE}; "
            "fetch it again (lm-eval-ext data fetch lieder)"
        )
    return [
        _group(rows[start : start + GROUP_SIZE], contexts, f"{path}:{start + 1}")
        for start in range(0, len(rows), GROUP_SIZE)
    ]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                yield {"id": row["id"].split("_"), "sent": row["sent"], "expected": row["expected"]}
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(
                    f"{path}:{number}: no row with id, sent and expected ({error!r})"
                ) from None


def _group(rows: list[dict[str, Any]], contexts: Iterable[str], place: str) -> Group:
    first = rows[0]["id"]
    per_context = GROUP_SIZE // len(tuple(contexts))
    sentences = []
    for row, context in zip(
        rows, [context for context in contexts for _ in range(per_context)], strict=True
    ):
        number, noun, *_, continuation = row["id"]
        try:
            if [number, noun] != first[:2]:
                raise ValueError(f"item {number}_{noun} stands in the group of {first[:2]}")
            context_text, continuation_text = prompt.split(row["sent"])
            sentences.append(
                Sentence(
                    condition=prompt.condition(context, continuation),
                    context=context_text,
                    continuation=continuation_text,
                    felicitous=EXPECTED[row["expected"]],
                )
            )
        except (ValueError, KeyError) as error:
            raise DataError(f"{place}: group with id {'_'.join(row['id'])}: {error}") from None
    return Group(item="_".join(first[:2]), family="_".join(first[2:4]), sentences=tuple(sentences))
