"""Documents and answers as people see them: what a benchmark's module ``view.py`` gives.

It has ``documents(docs, prompts)``: from documents as lm-eval logged them, each with its prompts,
to a :class:`DocumentView` each; and ``answers(docs, answers)``: from the answers of one model, for
each document one per request, to an :class:`AnswerView` each. Both take many documents at once, so
that slow views (which run queries) can work in parallel.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Detail:
    """What a view shows beside an answer: a text, or a table with a head, under a title.

    ``marked`` are numbers of rows, the first below the head being 0; what belongs to a document may
    stand ``beside`` the details of the answers.
    """

    title: str
    text: str = ""
    table: tuple[tuple[str, ...], ...] = ()
    marked: tuple[int, ...] = ()
    beside: bool = False


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


def log_probability(answer: str) -> float | None:
    """Return the log-probability in an answer, alone or in a pair with "is greedy"; None if none.

    lm-eval logs both of a pair as texts: ``["-37.9", "False"]``.
    """
    number = answer.strip("[]() ").partition(",")[0].strip("\"' ")
    try:
        return float(number)
    except ValueError:
        return None
