"""A sample of any of the datasets, as a typed record."""

from collections import Counter
from collections.abc import Sequence
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
        """A text that samples with the same question have in common, without punctuation.

        Paragraphs are ignored: copies of a question can have different ones.
        """
        texts = [self.question, *sorted(option.text for option in self.options)]
        if self.premise:
            texts.append(self.context)
        return " | ".join(map(plain, texts))


def text_of(label: str, options: Sequence[Option]) -> str:
    """Return the text of the only option with a label.

    Raises:
        ValueError: No option has the label, or several have it.
    """
    (text,) = (option.text for option in options if option.label == label)
    return text


def words(text: str) -> list[str]:
    """Return the text's words, without punctuation and without regard to case, in any script.

    Words are runs of letters, digits and the marks that belong to them. The text is normalised to
    NFC, so a letter with an accent is the same whether it is written as one character or as two.
    """
    text = normalize("NFC", normalize("NFC", text).casefold())
    characters = []
    for character in text:
        belongs_to_word = character.isalnum() or category(character).startswith("M")
        characters.append(character if belongs_to_word else " ")
    return "".join(characters).split()


def plain(text: str) -> str:
    """Return the text's :func:`words`, separated by single spaces."""
    return " ".join(words(text))


def main_concepts(samples: Sequence[Sample]) -> dict[str, str]:
    """Return, by sample id, the one of its concepts that most samples have; "" if it has none.

    Clusters and metrics per concept need a single concept per sample. Ties go to the first in
    alphabetical order.
    """
    counts = Counter[str]()
    for sample in samples:
        counts.update(sample.concepts)
    by_sample = {}
    for sample in samples:
        alphabetical = sorted(sample.concepts)
        by_sample[sample.id] = max(alphabetical, key=counts.__getitem__, default="")
    return by_sample
