"""Overestimation: accuracy on Gen without substitution minus accuracy with it (section 1).

One model answers both versions of each example, so the interval of the difference is paired.
"""

from collections.abc import Sequence
from typing import Any

from lm_eval_ext.benchmarks.cogs.score import row
from lm_eval_ext.harness.metrics import Row

WITHOUT, WITH = "without", "with"
"""Values of the facet ``substitution``."""


def process_results(doc: dict[str, Any], results: Sequence[str]) -> list[Row]:
    """Scores both answers to a document, the unmodified one first."""
    return [
        {"substitution": which, **row(doc, answer, gold)}
        for which, answer, gold in zip((WITHOUT, WITH), results, doc["form"], strict=True)
    ]
