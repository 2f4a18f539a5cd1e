"""Shows samples in reports: the sentences, and which comparisons failed by how many nats."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import AnswerView, Detail, DocumentView, log_probability
from lm_eval_ext.text import counted


@dataclass(frozen=True)
class Comparison:
    """What is compared, in the columns of a table, and by how many nats it is right."""

    texts: tuple[str, ...]
    nats: float


_ONE_NOUN = ("the first continuation gains after", "against the context")
_TWO_NOUNS = ("context", "more probable", "less probable")
"""The columns of the comparisons."""


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Show each context with its continuations."""
    del prompts
    return [_document(doc) for doc in docs]


def _document(doc: Mapping[str, Any]) -> DocumentView:
    rows = []
    for context, continuation in zip(doc["context"], doc["continuation"], strict=True):
        rows.append((context, continuation.strip()))
    if "nouns" in doc:
        gold = "in each order of clauses and nouns, the first continuation is the more probable one"
    else:
        gold = "the first continuation gains more from the first context than from the third"
    pair = cards()["discourse_entities"].word(doc["pair"])
    return DocumentView(
        title=f"{doc['item']}, {pair}: {doc['context'][0]}",
        gold=gold,
        details=(Detail("Contexts and continuations", table=(("context", "continuation"), *rows)),),
    )


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Show the comparisons of log-probabilities, those that failed first."""
    return [_answer(doc, texts) for doc, texts in zip(docs, answers, strict=True)]


def _answer(doc: Mapping[str, Any], answers: Sequence[str]) -> AnswerView:
    logprobs = [log_probability(answer) for answer in answers]
    known = [logprob for logprob in logprobs if logprob is not None]
    if len(known) != len(doc["continuation"]):
        return AnswerView("(no log-probabilities)")
    comparisons = sorted(_comparisons(doc, known), key=_order)
    rows = []
    for comparison in comparisons:
        outcome = "right" if comparison.nats > 0 else "wrong"
        rows.append((outcome, *comparison.texts, f"{comparison.nats:+.2f}"))
    right = sum(comparison.nats > 0 for comparison in comparisons)
    wrong = len(rows) - right
    columns = _TWO_NOUNS if "nouns" in doc else _ONE_NOUN
    head = ("", *columns, "nats")
    detail = Detail("Comparisons", table=(head, *rows), marked=tuple(range(wrong)))
    return AnswerView(f"{right} of {counted(len(rows), 'comparison')} right", (detail,))


def _order(comparison: Comparison) -> tuple[bool, float]:
    """Return what sorts comparisons: the wrong ones first, which a difference of no number is."""
    if math.isnan(comparison.nats):
        return False, -math.inf
    return comparison.nats > 0, comparison.nats


def _comparisons(doc: Mapping[str, Any], logprobs: Sequence[float]) -> Iterator[Comparison]:
    """Yield the comparisons of a document, as they are scored."""
    contexts = doc["context"]
    continuations = [continuation.strip() for continuation in doc["continuation"]]
    if "nouns" not in doc:
        ref, nonref, ref_without, nonref_without = logprobs
        nats = (ref - nonref) - (ref_without - nonref_without)
        yield Comparison((contexts[0], contexts[2]), nats)
        return
    for first in range(0, len(logprobs), 2):
        texts = (contexts[first], continuations[first], continuations[first + 1])
        yield Comparison(texts, logprobs[first] - logprobs[first + 1])
