"""Missing answers: a document that lacks one counts in no metric, rather than as wrong.

A model that may lack answers (:mod:`lm_eval_ext.models.recorded`) returns a placeholder of one of
the classes below, and only for requests that :func:`allow` has marked: tasks of lm-eval's own
would score it. Placeholders reach lm-eval's logs, where their text says what they are, so that a
log that is replayed does not take them for answers (:func:`was_missing`).
"""

import math
from collections.abc import Iterable
from typing import Any

PLACEHOLDER = "[lm-eval-ext: no answer was recorded]"
"""What logs hold in place of an answer; earlier logs hold the same text."""


class MissingAnswer:
    """The base class of all placeholders, each a value of the type of the answer."""

    value: Any

    def __new__(cls) -> "MissingAnswer":
        """Takes no value."""
        new: Any = super().__new__
        made: MissingAnswer = new(cls, cls.value)
        return made


class MissingText(MissingAnswer, str):
    """Placeholder for a generated text."""

    value = PLACEHOLDER


class MissingNumber(MissingAnswer, float):
    """Placeholder for the log-probability of a whole text; NaN."""

    value = math.nan


class MissingLogprob(MissingAnswer, tuple[float, str]):
    """Placeholder for ``(log-probability, is greedy)``; both are missing."""

    value = (math.nan, PLACEHOLDER)


def find(answers: Iterable[Any]) -> MissingAnswer | None:
    """The first placeholder among a document's or a request's answers; None if none is missing."""
    return next((answer for answer in answers if isinstance(answer, MissingAnswer)), None)


def allow(request: Any) -> None:
    """Marks a request of a task that can do without the answer."""
    request.answer_may_be_missing = True


def is_allowed(request: Any) -> bool:
    """Whether :func:`allow` has marked the request."""
    return hasattr(request, "answer_may_be_missing")


def was_missing(response: Any) -> bool:
    """Whether a response in one of lm-eval's logs is a placeholder.

    A rolling log-probability is logged as a number, so NaN counts as a placeholder; the caller has
    checked that the row has no scores.
    """
    parts = response if isinstance(response, list) else [response]
    return PLACEHOLDER in parts or parts == ["nan"]
