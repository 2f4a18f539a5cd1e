"""Prompts: the sentence alone.

COGS is for models that were fine-tuned to translate a sentence into its logical form, so there is
no instruction. A model that was fine-tuned with a prefix, or with a separator between sentence and
logical form, gets them.
"""

from collections.abc import Mapping

from lm_eval_ext.benchmarks.cogs.lexicons import substitute
from lm_eval_ext.benchmarks.cogs.records import Example


def question(
    example: Example,
    words: Mapping[str, str],
    *,
    prefix: str = "",
    separator: str = "",
    leading_space: bool = False,
) -> str:
    """The prompt of an example under a lexicon, between the prefix and the separator.

    With ``leading_space``, a sentence that starts with a new word gets a space before it, as in the
    authors' files ``..._space_prepended``.
    """
    return prefix + substitute(example.sentence, words, leading_space=leading_space) + separator


def answer(example: Example, words: Mapping[str, str]) -> str:
    """The logical form of an example under a lexicon."""
    return substitute(example.form, words)
