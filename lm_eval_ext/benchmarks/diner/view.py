"""How reports show a sample: the recipe, and which components of the name were hit."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.results.samples import AnswerView, DocumentView, Part


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Shows each recipe's dish, instruction and demonstrations."""
    found = []
    for doc in docs:
        parts = [Part("Instruction", text=str(doc["instruction"]))]
        if whys := tuple(zip(doc.get("demonstrations", ()), doc.get("why", ()), strict=False)):
            parts.append(Part("Why each recipe was shown", table=(("recipe", "why"), *whys)))
        title = f"{doc['answer']} ({doc['category']})"
        found.append(DocumentView(title, str(doc["answer"]), tuple(parts)))
    return found


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Shows the name in each answer with its components, or the answers about components."""
    return [_answer(str(doc["answer"]), one) for doc, one in zip(docs, answers, strict=True)]


def _answer(gold: str, answers: Sequence[str]) -> AnswerView:
    if len(answers) > 1:
        asked = zip(ASKED_KINDS, answers, strict=False)
        return AnswerView("\n".join(f"{kind}: {answer}" for kind, answer in asked))
    answer = "".join(answers)
    glossary = next((one for one in _glossaries() if one.parse(gold)), None)
    if glossary is None:
        return AnswerView(answer)
    wanted, found = glossary.parse(gold) or (), glossary.parse(answer)
    if found is None:
        note = "The name does not parse; its components are estimated (docs/benchmarks/diner.md)."
        return AnswerView(answer, (Part("Components", text=note),))
    rows = [
        (one.name, one.kind,
         "missing" if one not in found else "hit" if one in wanted else "extra")
        for one in dict.fromkeys((*wanted, *found))
    ]  # fmt: skip
    marked = tuple(place for place, row in enumerate(rows) if row[2] != "hit")
    return AnswerView(
        answer, (Part("Components", table=(("component", "kind", ""), *rows), marked=marked),)
    )


@cache
def _glossaries() -> tuple[Glossary, ...]:
    """That of the embedded recipes and, if available locally, the published one."""
    from lm_eval_ext import data
    from lm_eval_ext.benchmarks.diner import mini
    from lm_eval_ext.benchmarks.diner.load import SOURCE

    if not data.available(SOURCE):
        return (mini.glossary(),)
    return mini.glossary(), Glossary.read(data.require(SOURCE, "glossary").path)
