"""How reports show a sample: its continuations, and how probable each one was."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.results.samples import AnswerView, DocumentView, Part, log_probability


def documents(docs: Sequence[Mapping[str, Any]]) -> list[DocumentView]:
    """Contexts with their continuations, and which of them are felicitous."""
    return [
        DocumentView(
            title=f"{doc['item']} ({doc['family']}): {doc['context'][0]}",
            gold=", ".join(doc["felicitous"]),
            parts=(
                Part(
                    "Contexts and continuations",
                    table=(
                        ("condition", "felicitous", "context", "continuation"),
                        *(
                            (name, "yes" if name in doc["felicitous"] else "", context, then)
                            for name, context, then in zip(
                                doc["condition"], doc["context"], doc["continuation"], strict=True
                            )
                        ),
                    ),
                ),
            ),
        )
        for doc in docs
    ]


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """The log-probability of each continuation, the most probable first."""
    return [_answer(doc, one) for doc, one in zip(docs, answers, strict=True)]


def _answer(doc: Mapping[str, Any], answers: Sequence[str]) -> AnswerView:
    likely = [
        (name, value)
        for name, answer in zip(doc["condition"], answers, strict=False)
        if (value := log_probability(answer)) is not None
    ]
    likely.sort(key=lambda one: -one[1])
    rows = [(name, f"{value:.3f}") for name, value in likely]
    return AnswerView(
        answer=f"likeliest: {rows[0][0]}" if rows else "(no log-probabilities)",
        parts=(Part("Log-probabilities", table=(("condition", "log-probability"), *rows)),),
    )
