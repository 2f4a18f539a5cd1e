"""How reports show a sample: its sentences, and which comparisons failed by how many nats."""

from ast import literal_eval
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.lieder.score import comparisons_of
from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import AnswerView, DocumentView, Part


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Each context with its continuations, and which of them are felicitous."""
    del prompts
    return [_document(doc) for doc in docs]


def _document(doc: Mapping[str, Any]) -> DocumentView:
    rows = [
        (text, then.strip(), "yes" if name in doc["felicitous"] else "")
        for name, text, then in zip(
            doc["condition"], doc["context"], doc["continuation"], strict=True
        )
    ]
    table = (("context", "continuation", "felicitous"), *rows)
    return DocumentView(
        f"{doc['item']}, {cards()['lieder'].word(doc['family'])}: {doc['context'][0]}",
        f"{len(doc['felicitous'])} of {len(rows)} are felicitous; each should be more probable "
        "than what it is compared with",
        (Part("Contexts and continuations", table=table),),
    )


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """The comparisons of log-probabilities, those that failed first."""
    return [_answer(doc, one) for doc, one in zip(docs, answers, strict=True)]


def _log_probability(answer: str) -> float | None:
    """Reads what lm-eval logs: a log-probability, or a pair of it and "is greedy", as text."""
    try:
        value = literal_eval(answer)
        return float(value[0] if isinstance(value, list) else value)
    except (ValueError, TypeError, IndexError, SyntaxError):
        return None


def _answer(doc: Mapping[str, Any], answers: Sequence[str]) -> AnswerView:
    words = cards()["lieder"].words
    known = dict(zip(doc["condition"], map(_log_probability, answers), strict=False))
    counted = cards()["lieder"].measures["direct"].where["requirement"]
    rows = []
    scored = right = 0
    for comparison in comparisons_of(doc["experiment"]):
        better, worse = known.get(comparison.better), known.get(comparison.worse)
        if better is None or worse is None:
            continue
        nats = better - worse
        outcome = "right" if nats > 0 else "wrong"
        if comparison.requirement in counted:
            scored += 1
            right += nats > 0
        else:
            outcome += ", apart"
        what = words[comparison.name].replace("dog", doc["item"])
        rows.append((nats, (outcome, what, f"{nats:+.2f}")))
    if not rows:
        return AnswerView("(no log-probabilities)")
    table = [row for _, row in sorted(rows)]
    wrong = sum(nats <= 0 for nats, _ in rows)
    head = ("", "more probable > less probable", "nats")
    part = Part("Comparisons", table=(head, *table), marked=tuple(range(wrong)))
    text = f"{right} of {scored} comparisons right"
    if scored < len(rows):
        text += f"; {len(rows) - scored} more count apart"
    return AnswerView(text, (part,))
