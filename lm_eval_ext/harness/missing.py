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
"""The text that logs hold in place of an answer; earlier logs hold the same text."""

_MARK = "answer_may_be_missing"


class MissingAnswer:
    """The base class of all placeholders, each a value of the type of the answer."""

    value: object

    def __new__(cls) -> "MissingAnswer":
        """Return the placeholder, which takes no value."""
        create: Any = super().__new__
        placeholder: MissingAnswer = create(cls, cls.value)
        return placeholder


class MissingText(MissingAnswer, str):
    """Placeholder for a generated text."""

    value = PLACEHOLDER


class MissingNumber(MissingAnswer, float):
    """Placeholder for the log-probability of a whole text; NaN."""

    value = math.nan


class MissingLogprob(MissingAnswer, tuple[float, str]):
    """Placeholder for ``(log-probability, is greedy)``; both are missing."""

    value = (math.nan, PLACEHOLDER)


def find(answers: Iterable[object]) -> MissingAnswer | None:
    """Return the first placeholder among some answers; None if no answer is missing."""
    for answer in answers:
        if isinstance(answer, MissingAnswer):
            return answer
    return None


def allow(request: object) -> None:
    """Mark a request of a task that can do without the answer."""
    setattr(request, _MARK, True)


def is_allowed(request: object) -> bool:
    """Return whether :func:`allow` has marked the request."""
    return hasattr(request, _MARK)


def was_missing(response: object) -> bool:
    """Return whether a response in one of lm-eval's logs is a placeholder.

    A rolling log-probability is logged as a number, so NaN counts as a placeholder; the caller has
    checked that the row has no scores.
    """
    values = response if isinstance(response, list) else [response]
    return PLACEHOLDER in values or values == ["nan"]
