"""COGS's logical forms: whitespace, parsing and equivalence.

A logical form is a conjunction: first definites, each with a star (``* dog ( x _ 1 ) ;``), then
atoms joined by AND. Primitives are a single name or bind variables with LAMBDA.

Two forms are *equivalent* if renaming variables makes them the same bag of atoms: the number in
``x _ 3`` is only a position in the sentence, and the order of conjuncts has no meaning.

A model can write anything, so parsing is a single pass without recursion, and the cost of
comparing is bounded by the size of the gold form.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

RESERVED = frozenset({".", "_", "AND", "LAMBDA"})
"""Tokens of the notation that :data:`WORD` would match."""
NUMBER = re.compile(r"[0-9]+", re.ASCII)
WORD = re.compile(r"[^\s(),;*]+")
"""A name, a predicate or a bound variable; not ``dog(x_1)``."""

APART = re.compile(r"([().,;*]|\[w_[0-9]{1,2}\])", re.ASCII)
"""Tokens that COGS always puts between spaces; no word of any lexicon contains one."""

Term: TypeAlias = tuple[str, str]
"""("variable", name) or ("name", text)."""

VARIABLE, NAME = "variable", "name"


class Atom(NamedTuple):
    """One conjunct; ``definite`` if it has a star.

    ``give . recipient`` is the predicate ``("give", "recipient")``.
    """

    definite: bool
    predicate: tuple[str, ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class LogicalForm:
    """A logical form.

    Attributes:
        binders: Variables of LAMBDA, outermost first; their order is part of the meaning.
        atoms: In the order of the text; empty for a single name.
        name: For a primitive that is a single name, otherwise None.
    """

    binders: tuple[str, ...]
    atoms: tuple[Atom, ...]
    name: str | None = None


class NotAFormError(ValueError):
    """A text is not a logical form."""


def normalise(text: str) -> str:
    """Puts single spaces between tokens; changes whitespace only.

    The marks ``( ) , . ; *`` and novel tokens such as ``[w_0]`` are tokens even without spaces
    around them, because decoding can drop or add spaces there (paper, appendix B; the clean-up of
    many tokenizers joins ``.`` and ``,`` to the previous word).
    """
    return " ".join(" ".join(APART.split(text)).split())


def parse(text: str) -> LogicalForm:
    """Parses a logical form.

    Raises:
        NotAFormError: The text is not a logical form.
    """
    # What is read never starts behind the last token, and nothing reads three further than that.
    tokens = [*text.split(), *NO_TOKENS]
    if len(tokens) == 1 + len(NO_TOKENS) and _is_word(tokens[0]):
        return LogicalForm((), (), tokens[0])
    position = 0
    binders: list[str] = []
    while tokens[position] == "LAMBDA":
        if tokens[position + 2] != "." or not _is_word(tokens[position + 1]):
            raise NotAFormError("LAMBDA must be followed by a variable and a dot")
        binders.append(tokens[position + 1])
        position += 3
    if len(set(binders)) != len(binders):
        raise NotAFormError("a variable is bound twice")
    atoms = []
    while True:
        definite = tokens[position] == "*"
        atom, position = _atom(tokens, position + definite, binders, definite=definite)
        atoms.append(atom)
        if not tokens[position] and not definite:
            return LogicalForm(tuple(binders), tuple(atoms))
        joint = ";" if definite else "AND"
        if tokens[position] != joint:
            raise NotAFormError(f"expected {joint} after conjunct {len(atoms)}")
        position += 1


NO_TOKENS = ("", "", "")
"""Put after the last token, so that looking ahead needs no check."""


def _is_word(token: str) -> bool:
    return token not in RESERVED and (token.isalnum() or WORD.fullmatch(token) is not None)


def _atom(
    tokens: Sequence[str], position: int, bound: Collection[str], *, definite: bool
) -> tuple[Atom, int]:
    """Parses ``predicate . role ( term , term )``; also returns the next position."""
    predicate: list[str] = []
    dot = True
    while dot and _is_word(tokens[position]):
        predicate.append(tokens[position])
        dot = tokens[position + 1] == "."
        position += 2 if dot else 1
    if dot or tokens[position] != "(":
        raise NotAFormError("expected a predicate with arguments")
    terms: list[Term] = []
    while not terms or tokens[position] == ",":
        term, position = _term(tokens, position + 1, bound)
        terms.append(term)
    if tokens[position] != ")":
        raise NotAFormError("a bracket is not closed")
    return Atom(definite, tuple(predicate), tuple(terms)), position + 1


def _term(tokens: Sequence[str], position: int, bound: Collection[str]) -> tuple[Term, int]:
    first = tokens[position]
    if first == "x" and tokens[position + 1] == "_" and NUMBER.fullmatch(tokens[position + 2]):
        return (VARIABLE, f"x_{tokens[position + 2]}"), position + 3
    if not _is_word(first):
        raise NotAFormError("expected an argument")
    return (VARIABLE if first in bound else NAME, first), position + 1


def equivalent(prediction: str, gold: str) -> bool:
    """Whether two texts are equivalent logical forms; False if the prediction is not a form.

    Raises:
        NotAFormError: The gold is not a logical form.
    """
    right = parse(gold)
    try:
        left = parse(prediction)
    except NotAFormError:
        return False
    if left.name is not None or right.name is not None:
        return left.name == right.name
    if len(left.binders) != len(right.binders) or _shapes(left) != _shapes(right):
        return False
    return _renaming_exists(left, right, _first_colours(left), _first_colours(right))


def _shapes(form: LogicalForm) -> Counter[object]:
    """What renaming does not change.

    If it is equal, the prediction is no larger than the gold, which bounds the cost below.
    """
    return Counter((atom.definite, atom.predicate, len(atom.terms)) for atom in form.atoms)


Colours: TypeAlias = Mapping[str, int]
"""By variable: variables of different colours cannot be renamed to each other."""


def _first_colours(form: LogicalForm) -> dict[str, int]:
    """Each bound variable has its own colour; all others share one."""
    colours = {text: 0 for atom in form.atoms for kind, text in atom.terms if kind == VARIABLE}
    return colours | {binder: place + 1 for place, binder in enumerate(form.binders)}


def _renaming_exists(
    left: LogicalForm, right: LogicalForm, left_colours: Colours, right_colours: Colours
) -> bool:
    """Refines colours; if variables still share one, tries each possible partner for one of them.

    Both forms have the gold's predicates, so depth and width are bounded by its number of
    variables. A difference almost always shows in the first refinement.
    """
    refined = _refine(left, right, left_colours, right_colours)
    if refined is None:
        return False
    left_colours, right_colours = refined
    classes: dict[int, list[str]] = defaultdict(list)
    for variable, colour in right_colours.items():
        classes[colour].append(variable)
    shared = [colour for colour, members in classes.items() if len(members) > 1]
    if not shared:
        return _bag(left, left_colours) == _bag(right, right_colours)
    colour = min(shared, key=lambda shared_colour: len(classes[shared_colour]))
    fresh = max(classes) + 1
    chosen = classes[colour][0]
    return any(
        _renaming_exists(
            left, right, {**left_colours, partner: fresh}, {**right_colours, chosen: fresh}
        )
        for partner, its_colour in left_colours.items()
        if its_colour == colour
    )


def _refine(
    left: LogicalForm, right: LogicalForm, left_colours: Colours, right_colours: Colours
) -> tuple[Colours, Colours] | None:
    """Recolours variables by their occurrences until no class of them splits any more.

    Returns:
        The colours of both forms, numbered alike; None if they differ.
    """
    while True:
        numbers: dict[object, int] = {}
        new_left = _recolour(left, left_colours, numbers)
        new_right = _recolour(right, right_colours, numbers)
        if Counter(new_left.values()) != Counter(new_right.values()):
            return None
        if len(set(new_right.values())) == len(set(right_colours.values())):
            return new_left, new_right
        left_colours, right_colours = new_left, new_right


def _recolour(form: LogicalForm, colours: Colours, numbers: dict[object, int]) -> dict[str, int]:
    occurrences: dict[str, list[tuple[object, ...]]] = {variable: [] for variable in colours}
    for atom in form.atoms:
        pattern = _coloured(atom, colours)
        for place, (kind, text) in enumerate(atom.terms):
            if kind == VARIABLE:
                occurrences[text].append((atom.definite, atom.predicate, place, pattern))
    return {
        variable: numbers.setdefault((colours[variable], tuple(sorted(places))), len(numbers))
        for variable, places in occurrences.items()
    }


def _bag(form: LogicalForm, colours: Colours) -> Counter[object]:
    return Counter((atom.definite, atom.predicate, _coloured(atom, colours)) for atom in form.atoms)


def _coloured(atom: Atom, colours: Colours) -> tuple[str, ...]:
    """The atom's terms, with colours instead of variables."""
    return tuple(
        str(colours[text]) if kind == VARIABLE else f"={text}" for kind, text in atom.terms
    )
