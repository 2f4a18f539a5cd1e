"""How reports show a sample: both answers, and why each demonstration was chosen."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.results.samples import AnswerView, DocumentView, Part

_SELECTIONS = {"random": "at random", "concept": "sharing a concept"}


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
            ),
        )
        for doc in docs
    ]


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """The answer after each selection."""
    del docs
    return [
        AnswerView(
            "\n".join(
                f"after demonstrations {words}: {answer}"
                for words, answer in zip(_SELECTIONS.values(), one, strict=False)
            )
        )
        for one in answers
    ]
