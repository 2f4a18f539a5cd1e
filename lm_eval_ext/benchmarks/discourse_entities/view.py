"""Shows samples in reports: the sentences, and which comparisons failed by how many nats."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import (
    AnswerView,
    Detail,
    DocumentView,
    LogprobComparison,
    comparison_detail,
    log_probability,
)
from lm_eval_ext.text import counted

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
    comparisons = list(_comparisons(doc, known))
    right = sum(comparison.is_right for comparison in comparisons)
    detail = comparison_detail(_TWO_NOUNS if "nouns" in doc else _ONE_NOUN, comparisons)
    return AnswerView(f"{right} of {counted(len(comparisons), 'comparison')} right", (detail,))


def _comparisons(doc: Mapping[str, Any], logprobs: Sequence[float]) -> Iterator[LogprobComparison]:
    """Yield the comparisons of a document, as they are scored."""
    contexts = doc["context"]
    continuations = [continuation.strip() for continuation in doc["continuation"]]
    if "nouns" not in doc:
        ref, nonref, ref_without, nonref_without = logprobs
        nats = (ref - nonref) - (ref_without - nonref_without)
        yield LogprobComparison((contexts[0], contexts[2]), nats)
        return
    for first in range(0, len(logprobs), 2):
        texts = (contexts[first], continuations[first], continuations[first + 1])
        yield LogprobComparison(texts, logprobs[first] - logprobs[first + 1])
