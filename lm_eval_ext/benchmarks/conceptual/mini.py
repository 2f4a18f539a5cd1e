"""conceptual_mini: questions, explanations and concepts of our own, embedded in the package.

It has the design of OpenBookQA's part, with concepts that are written down instead of parsed.
It needs no download and is too small to tell much about a real model.
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
    """A question; the first option is right."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    options: Annotated[tuple[str, ...], Field(min_length=len(LABELS), max_length=len(LABELS))]
    explanation: str


class _Items(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    concepts: dict[str, tuple[_Item, ...]]


def embedded_items() -> str:
    """The text of ``mini.yaml``, with Unix line ends on every system."""
    file = resources.files(__package__).joinpath("mini.yaml")
    return file.read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def _all() -> tuple[Sample, ...]:
    items = _Items.model_validate(yaml.safe_load(embedded_items()))
    return tuple(
        _sample(concept, number, item)
        for concept, members in items.concepts.items()
        for number, item in enumerate(members, start=1)
    )


def samples() -> list[Sample]:
    """The questions, by concept."""
    return list(_all())


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
    """SHA-256 (hex) of the embedded questions as they are asked."""
    return hashlib.sha256("\n".join((embedded_items(), *map(repr, _shown()))).encode()).hexdigest()


def _shown() -> list[tuple[object, ...]]:
    return [(s.id, s.question, s.options, s.answer, sorted(s.concepts)) for s in _all()]
