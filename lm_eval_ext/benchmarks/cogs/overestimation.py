"""Overestimation: accuracy on Gen without substitution minus accuracy with it (section 1).

One model answers both versions of each example, so the interval of the difference is paired.
"""

from collections.abc import Sequence
from typing import Any

from lm_eval_ext.benchmarks.cogs.score import EXACT, parts, row
from lm_eval_ext.harness.metrics import Row

WITHOUT, WITH, DIFFERENCE = "without", "with", "difference"
"""Values of the facet ``substitution``, and the metric: the first minus the second."""


def process_results(doc: dict[str, Any], results: Sequence[str]) -> list[Row]:
    """Scores both answers to a document, the unmodified one first."""
    return [
        {"substitution": which, **row(doc, answer, gold)}
        for which, answer, gold in zip((WITHOUT, WITH), results, doc["form"], strict=True)
    ]


def metric_list(cogs_split: str = "gen", **_: Any) -> list[str]:
    """The metrics: the difference first."""
    both = [f"{EXACT}/{WITH}", f"{EXACT}/{WITHOUT}"]
    return [DIFFERENCE, *parts(cogs_split, DIFFERENCE), *both]
