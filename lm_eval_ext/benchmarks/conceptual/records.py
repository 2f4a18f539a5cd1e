"""What a sample of the four datasets is, as a typed record."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

DatasetName: TypeAlias = Literal["glue", "openbookqa", "hotpotqa", "worldtree", "mini"]


@dataclass(frozen=True)
class Option:
    """One of the answers to choose from."""

    label: str
    text: str


@dataclass(frozen=True)
class Sample:
    """A question with its answer and the concepts that its explanation rests on.

    Attributes:
        id: Unique in its dataset.
        question: What is asked; in GLUE's diagnostics the hypothesis.
        answer: The right answer, as the dataset words it.
        concepts: What demonstrations are chosen by: names of logical phenomena, the root of a
            fact, pairs of relation and object, or ids of facts.
        context: What the question is about: the premise, or paragraphs; else empty.
        premise: Whether the context is a premise, and so part of what is asked.
        options: The answers to choose from; else empty.
        answer_label: The right option's label; else empty.
        facts: The texts of the facts that explain the answer, where prompts show them.
    """

    id: str
    question: str
    answer: str
    concepts: frozenset[str]
    context: str = ""
    premise: bool = False
    options: tuple[Option, ...] = ()
    answer_label: str = ""
    facts: tuple[str, ...] = ()

    @property
    def copy_key(self) -> str:
        """Equal for samples that ask the same: the letters and digits of what they ask.

        Paragraphs do not count, since a copy may come with others.
        """
        asked = [self.question, *sorted(option.text for option in self.options)]
        if self.premise:
            asked.append(self.context)
        return " | ".join(map(plain, asked))


def plain(text: str) -> str:
    """A text in lower case, as words of letters and digits with one space between them."""
    return " ".join("".join(char if char.isalnum() else " " for char in text.casefold()).split())


def main_concepts(samples: Iterable[Sample]) -> dict[str, str]:
    """For every sample, the concept of it that most samples have.

    Samples may have several concepts; clusters of standard errors, and figures by concept,
    need one. Ties go to the first in alphabetical order.

    Returns:
        By id; "" for a sample without concept.
    """
    samples = list(samples)
    counts: dict[str, int] = {}
    for sample in samples:
        for concept in sample.concepts:
            counts[concept] = counts.get(concept, 0) + 1
    return {
        sample.id: min(sample.concepts, key=lambda name: (-counts[name], name), default="")
        for sample in samples
    }
