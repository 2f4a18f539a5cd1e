"""SLOG in context: demonstrations from the training set, the same for all samples."""

import re
from collections.abc import Sequence

from lm_eval_ext.benchmarks.slog.records import Example
from lm_eval_ext.fewshot import shuffled

COVER = (
    "object_modifying_RC", "wh_Q_simple_trans", "pp_4", "cp_4", "center_embed_2", "center_embed_4",
    "standalone_NP_PP", "standalone_NP_RC",
)  # fmt: skip
"""Types of train that every list of demonstrations has, before the in-distribution ones."""

MAX_CHOSEN = 64
"""Demonstrations that are chosen; a task shows the first of them."""

_ROLE = re.compile(r"\w+ =")


def choose(train: Sequence[Example], seed: int) -> list[Example]:
    """Choose examples that cover the constructions of the training set.

    One of each type of :data:`COVER`, then in-distribution ones, of which no two have the same
    roles in the same order: 144 such patterns are in the data, and frequent ones are drawn first.
    """
    by_type: dict[str, Example] = {}
    by_pattern: dict[str, Example] = {}
    for number in shuffled(len(train), seed, "SLOG, demonstrations"):
        example = train[number]
        by_type.setdefault(example.type, example)
        if example.type == "in_distribution":
            pattern = " ".join(_ROLE.findall(example.form))
            by_pattern.setdefault(pattern, example)
    covering = [by_type[type_] for type_ in COVER if type_ in by_type]
    return [*covering, *by_pattern.values()][:MAX_CHOSEN]
