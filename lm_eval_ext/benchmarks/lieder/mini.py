"""lieder_mini: a small LIEDER of our own, embedded in the package, for tests and demonstrations.

It has LIEDER's design (fact sheet, "LIEDER": items x sentence families x contexts x
continuations) and none of its text: other nouns, names, verbs, predicates and wordings. It
needs no download and is too small and too regular to tell much about a real model.
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
"""A sentence about no entity of the context: the baseline of the relative metric."""

FELICITOUS = frozenset({"pos_neg_s", "neg_pos_s", "pos_pos_p"})
"""The felicitous conditions of LIEDER's experiment 1 (table in the authors' README)."""

CONTINUATIONS = (SINGULAR, PLURAL, NONREFERENTIAL)


class Item(BaseModel):
    """A noun with its two owners, its verbs and what is said of it afterwards.

    Attributes:
        article: The indefinite article of the noun.
        noun: Singular; names the item.
        plural: The noun's plural.
        owners: The subjects of the first and the second clause.
        base: The verb's base form.
        finite: The same verb, third person singular.
        auxiliary: The auxiliary in the tense of ``finite``.
        attempt: The base form that follows "was able to".
        predicate_singular: Predicate of "The <noun>".
        predicate_plural: Predicate of "The <plural>".
        shareable: Whether both owners may have met one and the same individual.
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
        """The noun with its indefinite article."""
        return f"{self.article} {self.noun}"


Family: TypeAlias = Callable[[Item, str, str], Mapping[str, str]]
"""Gives the four contexts, by name, for an item and the subjects of its two clauses."""


def _plain_negated(item: Item, first: str, second: str) -> Mapping[str, str]:
    """Affirmation and negation."""
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
    """What is certain and what is unlikely."""
    one, two = (f"{subject} {item.finite} {item.indefinite}" for subject in (first, second))
    return {
        "pos_neg": f"It is certain that {one}, but it is unlikely that {two}.",
        "pos_pos": f"It is certain that {one}, and it is equally certain that {two}.",
        "neg_pos": f"It is unlikely that {one}, but it is certain that {two}.",
        "neg_neg": f"It is unlikely that {one}, and it is equally unlikely that {two}.",
    }


def _able_unable(item: Item, first: str, second: str) -> Mapping[str, str]:
    """Success and failure."""
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
"""Sentence families in the dataset's order."""


def embedded_items() -> str:
    """The text of ``mini.yaml``, with Unix line ends on every system."""
    file = resources.files(__package__).joinpath("mini.yaml")
    return file.read_text(encoding="utf-8").replace("\r\n", "\n")


def parse_items(entries: Iterable[object]) -> tuple[Item, ...]:
    """Validates items as YAML gives them.

    Raises:
        pydantic.ValidationError: A field is missing, unknown or of another type.
    """
    return tuple(Item.model_validate(entry) for entry in entries)


@cache
def items() -> tuple[Item, ...]:
    """The embedded items, in the dataset's order."""
    return parse_items(yaml.safe_load(embedded_items())["items"])


def continuations(item: Item) -> dict[str, str]:
    """The item's continuations by suffix of the condition, each with its leading space."""
    return {
        SINGULAR: f" The {item.noun} {item.predicate_singular}.",
        PLURAL: f" The {item.plural} {item.predicate_plural}.",
        NONREFERENTIAL: NONREFERENTIAL_CONTINUATION,
    }


def _felicity(condition: str) -> bool | None:
    """What a competent speaker says of a condition; None where LIEDER does not judge."""
    if condition.endswith(f"_{NONREFERENTIAL}"):
        return None
    return condition in FELICITOUS


def _group(item: Item, family: str) -> Group:
    """Crosses the contexts of one item in one family with the item's continuations."""
    contexts = FAMILIES[family](item, *item.owners)
    endings = continuations(item)
    sentences = []
    for context in FOUR_CONTEXTS:
        for ending in CONTINUATIONS:
            name = f"{context}_{ending}"
            sentences.append(Sentence(name, contexts[context], endings[ending], _felicity(name)))
    return Group(item.noun, family, tuple(sentences))


@cache
def _all_groups() -> tuple[Group, ...]:
    return tuple(_group(item, family) for item in items() for family in FAMILIES)


def groups() -> list[Group]:
    """Renders the dataset.

    Returns:
        One group of 12 sentences per item and family, items outermost, as in LIEDER's files.
    """
    return list(_all_groups())


def digest() -> str:
    """Names this version of the dataset.

    Returns:
        SHA-256 (hex) of the embedded items and of every rendered sentence, so that a change
        of the items, of a template or of a felicity judgment shows.
    """
    rendered = (
        "\t".join((g.item, g.family, s.condition, s.context + s.continuation, str(s.felicitous)))
        for g in groups()
        for s in g.sentences
    )
    return hashlib.sha256("\n".join((embedded_items(), *rendered)).encode()).hexdigest()
