"""Shows samples in reports: the contexts, and which comparisons of log-probabilities are right."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from lm_eval_ext.benchmarks.lieder.score import (
    DIRECT,
    RELATIVE,
    Comparison,
    comparisons_of,
    metrics_of,
    strength,
)
from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import AnswerView, Detail, DocumentView, log_probability
from lm_eval_ext.stats.measures import Filter
from lm_eval_ext.text import counted, typeable

_COLUMNS = ("should be", "after", "continuation")
"""The first columns of the comparisons. "after" has the letter of a context."""

_STRENGTHS = {DIRECT: "log-probability", RELATIVE: "relative log-probability"}
"""The last column, by metric."""

_RELATIVE_EXPLAINED = (
    "relative: less the log-probability of the non-referential continuation after the same context"
)


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
    return answers_about(docs, answers, cards()["lieder"].measures[DIRECT].where)


def answers_about(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]], where: Filter
) -> list[AnswerView]:
    """Show the comparisons under the metric and of the requirements that count, then the others."""
    return [_answer(doc, texts, where) for doc, texts in zip(docs, answers, strict=True)]


@dataclass(frozen=True)
class _Outcome:
    """A comparison with the log-probabilities that a model gives.

    Attributes:
        comparison: The two conditions.
        better: The log-probability, direct or relative, of what should be more likely.
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


def _answer(doc: Mapping[str, Any], answers: Sequence[str], where: Filter) -> AnswerView:
    is_relative = where.get("metric") == (RELATIVE,) and RELATIVE in metrics_of(doc["experiment"])
    metric = RELATIVE if is_relative else DIRECT
    outcomes = _outcomes(doc, answers, metric)
    if not outcomes:
        return AnswerView("(no log-probabilities)")
    wrong = []
    right = []
    uncounted = []
    for outcome in outcomes:
        if not _is_counted(outcome.comparison, where):
            uncounted.append(outcome)
        elif outcome.is_right:
            right.append(outcome)
        else:
            wrong.append(outcome)
    details = []
    if wrong:
        title = f"{counted(len(wrong), 'wrong comparison')}, the clearest first"
        if is_relative:
            title += f" ({_RELATIVE_EXPLAINED})"
        details.append(Detail(title, table=_table(doc, wrong, metric)))
    if right:
        title = counted(len(right), "right comparison")
        details.append(Detail(title, table=_table(doc, right, metric), is_extra=True))
    text = f"{len(right)} of {counted(len(right) + len(wrong), 'comparison')} right"
    if is_relative:
        text += " under the relative metric"
    if uncounted:
        title = f"{_uncounted_in_words(uncounted)}, which other scores count"
        details.append(Detail(title, table=_table(doc, uncounted, metric), is_extra=True))
    return AnswerView(text, tuple(details))


def _uncounted_in_words(uncounted: Sequence[_Outcome]) -> str:
    """Return how many comparisons do not count, with their requirements if these are few."""
    requirements = dict.fromkeys(outcome.comparison.requirement for outcome in uncounted)
    if len(requirements) > 2:  # noqa: PLR2004
        return counted(len(uncounted), "other comparison")
    return f"{counted(len(uncounted), 'comparison')} of {' and '.join(requirements)}"


def _is_counted(comparison: Comparison, where: Filter) -> bool:
    """Return whether a comparison is among the rows of scores that count."""
    names = where.get("comparison", (comparison.name,))
    requirements = where.get("requirement", (comparison.requirement,))
    return comparison.name in names and comparison.requirement in requirements


def _outcomes(doc: Mapping[str, Any], answers: Sequence[str], metric: str) -> list[_Outcome]:
    """Return the comparisons that have all log-probabilities, the clearest failures first."""
    logprobs = {}
    for condition, answer in zip(doc["condition"], answers, strict=False):
        logprob = log_probability(answer)
        if logprob is not None:
            logprobs[condition] = logprob
    outcomes = []
    for comparison in comparisons_of(doc["experiment"]):
        try:
            better = strength(logprobs, comparison.better, metric)
            worse = strength(logprobs, comparison.worse, metric)
        except KeyError:  # an answer is missing
            continue
        outcomes.append(_Outcome(comparison, better, worse))
    return sorted(outcomes, key=lambda outcome: outcome.rank)


def _table(
    doc: Mapping[str, Any], outcomes: Sequence[_Outcome], metric: str
) -> tuple[tuple[str, ...], ...]:
    """Return three rows for each comparison: its two sides; and its name and the difference."""
    letters = _letters(doc)
    sides = {}
    sentences = zip(doc["condition"], doc["context"], doc["continuation"], strict=True)
    for condition, context, continuation in sentences:
        sides[condition] = (letters[context], continuation.strip())
    rows: list[tuple[str, ...]] = [(*_COLUMNS, _STRENGTHS[metric])]
    for outcome in outcomes:
        comparison = outcome.comparison
        rows.append(("more likely", *sides[comparison.better], f"{outcome.better:.2f}"))
        rows.append(("less likely", *sides[comparison.worse], f"{outcome.worse:.2f}"))
        verdict = "right" if outcome.is_right else "wrong"
        name = f"{comparison.requirement}: {typeable(comparison.name)}"
        rows.append((verdict, "", name, f"{outcome.difference:+.2f} nats"))
    return tuple(rows)
