"""How samples look on the leaderboard page: recipe, dish, and reasons for demonstrations."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.results.samples import AnswerView, DocumentView, Part


def documents(docs: Sequence[Mapping[str, Any]]) -> list[DocumentView]:
    """Shows each recipe's dish, instruction and demonstrations."""
    return [_document(doc) for doc in docs]


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Shows the name found in each answer, or the answers about components."""
    del docs
    return [AnswerView("\n".join(one)) for one in answers]


def _document(doc: Mapping[str, Any]) -> DocumentView:
    whys = tuple(zip(doc.get("demonstrations", ()), doc.get("why", ()), strict=False))
    parts = [Part("Instruction", text=str(doc["instruction"]))]
    if whys:
        parts.append(Part("Why each recipe was shown", table=(("recipe", "why"), *whys)))
    return DocumentView(f"{doc['answer']} ({doc['category']})", str(doc["answer"]), tuple(parts))
