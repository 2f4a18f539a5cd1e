"""Published results beside ours: which of them belong to a metric, and to a model."""

import re
from collections.abc import Iterable

from lm_eval_ext.cards import Reference
from lm_eval_ext.results.files import variant_and_name

PAPER = "(paper)"


def plain_name(label: str) -> str:
    """A model's name without case, punctuation and "(paper)", to match it with published ones."""
    name = label.casefold().replace(PAPER, "").rpartition("/")[2]
    return re.sub(r"[^a-z0-9]+", "", name)


def published_value(
    reference: Reference, task: str, metric: str, metrics: Iterable[str]
) -> float | None:
    """The published value of a metric; one without a variant belongs to the task's first.

    ``metrics`` are all of a task's, as results have them.
    """
    if task not in reference.tasks:
        return None
    if metric in reference.figures:
        return reference.figures[metric]
    variant, name = variant_and_name(metric)
    of_name = (one for one in map(variant_and_name, metrics) if one[1] == name)
    is_first = next(of_name, None) == (variant, name)
    return reference.figures.get(name) if is_first else None
