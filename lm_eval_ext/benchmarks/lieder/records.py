"""LIEDER's data as typed records: sentences, and the groups that are scored together.

Each document is one *group*: one item (a noun with its two owners and its predicates) in one
sentence family, with every context combined with every continuation. Such a combination is a
*condition*, written ``<context>_<continuation>`` as in the authors' result files. ``pos_neg_s``
is the singular continuation after a context whose first clause introduces an entity and whose
second clause denies one (paper, section 4 and table 2).
"""

from typing import Literal, NamedTuple, TypeAlias

Experiment: TypeAlias = Literal["base", "diff", "two"]
"""Experiments 1 (section 5), 2 (section 6) and 3 (appendix D)."""

SINGULAR, PLURAL, NONREFERENTIAL = "s", "p", "nonref"
"""Continuation suffixes: "The dog ...", "The dogs ...", and a sentence about neither."""

FOUR_CONTEXTS = ("pos_neg", "pos_pos", "neg_pos", "neg_neg")
SIX_CONTEXTS = ("pos_neg", "two_neg", "pos_pos", "neg_pos", "neg_two", "neg_neg")
"""Contexts in the order of the stimulus files; the six are those of experiment ``two``."""

FELICITOUS = frozenset({"pos_neg_s", "neg_pos_s", "pos_pos_p", "two_neg_p", "neg_two_p"})
"""The felicitous conditions of all three experiments (paper, table 2 and appendix D)."""

FAMILIES = ("affirmative_negation", "know_doubt", "managed_failed")
"""LIEDER's sentence families; the paper's figures 1 to 6 are of the first alone (appendix B)."""


class Sentence(NamedTuple):
    """One context with one continuation.

    Attributes:
        condition: Such as ``pos_neg_s``.
        context: The first sentence, with its period.
        continuation: The second sentence, with the space before it and its period, so that its
            probability covers every token (section 5, "Metric").
        felicitous: A competent speaker's judgment; None for non-referential continuations,
            which the dataset does not judge.
    """

    condition: str
    context: str
    continuation: str
    felicitous: bool | None


class Group(NamedTuple):
    """The sentences of one item in one family.

    Attributes:
        item: The item's name, which is also the cluster for standard errors.
        family: How the context is built, such as ``know_doubt``.
        sentences: In the dataset's order.
    """

    item: str
    family: str
    sentences: tuple[Sentence, ...]
