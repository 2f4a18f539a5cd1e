"""How reports show a sample: its sentences, and which comparisons failed by how many nats."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.lieder.score import comparisons_of
from lm_eval_ext.cards import cards
from lm_eval_ext.results.samples import AnswerView, DocumentView, Part, log_probability


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Each context with its continuations, and which of them are felicitous."""
    del prompts
    word = cards()["lieder"].word
    return [
        DocumentView(
            title=f"{doc['item']}, {word(doc['family'])}: {doc['context'][0]}",
            gold=f"{len(doc['felicitous'])} of {len(doc['condition'])} are felicitous; "
            "each should be more probable than what it is compared with",
            parts=(
                Part(
                    "Contexts and continuations",
                    table=(
                        ("context", "continuation", "felicitous"),
                        *(
                            (context, then.strip(), "yes" if name in doc["felicitous"] else "")
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
    """The comparisons of log-probabilities, those that failed first."""
    return [_answer(doc, one) for doc, one in zip(docs, answers, strict=True)]


def _answer(doc: Mapping[str, Any], answers: Sequence[str]) -> AnswerView:
    words = cards()["lieder"].words
    known = {
        name: value
        for name, answer in zip(doc["condition"], answers, strict=False)
        if (value := log_probability(answer)) is not None
    }
    found = sorted(
        (known[one.better] - known[one.worse], words[one.name].replace("dog", doc["item"]))
        for one in comparisons_of(doc["experiment"])
        if one.better in known and one.worse in known
    )
    if not found:
        return AnswerView("(no log-probabilities)")
    rows = [("right" if nats > 0 else "wrong", what, f"{nats:+.2f}") for nats, what in found]
    wrong = tuple(place for place, row in enumerate(rows) if row[0] == "wrong")
    return AnswerView(
        f"{len(rows) - len(wrong)} of {len(rows)} comparisons right",
        (Part("Comparisons", table=(("", "more probable > less probable", "nats"), *rows),
              marked=wrong),),
    )  # fmt: skip
