"""From a stimulus to what a model is asked.

The context is the first sentence with its period. The continuation is the second one, with
the space before it: its probability includes every token up to the final period (fact
sheet, "Scoring").
"""

from lm_eval_ext.benchmarks.lieder.records import NONREFERENTIAL, PLURAL, SINGULAR

CONTINUATIONS = {"sref": SINGULAR, "pref": PLURAL, "nonref": NONREFERENTIAL}
"""The last part of a stimulus's id, and what conditions call it."""


def split(stimulus: str) -> tuple[str, str]:
    """Splits a two-sentence stimulus into context and continuation.

    Raises:
        ValueError: If there are not exactly two sentences.
    """
    first, separator, second = stimulus.partition(". ")
    if not separator or not first or not second.endswith(".") or ". " in second:
        raise ValueError(f"not two sentences: {stimulus!r}")
    return f"{first}.", f" {second}"


def condition(context: str, continuation: str) -> str:
    """Names a condition: ``pos_neg`` and ``sref`` make ``pos_neg_s``.

    Raises:
        KeyError: If the continuation is none of the dataset's three.
    """
    return f"{context}_{CONTINUATIONS[continuation]}"
