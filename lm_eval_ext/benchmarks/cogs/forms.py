"""COGS's logical forms: reading them, and their one form of whitespace.

A form is a conjunction: definites first, each with a star (``* dog ( x _ 1 ) ;``), then atoms
joined by AND. Primitives are a name alone or bind variables with LAMBDA.

Text of a model is hostile: reading is one pass without recursion.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

RESERVED = frozenset({"(", ")", ",", ".", ";", "*", "_", "AND", "LAMBDA"})
NUMBER = re.compile(r"[0-9]+", re.ASCII)
WORD = re.compile(r"[^\s(),;*]+")
"""A name, a predicate or a bound variable; ``dog(x_1)`` is none of them."""

APART = re.compile(r"[().,;*]|\[w_[0-9]{1,2}\]", re.ASCII)
"""What COGS always separates by spaces. No word of any lexicon contains one."""

Term: TypeAlias = tuple[str, str]
"""("variable", name) or ("name", text)."""

VARIABLE, NAME = "variable", "name"


@dataclass(frozen=True)
class Atom:
    """One conjunct.

    Attributes:
        definite: Whether it carries the star.
        predicate: Such as ``("give", "recipient")``.
        terms: Its arguments.
    """

    definite: bool
    predicate: tuple[str, ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class LogicalForm:
    """A logical form.

    Attributes:
        binders: Variables of LAMBDA, outermost first; their order is part of the meaning.
        atoms: In the order of the text. Empty for a bare name.
        name: The primitive that is a name alone, otherwise None.
    """

    binders: tuple[str, ...]
    atoms: tuple[Atom, ...]
    name: str | None = None


class NotAFormError(ValueError):
    """A text is no logical form."""


def normalise(text: str) -> str:
    """The text with one space between any two tokens of COGS, and no other whitespace.

    Runs of whitespace become one space, and the marks ``( ) , . ; *`` and novel tokens such as
    ``[w_0]`` stand between spaces, whether they did or not. Nothing but whitespace changes.
    Exact match is decided on this: decoding drops or adds spaces in just these places (paper,
    appendix B; the clean-up of many tokenizers joins ``.`` and ``,`` to the word before).
    """
    return " ".join(APART.sub(r" \g<0> ", text).split())


def parse(text: str) -> LogicalForm:
    """Reads a logical form.

    Raises:
        NotAFormError: If the text is none.
    """
    tokens = text.split()
    if len(tokens) == 1 and _is_word(tokens[0]):
        return LogicalForm((), (), tokens[0])
    position = 0
    binders: list[str] = []
    while tokens[position : position + 1] == ["LAMBDA"]:
        if tokens[position + 2 : position + 3] != ["."] or not _is_word(tokens[position + 1]):
            raise NotAFormError("LAMBDA wants a variable and a dot")
        binders.append(tokens[position + 1])
        position += 3
    if len(set(binders)) != len(binders):
        raise NotAFormError("a variable is bound twice")
    atoms = []
    while True:
        definite = tokens[position : position + 1] == ["*"]
        atom, position = _atom(tokens, position + definite, frozenset(binders), definite=definite)
        atoms.append(atom)
        if position == len(tokens) and not definite:
            return LogicalForm(tuple(binders), tuple(atoms))
        joint = ";" if definite else "AND"
        if tokens[position : position + 1] != [joint]:
            raise NotAFormError(f"{joint} is wanted after conjunct {len(atoms)}")
        position += 1


def _is_word(token: str) -> bool:
    return token not in RESERVED and WORD.fullmatch(token) is not None


def _atom(
    tokens: Sequence[str], position: int, bound: frozenset[str], *, definite: bool
) -> tuple[Atom, int]:
    """Reads ``predicate . role ( term , term )`` from ``position``; returns the next one."""
    predicate: list[str] = []
    dot = True
    while dot and position < len(tokens) and _is_word(tokens[position]):
        predicate.append(tokens[position])
        dot = tokens[position + 1 : position + 2] == ["."]
        position += 2 if dot else 1
    if dot or tokens[position : position + 1] != ["("]:
        raise NotAFormError("a predicate with arguments is wanted")
    terms: list[Term] = []
    while not terms or tokens[position] == ",":
        term, position = _term(tokens, position + 1, bound)
        terms.append(term)
        if position >= len(tokens):
            break
    if tokens[position : position + 1] != [")"]:
        raise NotAFormError("a bracket is not closed")
    return Atom(definite, tuple(predicate), tuple(terms)), position + 1


def _term(tokens: Sequence[str], position: int, bound: frozenset[str]) -> tuple[Term, int]:
    three = tokens[position : position + 3]
    if len(three) == 3 and three[:2] == ["x", "_"] and NUMBER.fullmatch(three[2]):  # noqa: PLR2004
        return (VARIABLE, f"x_{three[2]}"), position + 3
    if not three or not _is_word(three[0]):
        raise NotAFormError("an argument is wanted")
    return (VARIABLE if three[0] in bound else NAME, three[0]), position + 1
