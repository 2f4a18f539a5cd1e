"""Shows samples in reports: the sentences, and which comparisons failed by how many nats."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.lieder.score import comparisons_of
from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import (
    AnswerView,
    Detail,
    DocumentView,
    LogprobComparison,
    comparison_detail,
    log_probability,
)


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Show each context with its continuations, and which of them are felicitous."""
    del prompts
    return [_document(doc) for doc in docs]


def _document(doc: Mapping[str, Any]) -> DocumentView:
    rows = []
    sentences = zip(doc["condition"], doc["context"], doc["continuation"], strict=True)
    for condition, context, continuation in sentences:
        is_felicitous = "yes" if condition in doc["felicitous"] else ""
        rows.append((context, continuation.strip(), is_felicitous))
    table = (("context", "continuation", "felicitous"), *rows)
    family = cards()["lieder"].word(doc["family"])
    gold = (
        f"{len(doc['felicitous'])} of {len(rows)} are felicitous; each should be more probable "
        "than what it is compared with"
    )
    return DocumentView(
        title=f"{doc['item']}, {family}: {doc['context'][0]}",
        gold=gold,
        details=(Detail("Contexts and continuations", table=table),),
    )


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Show the comparisons of log-probabilities, those that failed first."""
    return [_answer(doc, texts) for doc, texts in zip(docs, answers, strict=True)]


def _answer(doc: Mapping[str, Any], answers: Sequence[str]) -> AnswerView:
    card = cards()["lieder"]
    logprobs = dict(zip(doc["condition"], map(log_probability, answers), strict=False))
    counted_requirements = card.measures["direct"].where["requirement"]
    # The items are numbered, but for those of the mini task: "1_dog".
    noun = doc["item"].rpartition("_")[2]
    comparisons = []
    for comparison in comparisons_of(doc["experiment"]):
        better = logprobs.get(comparison.better)
        worse = logprobs.get(comparison.worse)
        if better is None or worse is None:
            continue
        meaning = card.words[comparison.name].replace("dog", noun)
        is_apart = comparison.requirement not in counted_requirements
        comparisons.append(LogprobComparison((meaning,), better - worse, is_apart))
    if not comparisons:
        return AnswerView("(no log-probabilities)")
    counted = [comparison for comparison in comparisons if not comparison.is_apart]
    right = sum(comparison.is_right for comparison in counted)
    text = f"{right} of {len(counted)} comparisons right"
    if len(counted) < len(comparisons):
        text += f"; {len(comparisons) - len(counted)} more, “apart”, are in other scores"
    detail = comparison_detail(("more probable > less probable",), comparisons)
    return AnswerView(text, (detail,))
