"""What a model is asked: the sentence and nothing else.

COGS is for models that were fine-tuned to turn a sentence into its logical form, so there is no
instruction. A decoder that was fine-tuned on one text per example gets the separator that it was
trained with behind the sentence.
"""

from collections.abc import Mapping

from lm_eval_ext.benchmarks.cogs.lexicons import substitute
from lm_eval_ext.benchmarks.cogs.records import Example


def question(
    example: Example, words: Mapping[str, str], *, separator: str = "", leading_space: bool = False
) -> str:
    """The prompt of an example under a lexicon.

    Args:
        example: As the corpus gives it.
        words: What the key words become.
        separator: What stands between sentence and answer.
        leading_space: Whether a sentence that starts with a new word gets a space before it,
            as in the authors' files ``..._space_prepended``.
    """
    return substitute(example.sentence, words, leading_space=leading_space) + separator


def answer(example: Example, words: Mapping[str, str]) -> str:
    """The logical form of an example under a lexicon."""
    return substitute(example.form, words)
