"""Shows samples in reports: all answers, and why each demonstration was chosen."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from lm_eval_ext.benchmarks.conceptual.score import selections_of
from lm_eval_ext.results.samples import AnswerView, Detail, DocumentView

_SELECTIONS = {
    "random": "at random",
    "concept": "sharing a concept",
    "same_labels": "of other concepts with the same labels",
}
_FRAME = re.compile(r"(?:^|\n)Input: ")


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Show questions, with each selection's demonstrations as the first template has them."""
    views = []
    for doc, texts in zip(docs, prompts, strict=True):
        # The first prompts are those of the first template.
        selections = zip(selections_of(doc), texts, strict=False)
        details = [_demonstrations(doc, selection, text) for selection, text in selections]
        title = f"{doc['input']} ({doc['concept']})"
        views.append(DocumentView(title, gold=str(doc["answer"]), details=tuple(details)))
    return views


def _demonstrations(doc: Mapping[str, Any], selection: str, prompt: str) -> Detail:
    """Show each demonstration and why it was chosen; its id where the prompt has another format."""
    demonstrations = _FRAME.split(prompt)[1:-1]
    ids = doc[f"{selection}_demonstrations"]
    if len(demonstrations) != len(ids):
        demonstrations = ids
    rows = zip(demonstrations, doc[f"{selection}_why"], strict=True)
    title = f"Demonstrations {_SELECTIONS[selection]}"
    return Detail(title, table=(("demonstration", "why"), *rows))


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Show the answer after each selection, for each template."""
    views = []
    for doc, texts in zip(docs, answers, strict=True):
        lines = []
        requests = product(doc["templates"], selections_of(doc))
        for (template, selection), answer in zip(requests, texts, strict=False):
            label = f"after demonstrations {_SELECTIONS[selection]}"
            if len(doc["templates"]) > 1:
                label = f"{template}, {label}"
            lines.append(f"{label}: {answer}")
        views.append(AnswerView("\n".join(lines)))
    return views
