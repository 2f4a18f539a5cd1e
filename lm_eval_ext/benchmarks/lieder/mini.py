"""lieder_mini: a small dataset of our own in LIEDER's design, for tests and demonstrations.

It crosses items, sentence families, contexts and continuations as experiment 1 does (paper,
section 4), with other nouns, names, verbs, predicates and wordings. It needs no download. It is
too small and too regular to measure a real model.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Literal, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict

from lm_eval_ext.benchmarks.lieder.records import (
    FOUR_CONTEXTS,
    NONREFERENTIAL,
    PLURAL,
    SINGULAR,
    Group,
    Sentence,
)

NONREFERENTIAL_CONTINUATION = " None of this surprises anyone."
"""Refers to no entity of the context: the baseline of the relative metric."""

FELICITOUS = frozenset({"pos_neg_s", "neg_pos_s", "pos_pos_p"})
"""The felicitous conditions of experiment 1 (paper, table 2)."""

CONTINUATIONS = (SINGULAR, PLURAL, NONREFERENTIAL)


class Item(BaseModel):
    """A noun with its two owners, its verbs and its predicates.

    Attributes:
        article: The noun's indefinite article.
        noun: Singular; also the item's name.
        plural: The noun's plural.
        owners: The subjects of the first and the second clause.
        base: The verb's base form.
        finite: The same verb in the third person singular.
        auxiliary: In the tense of ``finite``.
        attempt: The base form that follows "was able to".
        predicate_singular: Predicate of "The <noun>".
        predicate_plural: Predicate of "The <plural>".
        shareable: Whether both clauses can be about the same individual.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    article: Literal["a", "an"]
    noun: str
    plural: str
    owners: tuple[str, str]
    base: str
    finite: str
    auxiliary: Literal["does", "did"]
    attempt: str
    predicate_singular: str
    predicate_plural: str
    shareable: bool = False

    @property
    def indefinite(self) -> str:
        """The noun with its article, such as "a kite"."""
        return f"{self.article} {self.noun}"


Family: TypeAlias = Callable[[Item, str, str], Mapping[str, str]]
"""From an item and the subjects of its two clauses to the four contexts, by name."""


def _plain_negated(item: Item, first: str, second: str) -> Mapping[str, str]:
    does = f"{item.finite} {item.indefinite}"
    does_not = f"{item.auxiliary} not {item.base} {item.indefinite}"
    return {
        "pos_neg": f"{first} {does}, whereas {second} {does_not}.",
        "pos_pos": f"{first} {does}, and {second} also {does}.",
        "neg_pos": f"{first} {does_not}, whereas {second} {does}.",
        "neg_neg": f"{first} {does_not}, "
        f"nor {item.auxiliary} {second} {item.base} {item.indefinite}.",
    }


def _certain_unlikely(item: Item, first: str, second: str) -> Mapping[str, str]:
    one, two = (f"{subject} {item.finite} {item.indefinite}" for subject in (first, second))
    return {
        "pos_neg": f"It is certain that {one}, but it is unlikely that {two}.",
        "pos_pos": f"It is certain that {one}, and it is equally certain that {two}.",
        "neg_pos": f"It is unlikely that {one}, but it is certain that {two}.",
        "neg_neg": f"It is unlikely that {one}, and it is equally unlikely that {two}.",
    }


def _able_unable(item: Item, first: str, second: str) -> Mapping[str, str]:
    deed = f"to {item.attempt} {item.indefinite}"
    return {
        "pos_neg": f"{first} was able {deed}, whereas {second} was unable {deed}.",
        "pos_pos": f"{first} was able {deed}, and {second} was likewise able {deed}.",
        "neg_pos": f"{first} was unable {deed}, whereas {second} was able {deed}.",
        "neg_neg": f"{first} was unable {deed}, and {second} was likewise unable {deed}.",
    }


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "plain_negated": _plain_negated,
        "certain_unlikely": _certain_unlikely,
        "able_unable": _able_unable,
    }
)
"""In the dataset's order; like the paper's three, with other operators."""


@cache
def groups() -> tuple[Group, ...]:
    """One group of 12 sentences per item and family, items outermost, as in LIEDER's files."""
    return tuple(_group(item, family) for item in items() for family in FAMILIES)


def _group(item: Item, family: str) -> Group:
    contexts = FAMILIES[family](item, *item.owners)
    endings = continuations(item)
    sentences = []
    for context in FOUR_CONTEXTS:
        for ending in CONTINUATIONS:
            name = f"{context}_{ending}"
            felicitous = None if ending == NONREFERENTIAL else name in FELICITOUS
            sentences.append(Sentence(name, contexts[context], endings[ending], felicitous))
    return Group(item.noun, family, tuple(sentences))


def continuations(item: Item) -> dict[str, str]:
    """The item's continuations by suffix of the condition, each with its leading space."""
    return {
        SINGULAR: f" The {item.noun} {item.predicate_singular}.",
        PLURAL: f" The {item.plural} {item.predicate_plural}.",
        NONREFERENTIAL: NONREFERENTIAL_CONTINUATION,
    }


@cache
def items() -> tuple[Item, ...]:
    """The embedded items, in the dataset's order."""
    return parse_items(yaml.safe_load(embedded_items())["items"])


def parse_items(entries: Iterable[object]) -> tuple[Item, ...]:
    """Validates items as YAML gives them.

    Raises:
        pydantic.ValidationError: A field is missing, unknown or of another type.
    """
    return tuple(Item.model_validate(entry) for entry in entries)


def embedded_items() -> str:
    """The text of ``mini.yaml``, with Unix line ends on every system."""
    file = resources.files(__package__).joinpath("mini.yaml")
    return file.read_text(encoding="utf-8").replace("\r\n", "\n")


def digest() -> str:
    """SHA-256 (hex) over items and rendered sentences; any change of the dataset changes it."""
    rendered = (
        "\t".join((g.item, g.family, s.condition, s.context + s.continuation, str(s.felicitous)))
        for g in groups()
        for s in g.sentences
    )
    return hashlib.sha256("\n".join((embedded_items(), *rendered)).encode()).hexdigest()
