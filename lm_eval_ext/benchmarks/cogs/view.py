"""How reports show a sample: sentence, logical form, and why demonstrations were chosen."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import AnswerView, DocumentView, Part


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Sentences and logical forms; for a task that asks twice, both forms."""
    del prompts
    return [_document(doc) for doc in docs]


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """The logical forms that a model wrote."""
    del docs
    return [AnswerView("\n".join(one)) for one in answers]


def _document(doc: Mapping[str, Any]) -> DocumentView:
    form = doc["form"] if "form" in doc else doc["answer"]
    forms = form if isinstance(form, list) else [form]
    sentence = str(doc.get("sentence") or doc.get("input") or (doc.get("context") or [""])[0])
    whys = list(zip(doc.get("demonstrations", ()), doc.get("why", ()), strict=False))
    parts = (Part("Why each example was shown", table=(("example", "why"), *whys)),) if whys else ()
    kind = cards()["cogs"].word(doc["type"])
    return DocumentView(f"{sentence} ({kind})", "\n".join(map(str, forms)), parts)
