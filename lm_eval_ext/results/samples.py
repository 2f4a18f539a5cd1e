"""Documents and answers as people see them: what a benchmark's module ``view.py`` gives.

It has ``documents(docs, prompts)``: from documents as lm-eval logged them, each with its prompts,
to a :class:`DocumentView` each; and ``answers(docs, answers)``: from the answers of one model, for
each document one per request, to an :class:`AnswerView` each. Both take many documents at once, so
that slow views (which run queries) can work in parallel.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Detail:
    """What a view shows beside an answer: a text, or a table with a head, under a title.

    Attributes:
        title: The title.
        text: The text; "" where there is a table.
        table: The rows, the head first.
        marked: Numbers of rows that are marked, the first below the head being 0.
        beside: Whether what belongs to a document stands beside the details of the answers.
        is_extra: Whether a terminal shows it only with ``--whole``.
    """

    title: str
    text: str = ""
    table: tuple[tuple[str, ...], ...] = ()
    marked: tuple[int, ...] = ()
    beside: bool = False
    is_extra: bool = False


@dataclass(frozen=True)
class DocumentView:
    """A document that all models were asked: a title of one line, the right answer, and details.

    The page adds the prompts.
    """

    title: str
    gold: str
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True)
class AnswerView:
    """One model's answer as it was scored, and details, such as an executed query's rows."""

    answer: str
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True)
class LogprobComparison:
    """A comparison of log-probabilities, as it is shown.

    Attributes:
        texts: What is compared, in the columns of a table.
        nats: By how much it is right. No number is wrong, as in the scores.
    """

    texts: tuple[str, ...]
    nats: float

    @property
    def is_right(self) -> bool:
        """Whether what should be more probable is."""
        return self.nats > 0


def comparison_detail(columns: Sequence[str], comparisons: Sequence[LogprobComparison]) -> Detail:
    """Return a table of comparisons, in which the wrong ones come first and are marked.

    Args:
        columns: The heads of the comparisons' texts.
        comparisons: In any order.
    """

    def rank(comparison: LogprobComparison) -> tuple[bool, float, tuple[str, ...]]:
        nats = -math.inf if math.isnan(comparison.nats) else comparison.nats
        return comparison.is_right, nats, comparison.texts

    rows = []
    for comparison in sorted(comparisons, key=rank):
        outcome = "right" if comparison.is_right else "wrong"
        rows.append((outcome, *comparison.texts, f"{comparison.nats:+.2f}"))
    wrong = sum(not comparison.is_right for comparison in comparisons)
    head = ("", *columns, "nats")
    return Detail("Comparisons", table=(head, *rows), marked=tuple(range(wrong)))


def log_probability(answer: str) -> float | None:
    """Return the log-probability in an answer, alone or in a pair with "is greedy"; None if none.

    lm-eval logs both of a pair as texts: ``["-37.9", "False"]``.
    """
    number = answer.strip("[]() ").partition(",")[0].strip("\"' ")
    try:
        return float(number)
    except ValueError:
        return None
