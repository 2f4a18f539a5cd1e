"""What a LIEDER item is, as typed records.

A *group* is what one document of the task holds: one item (a noun with its two owners and
its predicates) in one sentence family. It crosses contexts with continuations; the pair is
a *condition*, written ``<context>_<continuation>`` as in the authors' result files:
``pos_neg_s`` is the singular continuation after a context that introduces the entity in its
first clause and denies it in its second (fact sheet, "LIEDER").
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Experiment: TypeAlias = Literal["base", "diff", "two", "mini"]

SINGULAR, PLURAL, NONREFERENTIAL = "s", "p", "nonref"
"""Suffixes of a condition: "The dog ...", "The dogs ...", and a sentence about no dog."""

FOUR_CONTEXTS = ("pos_neg", "pos_pos", "neg_pos", "neg_neg")
SIX_CONTEXTS = ("pos_neg", "two_neg", "pos_pos", "neg_pos", "neg_two", "neg_neg")


@dataclass(frozen=True)
class Sentence:
    """One context with one continuation.

    Attributes:
        condition: Such as ``pos_neg_s``.
        context: The first sentence, with its period.
        continuation: The second sentence, with the space before it.
        felicitous: What a competent speaker says; None where the dataset does not judge
            (the non-referential continuations).
    """

    condition: str
    context: str
    continuation: str
    felicitous: bool | None


@dataclass(frozen=True)
class Group:
    """The sentences of one item in one family.

    Attributes:
        item: Names the noun, and with it the cluster that standard errors are taken over.
        family: How the context is built, such as ``know_doubt``.
        sentences: In the dataset's order.
    """

    item: str
    family: str
    sentences: tuple[Sentence, ...]
