"""The only place where a response becomes an answer, after a chat template or without one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lm_eval_ext.answers.turn import Step, turn_steps


class Grammar(Protocol):
    """What a benchmark knows about its answers."""

    def find(self, text: str) -> list[Step]:
        """Return the steps from what a model says to the answer, which the last step has.

        Args:
            text: Without special tokens, reasoning and invisible characters; it may be empty.
        """


@dataclass(frozen=True)
class ReaderOptions:
    """How a benchmark's responses are read.

    Attributes:
        grammar: Finds the answer in what the model says.
        special_tokens: Tokens of a tokenizer that no known family has.
        normalize: Changes the text before the grammar sees it, for instance full-width letters.
    """

    grammar: Grammar
    special_tokens: Sequence[str] = ()
    normalize: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Reading:
    """An answer, and how it was read.

    Attributes:
        answer: "" if there is none.
        why: The steps in their order, each with the text after it.
    """

    answer: str
    why: tuple[Step, ...]

    @property
    def summary(self) -> str:
        """The names of the steps that changed anything; "unchanged" without any."""
        names = [step.name for step in self.why[1:]]
        return " > ".join(names) or "unchanged"


class AnswerReader:
    """Reads answers out of responses.

    The first stages are the same for all benchmarks (:func:`~.turn.turn_steps`): the final
    channel, what stands outside of reasoning, the turn without special tokens, invisible
    characters. Then the benchmark's grammar finds the answer, most often by way of candidates
    (:class:`~.choice.CandidateGrammar`).

    A response is hostile input: reading takes linear time and raises nothing.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._options = options

    def read(self, response: str) -> str:
        """Return the answer in a response; "" if there is none."""
        return self.explain(response).answer

    def explain(self, response: str) -> Reading:
        """Return the answer in a response with the steps that led to it."""
        steps = turn_steps(response, self._options.special_tokens)
        if self._options.normalize is not None:
            normal = self._options.normalize(steps[-1].text)
            if normal != steps[-1].text:
                steps.append(Step("normal characters", normal))
        for step in self._options.grammar.find(steps[-1].text):
            if step.text != steps[-1].text:
                steps.append(step)
        return Reading(steps[-1].text, tuple(steps))


UNREAD = "whole response"
"""The summary of an answer that is all of a response, by the rule of a paper."""


class ReadAnswer(str):
    """An answer that knows how it was read, on its way through lm-eval to the samples file.

    Attributes:
        summary: The names of the steps of reading.
    """

    summary: str

    def __new__(cls, answer: str, summary: str = UNREAD) -> "ReadAnswer":
        """Return an answer; copies of it need no summary."""
        self = super().__new__(cls, answer)
        self.summary = summary
        return self
