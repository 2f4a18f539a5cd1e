"""From stimulus files, or items of our own, to lm-eval's documents: one per group of sentences."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from lm_eval_ext.benchmarks.lieder import items
from lm_eval_ext.benchmarks.lieder.records import (
    FOUR_CONTEXTS,
    NONREFERENTIAL,
    PLURAL,
    SINGULAR,
    SIX_CONTEXTS,
    Experiment,
    Group,
    Sentence,
)
from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.loading import LoadingResult, TaskData, loader
from lm_eval_ext.harness.provenance import describe
from lm_eval_ext.reading import Exact, lines_of

GROUP_SIZE = 12
"""Sentences per group: 4 contexts x 3 continuations, or 6 x 2 in experiment ``two``."""

ENDINGS = {"sref": SINGULAR, "pref": PLURAL, "nonref": NONREFERENTIAL}
"""The last part of a stimulus's id, and the suffix of its condition."""

EXPECTED = {1: True, 0: False, -1: None}
"""The dataset's ``expected`` column, as :attr:`Sentence.felicitous`."""


class Options(Exact):
    """The options of a task with fixed items, which refuses seeds; ``mini`` has our own items."""

    experiment: Literal["base", "diff", "two", "mini"] = "base"
    seed: int | None = None
    fresh: int | None = None


class DrawnOptions(Exact):
    """The options of a task whose items are drawn; all experiments are about the same items.

    Attributes:
        experiment: ``base``, ``diff`` or ``two``.
        items: Number of items.
        seed: Any whole number.
        fresh: The seed for all benchmarks, instead of ``seed``.
    """

    experiment: Experiment = "base"
    items: int = Field(200, ge=1)
    seed: int | None = 0
    fresh: int | None = None


@loader(prefix="lieder_", options=Options)
def documents(options: Options) -> LoadingResult:
    """Load the groups of an experiment.

    Raises:
        OptionError: A seed is given.
        DataError: The file is not available or not valid.
    """
    if options.seed is not None or options.fresh is not None:
        raise OptionError(
            f"a seed draws new items, and those of lieder_{options.experiment} are fixed; leave it "
            "out, or use lieder_fresh"
        )
    if options.experiment == "mini":
        return to_documents(items.mini_groups(), "mini")
    file = require("lieder", options.experiment)
    groups = read(file.path, options.experiment)
    return TaskData(documents=to_documents(groups, options.experiment), provenance=describe([file]))


@loader(prefix="lieder_", options=DrawnOptions)
def drawn(options: DrawnOptions) -> LoadingResult:
    """Draw items, and return their groups.

    Raises:
        OptionError: So many items cannot be drawn.
    """
    if options.items > items.capacity():
        raise OptionError(f"lieder_items is {options.items}; use 1 to {items.capacity()}")
    seed = f"seed {options.seed}"
    if options.fresh is not None:
        seed = f"fresh {options.fresh}"
    groups = items.draw_groups(options.items, seed, options.experiment)
    return to_documents(groups, options.experiment)


def to_documents(groups: Iterable[Group], experiment: str) -> list[dict[str, Any]]:
    """Return a document for each group: parallel lists, and the felicitous conditions."""
    documents: list[dict[str, Any]] = []
    for group in groups:
        conditions: list[str] = []
        contexts: list[str] = []
        continuations: list[str] = []
        felicitous: list[str] = []
        for sentence in group.sentences:
            conditions.append(sentence.condition)
            contexts.append(sentence.context)
            continuations.append(sentence.continuation)
            if sentence.felicitous:
                felicitous.append(sentence.condition)
        documents.append(
            {
                "item": group.item,
                "family": group.family,
                "experiment": experiment,
                "condition": conditions,
                "context": contexts,
                "continuation": continuations,
                "felicitous": felicitous,
            }
        )
    return documents


def read(path: Path, experiment: Experiment) -> list[Group]:
    """Read a stimulus file: rows with ``id``, ``sent`` and ``expected``, in groups of 12.

    The context follows from a row's position, as in the authors' own analysis. The id does not
    give it: ``know_doubt`` is pos_neg in one family, ``affirmative_negation`` in another.

    Raises:
        DataError: A row or a group is not valid; the message names the line.
    """
    lines = list(lines_of(path))
    if not lines or len(lines) % GROUP_SIZE:
        raise DataError(
            f"{path}: {len(lines)} rows, which is not a multiple of {GROUP_SIZE}; "
            "fetch the file again (lm-eval-ext data fetch lieder)"
        )
    contexts = SIX_CONTEXTS if experiment == "two" else FOUR_CONTEXTS
    groups: dict[int, Group] = {}
    for row_number, (location, line) in enumerate(lines):
        group_number, position = divmod(row_number, GROUP_SIZE)
        context_name = contexts[position * len(contexts) // GROUP_SIZE]
        try:
            row = json.loads(line)
            number, noun, first_verb, second_verb, *_, ending = row["id"].split("_")
            condition = f"{context_name}_{ENDINGS[ending]}"
            context, continuation = split_stimulus(row["sent"])
            sentence = Sentence(condition, context, continuation, EXPECTED[row["expected"]])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{location}: not a row with id, sent and expected ({error!r})"
            ) from None
        item = f"{number}_{noun}"
        group = groups.get(group_number, Group(item, f"{first_verb}_{second_verb}", ()))
        if item != group.item:
            raise DataError(f"{location}: item {item} in a group of item {group.item}")
        groups[group_number] = group._replace(sentences=(*group.sentences, sentence))
    return list(groups.values())


def split_stimulus(stimulus: str) -> tuple[str, str]:
    """Split a two-sentence stimulus into context and continuation.

    Raises:
        ValueError: There are not exactly two sentences.
    """
    first_sentence, separator, second_sentence = stimulus.partition(". ")
    is_second_whole = second_sentence.endswith(".") and ". " not in second_sentence
    if not separator or not first_sentence or not is_second_whole:
        raise ValueError(f"not two sentences: {stimulus!r}")
    return f"{first_sentence}.", f" {second_sentence}"
