"""A progress bar that also says what the model computes while no request is answered yet."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from tqdm import tqdm

DESCRIBE_S = 0.5
"""The least seconds between descriptions: on a GPU there are many steps a second."""

Report: TypeAlias = Callable[[str], None]
"""A function that is called with what is about to be computed."""

AnswerT = TypeVar("AnswerT")


def report_nothing(_activity: str) -> None:
    """Ignore what is computed."""


@dataclass
class TokenProgress:
    """How many of all tokens that are to be read have been read.

    Attributes:
        activity: What they are read for, such as "Reading prompts".
        total: All tokens of all groups.
        done: Those that have been read.
    """

    activity: str
    total: int
    done: int = 0

    def add(self, tokens: int) -> None:
        """Count tokens; those at the border of two groups are read twice, and count once."""
        self.done = min(self.done + tokens, self.total)

    def describe(self) -> str:
        """Return the activity with the numbers of tokens."""
        return f"{self.activity}, {self.done:,} of {self.total:,} tokens"


@dataclass
class ReadingSpeed:
    """How fast tokens of prompts are read, on average over all passes.

    A pass of few tokens takes nearly as long as one of many, so that no pass counts alone.

    Attributes:
        tokens: The tokens that have been read.
        seconds: How long that took.
    """

    tokens: int = 0
    seconds: float = 0.0

    def add(self, tokens: int, seconds: float) -> None:
        """Count a pass."""
        self.tokens += tokens
        self.seconds += seconds

    @property
    def tokens_per_second(self) -> float:
        """The speed; infinite until it is known."""
        return self.tokens / self.seconds if self.seconds else math.inf


class RequestsBar:
    """lm-eval's progress bar of requests, whose description is the present activity.

    What requests share is computed before the first of them is answered, which can take minutes:
    a bar with the number of answers alone would look as if nothing went on.

    Args:
        request_type: As lm-eval names it, such as ``generate_until``.
        total: The number of requests.
        is_hidden: Whether nothing is shown.
    """

    def __init__(self, request_type: str, total: int, *, is_hidden: bool) -> None:
        self._description = f"Running {request_type} requests"
        # Answers come in bursts, a whole batch at once. tqdm's rate of late would take the pause
        # before a burst for the time of each answer; the rate since the start does not.
        self._bar = tqdm(total=total, desc=self._description, disable=is_hidden, smoothing=0)
        self._described_at = time.monotonic() - DESCRIBE_S

    def describe(self, activity: str) -> None:
        """Show what is computed from now on, such as "Reading prompts, 0 of 2,048 tokens"."""
        now = time.monotonic()
        if now - self._described_at >= DESCRIBE_S:
            self._described_at = now
            self._bar.set_description(activity)

    def track(self, answers: Iterable[AnswerT]) -> Iterator[AnswerT]:
        """Yield the answers, and count them."""
        for answer in answers:
            yield answer
            self._bar.update()

    def close(self) -> None:
        """End the bar; it does not stay if no request was answered, since ``hf`` has its own."""
        self._bar.set_description(self._description, refresh=False)
        self._bar.leave = self._bar.n > 0
        self._bar.close()
