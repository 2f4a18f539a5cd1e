"""Shows samples in reports: the contexts, and which comparisons of log-probabilities are right."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from lm_eval_ext.benchmarks.lieder.score import Comparison, comparisons_of
from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import AnswerView, Detail, DocumentView, log_probability
from lm_eval_ext.text import counted

_COLUMNS = ("should be", "after", "continuation", "log-probability")
"""The columns of the comparisons. "after" has the letter of a context."""


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Show each context with its continuations, and which of them are felicitous."""
    del prompts
    return [_document(doc) for doc in docs]


def _document(doc: Mapping[str, Any]) -> DocumentView:
    letters = _letters(doc)
    details = []
    for context, letter in letters.items():
        details.append(Detail(f"Context {letter}", text=context, beside=True))
    rows = []
    sentences = zip(doc["condition"], doc["context"], doc["continuation"], strict=True)
    for condition, context, continuation in sentences:
        is_felicitous = "yes" if condition in doc["felicitous"] else ""
        rows.append((letters[context], continuation.strip(), is_felicitous))
    table = (("after", "continuation", "felicitous"), *rows)
    details.append(Detail("Continuations", table=table))
    family = cards()["lieder"].word(doc["family"])
    gold = (
        f"{len(doc['felicitous'])} of {len(rows)} continuations are felicitous: they fit their "
        "context; each should be more likely than what it is compared with"
    )
    return DocumentView(
        title=f"{doc['item']}, {family}: {doc['context'][0]}", gold=gold, details=tuple(details)
    )


def _letters(doc: Mapping[str, Any]) -> dict[str, str]:
    """Return the letter by which comparisons name each context."""
    contexts = dict.fromkeys(doc["context"])
    return dict(zip(contexts, ascii_uppercase, strict=False))


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Show the comparisons of log-probabilities, those that failed first."""
    return [_answer(doc, texts) for doc, texts in zip(docs, answers, strict=True)]


@dataclass(frozen=True)
class _Outcome:
    """A comparison with the log-probabilities that a model gives.

    Attributes:
        comparison: The two conditions.
        better: The log-probability of what should be more likely.
        worse: That of what should be less likely.
    """

    comparison: Comparison
    better: float
    worse: float

    @property
    def difference(self) -> float:
        """By how many nats the comparison is right."""
        return self.better - self.worse

    @property
    def is_right(self) -> bool:
        """Whether what should be more likely is; no number is wrong, as in the scores."""
        return self.difference > 0

    @property
    def rank(self) -> tuple[float, str]:
        """What sorts comparisons: those that failed by most come first."""
        difference = -math.inf if math.isnan(self.difference) else self.difference
        return difference, self.comparison.name


def _answer(doc: Mapping[str, Any], answers: Sequence[str]) -> AnswerView:
    outcomes = _outcomes(doc, answers)
    if not outcomes:
        return AnswerView("(no log-probabilities)")
    counted_requirements = cards()["lieder"].measures["direct"].where["requirement"]
    wrong = []
    right = []
    uncounted = []
    for outcome in outcomes:
        if outcome.comparison.requirement not in counted_requirements:
            uncounted.append(outcome)
        elif outcome.is_right:
            right.append(outcome)
        else:
            wrong.append(outcome)
    details = []
    if wrong:
        title = f"{counted(len(wrong), 'wrong comparison')}, the clearest first"
        details.append(Detail(title, table=_table(doc, wrong)))
    if right:
        title = counted(len(right), "right comparison")
        details.append(Detail(title, table=_table(doc, right), is_extra=True))
    text = f"{len(right)} of {counted(len(right) + len(wrong), 'comparison')} right"
    if uncounted:
        requirements = dict.fromkeys(outcome.comparison.requirement for outcome in uncounted)
        about = " and ".join(requirements)
        title = f"{counted(len(uncounted), 'comparison')} of {about}, which other scores count"
        details.append(Detail(title, table=_table(doc, uncounted), is_extra=True))
    return AnswerView(text, tuple(details))


def _outcomes(doc: Mapping[str, Any], answers: Sequence[str]) -> list[_Outcome]:
    """Return the comparisons that have both log-probabilities, the clearest failures first."""
    logprobs = dict(zip(doc["condition"], map(log_probability, answers), strict=False))
    outcomes = []
    for comparison in comparisons_of(doc["experiment"]):
        better = logprobs.get(comparison.better)
        worse = logprobs.get(comparison.worse)
        if better is not None and worse is not None:
            outcomes.append(_Outcome(comparison, better, worse))
    return sorted(outcomes, key=lambda outcome: outcome.rank)


def _table(doc: Mapping[str, Any], outcomes: Sequence[_Outcome]) -> tuple[tuple[str, ...], ...]:
    """Return three rows for each comparison: its two sides, and their difference in nats."""
    letters = _letters(doc)
    sides = {}
    sentences = zip(doc["condition"], doc["context"], doc["continuation"], strict=True)
    for condition, context, continuation in sentences:
        sides[condition] = (letters[context], continuation.strip())
    rows: list[tuple[str, ...]] = [_COLUMNS]
    for outcome in outcomes:
        comparison = outcome.comparison
        rows.append(("more likely", *sides[comparison.better], f"{outcome.better:.2f}"))
        rows.append(("less likely", *sides[comparison.worse], f"{outcome.worse:.2f}"))
        verdict = "right" if outcome.is_right else "wrong"
        rows.append((verdict, "", "difference in nats", f"{outcome.difference:+.2f}"))
    return tuple(rows)
