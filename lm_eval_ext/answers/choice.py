"""Chooses among candidates: first what is announced, then fenced blocks, then lines."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from lm_eval_ext.answers.candidates import (
    Candidate,
    announced_candidates,
    fence_candidates,
    line_candidates,
    line_variants,
    variants,
)
from lm_eval_ext.answers.markdown import unwrapped, without_tables
from lm_eval_ext.answers.phrases import Phrases
from lm_eval_ext.answers.turn import Step


class Accepted(NamedTuple):
    """A candidate that the grammar takes for an answer, and the answer in it."""

    candidate: Candidate
    answer: str

    @property
    def step(self) -> Step:
        """The step of reading that chose it."""
        words = f" “{self.candidate.words}”" if self.candidate.words else ""
        return Step(self.candidate.source + words, self.answer)


class CandidateGrammar(ABC):
    """Finds an answer among the candidates of a text; a benchmark says what an answer is.

    Three kinds of candidates are tried, one after the other, until one of them is an answer:

    - what the text announces, tags or boxes, of which the last counts;
    - its fenced blocks, of which the last counts;
    - its lines, of which :meth:`choose_line` chooses one.

    What is denied or called an example never counts. If no candidate is an answer, what
    :meth:`fallback` returns stands for it, which cannot be right.

    A benchmark derives a class with :meth:`accept`, and gives :class:`~.reader.ReaderOptions` an
    instance.
    """

    sources: tuple[str, ...] = (
        "announcement",
        "correction",
        "box",
        "tag",
        "JSON",
        "table",
        "heading",
    )
    """The sources of candidates that are more than a line or a block."""

    def __init__(self, phrases: Phrases) -> None:
        self.phrases = phrases

    @abstractmethod
    def accept(self, text: str) -> str | None:
        """Return the answer if a text is one, wholly and without markup; None if it is not."""

    def names_several(self, text: str) -> bool:
        """Return whether an announced text names more than one answer."""
        return False

    def fallback(self, text: str) -> str:
        """Return what stands for the answer of a text that has none."""
        return text.strip()

    def choose_line(
        self, accepted: Sequence[Accepted], lines: Sequence[Candidate]
    ) -> Accepted | None:
        """Return the line that counts, of those that are answers; here the first.

        Args:
            accepted: One or more.
            lines: All lines.
        """
        del lines
        return accepted[0]

    def find(self, text: str) -> list[Step]:
        """Return the steps from what a model says to the answer; see :class:`~.reader.Grammar`."""
        stretch = before_further_prompt(text, self.phrases)
        steps = [Step("up to a further prompt", stretch)]
        steps.append(self.announced(stretch) or self.unannounced(stretch))
        return steps

    def announced(self, text: str) -> Step | None:
        """Return the last announced answer, or a step that says that several are; None without."""
        for candidate in reversed(announced_candidates(text, self.phrases)):
            if candidate.is_dismissed or candidate.source not in self.sources:
                continue
            answer = self.accept_candidate(candidate)
            if answer is not None:
                return Accepted(candidate, answer).step
            if self.names_several(candidate.text):
                return Step(f"several answers in {candidate.source}", self.fallback(text))
        return None

    def unannounced(self, text: str) -> Step:
        """Return the answer in a fenced block or a line, or what stands for one."""
        for block in reversed(fence_candidates(text, self.phrases)):
            if block.is_dismissed:
                continue
            answer = self.accept_any(list(variants(block, self.phrases)))
            if answer is not None:
                return Accepted(block, answer).step
        # Rows of a table are no lines: those that hold the answer are announced candidates.
        lines = line_candidates(without_tables(text), self.phrases)
        accepted = []
        for line in lines:
            if line.is_dismissed:
                continue
            answer = self.accept_any(self.readings_of_line(line.text))
            if answer is not None:
                accepted.append(Accepted(line, answer))
        choice = self.choose_line(accepted, lines) if accepted else None
        if choice is not None:
            return choice.step
        return Step("no answer", self.fallback(text))

    def accept_candidate(self, candidate: Candidate) -> str | None:
        """Return the answer in an announced text, or None."""
        return self.accept_any(list(variants(candidate, self.phrases)))

    def readings_of_line(self, line: str) -> list[str]:
        """Return the stretches of an unannounced line that may be the answer."""
        return list(line_variants(self.phrases.lead_in.sub("", line), self.phrases))

    def accept_any(self, texts: Sequence[str]) -> str | None:
        """Return the answer in the first text that is one, if need be without its markup."""
        for text in texts:
            for inner in unwrapped(text):
                answer = self.accept(inner)
                if answer is not None:
                    return answer
        return None


def before_further_prompt(text: str, phrases: Phrases) -> str:
    """Return a text up to where the model goes on with a prompt of its own.

    If only courtesies precede it, the model repeats the prompt: then the text behind it counts.
    """
    for stretch in phrases.continuation.split(text):
        lines = [line for line in stretch.splitlines() if line.strip()]
        if not all(is_courtesy(line, phrases) for line in lines):
            return stretch
    return text


def is_courtesy(line: str, phrases: Phrases) -> bool:
    """Return whether a line only opens a response or announces the next line."""
    bare = line.strip(" *_#`\t")
    if phrases.opening.fullmatch(bare) or phrases.lead.fullmatch(bare):
        return True
    return bare.endswith((":", "：")) and len(bare) > 1  # noqa: RUF001
