"""Shows samples in reports: the sentence, what it tests, and both logical forms."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import AnswerView, DocumentView


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Show sentences and their logical forms."""
    del prompts
    views = []
    for doc in docs:
        type_title = cards()["slog"].word(doc["type"])
        views.append(DocumentView(f"{doc['sentence']} ({type_title})", str(doc["form"])))
    return views


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Show the logical forms that a model wrote."""
    del docs
    return [AnswerView("\n".join(forms)) for forms in answers]
