"""A sample of any of the datasets, as a typed record."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias
from unicodedata import category, normalize

DatasetName: TypeAlias = Literal["glue", "openbookqa", "hotpotqa", "worldtree", "mini"]


class Option(NamedTuple):
    """An answer to choose from."""

    label: str
    text: str


@dataclass(frozen=True)
class Sample:
    """A question with its answer and the concepts that its explanation rests on.

    Attributes:
        id: Unique in its dataset.
        question: In GLUE diagnostics, the hypothesis.
        answer: The right answer, as the dataset words it.
        concepts: Criteria for choosing demonstrations (paper, section 3.2): names of logical
            phenomena, the root of a fact, pairs of relation and object, or ids of facts.
        context: A premise or paragraphs; may be empty.
        premise: Whether the context is a premise, and so part of the question.
        options: Empty if the question is open.
        answer_label: The right option's label; empty if the question is open.
        facts: Texts of the facts that explain the answer, if prompts show them.
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
        """Equal for samples with the same question, by the letters and digits of its text.

        Paragraphs are ignored: copies of a question can have different ones.
        """
        asked = [self.question, *sorted(option.text for option in self.options)]
        if self.premise:
            asked.append(self.context)
        return " | ".join(map(plain, asked))


def words(text: str) -> list[str]:
    """The text's words, without punctuation and without regard to case, in any script.

    Words are runs of letters, digits and the marks that belong to them. The text is normalised to
    NFC, so a letter with an accent is the same whether it is written as one character or as two.
    """
    text = normalize("NFC", normalize("NFC", text).casefold())
    return "".join(
        char if char.isalnum() or category(char).startswith("M") else " " for char in text
    ).split()


def plain(text: str) -> str:
    """The text's :func:`words`, separated by single spaces."""
    return " ".join(words(text))


def main_concepts(samples: Iterable[Sample]) -> dict[str, str]:
    """By sample id, the one of its concepts that most samples have; "" if it has none.

    Clusters and metrics per concept need a single concept per sample. Ties go to the first in
    alphabetical order.
    """
    samples = list(samples)
    counts = Counter(concept for sample in samples for concept in sample.concepts)
    return {
        sample.id: min(sample.concepts, key=lambda name: (-counts[name], name), default="")
        for sample in samples
    }
