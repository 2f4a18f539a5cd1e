"""Shows samples in reports: the recipe, and which components of the name were hit."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.results.samples import AnswerView, Detail, DocumentView


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Show each recipe's dish, instruction and demonstrations."""
    del prompts
    return [_document(doc) for doc in docs]


def _document(doc: Mapping[str, Any]) -> DocumentView:
    details = [Detail("Instruction", text=str(doc["instruction"]))]
    reasons = tuple(zip(doc.get("demonstrations", ()), doc.get("why", ()), strict=False))
    if reasons:
        details.append(Detail("Why each recipe was shown", table=(("recipe", "why"), *reasons)))
    title = f"{doc['answer']} ({doc['category']})"
    return DocumentView(title, str(doc["answer"]), tuple(details))


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Show the name in each answer with its components, or the answers about components."""
    views = []
    for doc, texts in zip(docs, answers, strict=True):
        if len(texts) > 1:
            views.append(_component_answers(texts))
        else:
            views.append(_name(str(doc["answer"]), "".join(texts)))
    return views


def _component_answers(answers: Sequence[str]) -> AnswerView:
    lines = [f"{kind}: {answer}" for kind, answer in zip(ASKED_KINDS, answers, strict=False)]
    return AnswerView("\n".join(lines))


def _name(gold: str, answer: str) -> AnswerView:
    glossary = next((glossary for glossary in _glossaries() if glossary.parse(gold)), None)
    if glossary is None:
        return AnswerView(answer)
    expected = glossary.parse(gold) or ()
    predicted = glossary.parse(answer)
    if predicted is None:
        note = "The name does not parse; its components are estimated (docs/benchmarks/diner.md)."
        return AnswerView(answer, (Detail("Components", text=note),))
    rows = []
    marked = []
    for number, component in enumerate(dict.fromkeys((*expected, *predicted))):
        outcome = "hit"
        if component not in predicted:
            outcome = "missing"
        elif component not in expected:
            outcome = "extra"
        if outcome != "hit":
            marked.append(number)
        rows.append((component.name, component.kind, outcome))
    table = (("component", "kind", ""), *rows)
    return AnswerView(answer, (Detail("Components", table=table, marked=tuple(marked)),))


@cache
def _glossaries() -> tuple[Glossary, ...]:
    """Return the glossary of the embedded recipes and, if available locally, the published one."""
    from lm_eval_ext import data
    from lm_eval_ext.benchmarks.diner import mini
    from lm_eval_ext.benchmarks.diner.load import SOURCE

    if not data.available(SOURCE):
        return (mini.glossary(),)
    return mini.glossary(), Glossary.read(data.require(SOURCE, "glossary").path)
