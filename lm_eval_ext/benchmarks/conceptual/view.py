"""How reports show a sample: all answers, and why each demonstration was chosen."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.results.samples import AnswerView, DocumentView, Part

_SELECTIONS = {
    "random": "at random",
    "concept": "sharing a concept",
    "same_labels": "of other concepts with the same labels",
}


def documents(docs: Sequence[Mapping[str, Any]]) -> list[DocumentView]:
    """Questions, with the demonstrations of both selections."""
    return [
        DocumentView(
            title=f"{doc['input']} ({doc['concept']})",
            gold=str(doc["answer"]),
            parts=tuple(
                Part(
                    f"Demonstrations {words}",
                    table=(
                        ("demonstration", "why"),
                        *zip(
                            map(str, doc[f"{name}_demonstrations"]),
                            map(str, doc[f"{name}_why"]),
                            strict=True,
                        ),
                    ),
                )
                for name, words in _SELECTIONS.items()
                if doc.get(f"{name}_demonstrations")
            ),
        )
        for doc in docs
    ]


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
        f"{f'{template}, ' if len(templates) > 1 else ''}after demonstrations {words}"
        for template in templates
        for name, words in _SELECTIONS.items()
        if doc.get(f"{name}_demonstrations")
    ]
