"""Shows samples in reports: sentence, logical form, and why demonstrations were chosen."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import AnswerView, Detail, DocumentView


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Show sentences and logical forms; both forms where a task asks twice."""
    del prompts
    return [_document(doc) for doc in docs]


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Show the logical forms that a model wrote."""
    del docs
    return [AnswerView("\n".join(forms)) for forms in answers]


def _document(doc: Mapping[str, Any]) -> DocumentView:
    gold = doc["form"] if "form" in doc else doc["answer"]
    if isinstance(gold, list):
        gold = "\n".join(gold)
    type_title = cards()["cogs"].word(doc["type"])
    reasons = list(zip(doc.get("demonstrations", ()), doc.get("why", ()), strict=False))
    details: tuple[Detail, ...] = ()
    if reasons:
        details = (Detail("Why each example was shown", table=(("example", "why"), *reasons)),)
    return DocumentView(f"{_sentence(doc)} ({type_title})", str(gold), details)


def _sentence(doc: Mapping[str, Any]) -> str:
    """Return the sentence: of the first request, where a document has several."""
    if doc.get("sentence"):
        return str(doc["sentence"])
    if doc.get("input"):
        return str(doc["input"])
    contexts = doc.get("context") or [""]
    return str(contexts[0])
