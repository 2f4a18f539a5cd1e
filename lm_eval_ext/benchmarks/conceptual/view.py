"""How reports show a sample: all answers, and why each demonstration was chosen."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

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
                Part(f"Demonstrations {_SELECTIONS[name]}", table=_demonstrations(doc, name, text))
                for name, text in zip(_selections(doc), own, strict=False)
            ),
        )
        for doc, own in zip(docs, prompts, strict=True)
    ]


def _selections(doc: Mapping[str, Any]) -> list[str]:
    return [name for name in _SELECTIONS if doc.get(f"{name}_demonstrations")]


def _demonstrations(doc: Mapping[str, Any], name: str, prompt: str) -> tuple[tuple[str, ...], ...]:
    """Each demonstration's text, or its id where the prompt has another format, and the reason."""
    ids, whys = doc[f"{name}_demonstrations"], doc[f"{name}_why"]
    texts = _FRAME.split(prompt)[1:-1]
    shown = texts if len(texts) == len(ids) else map(str, ids)
    return (("demonstration", "why"), *zip(shown, map(str, whys), strict=True))


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """The answer after each selection, for each template."""
    return [
        AnswerView(
            "\n".join(f"{asked}: {answer}" for asked, answer in zip(_asked(doc), one, strict=False))
        )
        for doc, one in zip(docs, answers, strict=True)
    ]


def _asked(doc: Mapping[str, Any]) -> list[str]:
    """What each request asks, in words."""
    templates = doc.get("templates") or [""]
    return [
        f"{f'{template}, ' if len(templates) > 1 else ''}after demonstrations {_SELECTIONS[name]}"
        for template in templates
        for name in _selections(doc)
    ]
