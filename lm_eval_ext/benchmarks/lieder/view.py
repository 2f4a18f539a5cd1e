"""Shows samples in reports: the sentences, and which comparisons failed by how many nats."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.lieder.score import comparisons_of
from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import AnswerView, Detail, DocumentView, log_probability


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
    rows = []
    counted = right = wrong = 0
    for comparison in comparisons_of(doc["experiment"]):
        better = logprobs.get(comparison.better)
        worse = logprobs.get(comparison.worse)
        if better is None or worse is None:
            continue
        nats = better - worse
        # The comparison with a log-probability that is no number is wrong, as in the score.
        is_right = nats > 0
        if not is_right:
            wrong += 1
        outcome = "right" if is_right else "wrong"
        if comparison.requirement in counted_requirements:
            counted += 1
            if is_right:
                right += 1
        else:
            outcome += ", apart"
        meaning = card.words[comparison.name].replace("dog", noun)
        order = (is_right, -math.inf if math.isnan(nats) else nats)
        rows.append((order, (outcome, meaning, f"{nats:+.2f}")))
    if not rows:
        return AnswerView("(no log-probabilities)")
    # The wrong ones come first.
    table = [row for _, row in sorted(rows)]
    head = ("", "more probable > less probable", "nats")
    detail = Detail("Comparisons", table=(head, *table), marked=tuple(range(wrong)))
    text = f"{right} of {counted} comparisons right"
    if counted < len(rows):
        text += f"; {len(rows) - counted} more, “apart”, are in other scores"
    return AnswerView(text, (detail,))
