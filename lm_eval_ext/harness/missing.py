"""Answers that are not there, and are to be left out rather than scored as wrong.

The stand-ins reach lm-eval's logs. There they must not pass for answers when the log is
replayed, so they say what they are (:func:`is_logged_stand_in`).
"""

from typing import Any

WORDS = "[lm-eval-ext: no answer was recorded]"


class LeftOut:
    """Marks a stand-in for an answer; see :mod:`lm_eval_ext.models.recorded`."""


class LeftOutText(LeftOut, str):
    """Stands in for a generated text."""

    __slots__ = ()

    def __new__(cls) -> "LeftOutText":
        """Takes no value."""
        return super().__new__(cls, WORDS)


class LeftOutNumber(LeftOut, float):
    """Stands in for the log-probability of a whole text; it is not a number."""

    def __new__(cls) -> "LeftOutNumber":
        """Takes no value."""
        return super().__new__(cls, "nan")


class LeftOutLogprob(LeftOut, tuple[float, str]):
    """Stands in for ``(log-probability, is greedy)``; it is neither."""

    __slots__ = ()

    def __new__(cls) -> "LeftOutLogprob":
        """Takes no value."""
        return super().__new__(cls, (float("nan"), WORDS))


def is_logged_stand_in(response: Any) -> bool:
    """Whether a response in one of lm-eval's logs was a stand-in.

    For a rolling log-probability, which has no room for words, a row without scores and with
    NaN is taken for one; the caller has checked that there are no scores.
    """
    parts = response if isinstance(response, list) else [response]
    return WORDS in parts or parts == ["nan"]
