"""What a person is shown of a sample: the question, the right answer, a model's answer.

A benchmark that has more to show than texts has a room ``view.py`` with two functions,
``documents`` and ``answers``, which return these. They take many at once, so that what is slow
(queries to be run) can be done side by side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Part:
    """A part of a view: a text, or a table with a head, under a title."""

    title: str
    text: str = ""
    table: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class DocumentView:
    """What all models were asked.

    Attributes:
        title: One line, for lists.
        gold: The right answer.
        parts: What else there is to see; prompts come by themselves.
    """

    title: str
    gold: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class AnswerView:
    """What one model answered, as it was scored, and what came of it."""

    answer: str
    parts: tuple[Part, ...] = ()


class Views(Protocol):
    """The room ``view.py`` of a benchmark."""

    def documents(self, docs: Sequence[Mapping[str, Any]]) -> Sequence[DocumentView]:
        """Shows documents as lm-eval logged them."""

    def answers(
        self, docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
    ) -> Sequence[AnswerView]:
        """Shows the answers of one model, for each document one per request."""
