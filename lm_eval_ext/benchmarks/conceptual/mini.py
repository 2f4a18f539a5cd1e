"""conceptual_mini: questions, explanations and concepts of our own, embedded in the package.

It has the design of the OpenBookQA task, with written instead of parsed concepts. It needs no
download, and is too small to measure a real model.
"""

from typing import Any

from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.reading import embedded

LABELS = "ABCD"


def concepts() -> Any:
    """By concept, the questions of ``mini.yaml``; the first option is the right one."""
    return embedded(__file__, "mini.yaml")["concepts"]


def samples() -> list[Sample]:
    """The questions, by concept."""
    return [
        _sample(item["question"], item["options"], concept, f"{concept}-{number}")
        for concept, items in concepts().items()
        for number, item in enumerate(items, start=1)
    ]


def _sample(question: str, options: list[str], concept: str, name: str) -> Sample:
    order = list(shuffled(len(LABELS), question))
    return Sample(
        id=name,
        question=question,
        answer=options[0],
        concepts=frozenset([concept]),
        options=tuple(map(Option, LABELS, (options[place] for place in order))),
        answer_label=LABELS[order.index(0)],
    )
