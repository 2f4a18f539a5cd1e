"""How reports show a sample: all answers, and why each demonstration was chosen."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.conceptual.score import selections_of
from lm_eval_ext.results.samples import AnswerView, DocumentView, Part

_SELECTIONS = {
    "random": "at random",
    "concept": "sharing a concept",
    "same_labels": "of other concepts with the same labels",
}
_FRAME = re.compile(r"(?:^|\n)Input: ")


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Questions, with the demonstrations of each selection as the first template shows them."""
    return [
        DocumentView(
            title=f"{doc['input']} ({doc['concept']})",
            gold=str(doc["answer"]),
            parts=tuple(
                _shown(doc, name, text) for name, text in zip(selections_of(doc), own, strict=False)
            ),
        )
        for doc, own in zip(docs, prompts, strict=True)
    ]


def _shown(doc: Mapping[str, Any], name: str, prompt: str) -> Part:
    """Each demonstration's text, or its id where the prompt has another format, and the reason."""
    ids, texts = doc[f"{name}_demonstrations"], _FRAME.split(prompt)[1:-1]
    rows = zip(texts if len(texts) == len(ids) else ids, doc[f"{name}_why"], strict=True)
    return Part(f"Demonstrations {_SELECTIONS[name]}", table=(("demonstration", "why"), *rows))


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """The answer after each selection, for each template."""
    found = []
    for doc, own in zip(docs, answers, strict=True):
        templates = doc["templates"]
        asked = (
            f"{f'{template}, ' * (len(templates) > 1)}after demonstrations {_SELECTIONS[name]}"
            for template in templates
            for name in selections_of(doc)
        )
        lines = (f"{what}: {answer}" for what, answer in zip(asked, own, strict=False))
        found.append(AnswerView("\n".join(lines)))
    return found
