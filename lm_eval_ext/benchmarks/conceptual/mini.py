"""conceptual_mini: questions, explanations and concepts of our own, embedded in the package.

It has the design of the OpenBookQA task, with written instead of parsed concepts. It needs no
download, and is too small to measure a real model.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.reading import embedded

LABELS = "ABCD"


class Question(TypedDict):
    """A question of ``mini.yaml``; the first option is the right one."""

    question: str
    options: list[str]
    explanation: str


def concepts() -> Mapping[str, Sequence[Question]]:
    """Return the questions of ``mini.yaml`` by concept."""
    by_concept: Mapping[str, Sequence[Question]] = embedded(__file__, "mini.yaml")["concepts"]
    return by_concept


def samples() -> list[Sample]:
    """Return the questions as samples, ordered by concept."""
    samples = []
    for concept, questions in concepts().items():
        for number, question in enumerate(questions, start=1):
            samples.append(_sample(question, concept, f"{concept}-{number}"))
    return samples


def _sample(question: Question, concept: str, sample_id: str) -> Sample:
    texts = question["options"]
    order = list(shuffled(len(LABELS), question["question"]))
    options = []
    for label, position in zip(LABELS, order, strict=True):
        options.append(Option(label, texts[position]))
    return Sample(
        id=sample_id,
        question=question["question"],
        answer=texts[0],
        concepts=frozenset([concept]),
        options=tuple(options),
        answer_label=LABELS[order.index(0)],
    )
