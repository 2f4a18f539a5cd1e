"""From a stimulus to a request: the context is given, the continuation is scored.

The continuation starts with the space before it and ends with its period, so its probability
covers every token of the second sentence (paper, section 5, "Metric").
"""

from lm_eval_ext.benchmarks.lieder.records import NONREFERENTIAL, PLURAL, SINGULAR

CONTINUATIONS = {"sref": SINGULAR, "pref": PLURAL, "nonref": NONREFERENTIAL}
"""The last part of a stimulus's id, and the suffix of its condition."""


def split(stimulus: str) -> tuple[str, str]:
    """Splits a two-sentence stimulus into context and continuation.

    Raises:
        ValueError: There are not exactly two sentences.
    """
    first, separator, second = stimulus.partition(". ")
    if not separator or not first or not second.endswith(".") or ". " in second:
        raise ValueError(f"not two sentences: {stimulus!r}")
    return f"{first}.", f" {second}"
