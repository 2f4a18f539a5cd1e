"""conceptual_mini: questions, explanations and concepts of our own, embedded in the package.

It has the design of the OpenBookQA task, with written instead of parsed concepts. It needs no
download, and is too small to measure a real model.
"""

import hashlib
from functools import cache
from importlib import resources
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.fewshot import shuffled

LABELS = "ABCD"


class _Item(BaseModel):
    """A question; the first option is the right one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    options: Annotated[tuple[str, ...], Field(min_length=len(LABELS), max_length=len(LABELS))]
    explanation: str


class _Items(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    concepts: dict[str, tuple[_Item, ...]]


@cache
def samples() -> tuple[Sample, ...]:
    """The questions, by concept."""
    items = _Items.model_validate(yaml.safe_load(embedded_items()))
    return tuple(
        _sample(concept, number, item)
        for concept, members in items.concepts.items()
        for number, item in enumerate(members, start=1)
    )


def _sample(concept: str, number: int, item: _Item) -> Sample:
    order = list(shuffled(len(LABELS), item.question))
    options = tuple(
        Option(label, item.options[place]) for label, place in zip(LABELS, order, strict=True)
    )
    return Sample(
        id=f"{concept}-{number}",
        question=item.question,
        answer=item.options[0],
        concepts=frozenset([concept]),
        options=options,
        answer_label=LABELS[order.index(0)],
    )


def digest() -> str:
    """SHA-256 (hex) over the embedded text and the questions with their shuffled options."""
    asked = (repr((s.id, s.question, s.options, s.answer, sorted(s.concepts))) for s in samples())
    return hashlib.sha256("\n".join((embedded_items(), *asked)).encode()).hexdigest()


def embedded_items() -> str:
    """The text of ``mini.yaml``, with Unix line ends on every system."""
    file = resources.files(__package__).joinpath("mini.yaml")
    return file.read_text(encoding="utf-8").replace("\r\n", "\n")
