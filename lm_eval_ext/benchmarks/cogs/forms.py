"""COGS's logical forms: reading them, and their one form of whitespace.

A form is a conjunction: definites first, each with a star (``* dog ( x _ 1 ) ;``), then atoms
joined by AND. Primitives are a name alone or bind variables with LAMBDA.

Text of a model is hostile: reading is one pass without recursion.

When two logical forms of COGS say the same.

Two forms are *equivalent* where a renaming of variables makes them the same bag of atoms: the
numbers in ``x _ 3`` are positions in the sentence, and the order of conjuncts means nothing.
Comparing costs no more than the gold form's own size allows.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
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


def equivalent(prediction: str, gold: str) -> bool:
    """Whether two texts are logical forms that say the same; a text that is none says nothing.

    Raises:
        NotAFormError: If the gold is no logical form.
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
    start = {form: _first_colours(form) for form in (left, right)}
    return _renaming_exists(left, right, start[left], start[right])


def _shapes(form: LogicalForm) -> Counter[object]:
    """What renaming does not touch.

    Where it is equal, a prediction is no larger than the gold, which bounds what follows.
    """
    return Counter((atom.definite, atom.predicate, len(atom.terms)) for atom in form.atoms)


Colours: TypeAlias = Mapping[str, int]


def _first_colours(form: LogicalForm) -> dict[str, int]:
    """Bound variables are told apart by their place, the others not at all."""
    colours = {text: 0 for atom in form.atoms for kind, text in atom.terms if kind == VARIABLE}
    return colours | {binder: place + 1 for place, binder in enumerate(form.binders)}


def _renaming_exists(
    left: LogicalForm, right: LogicalForm, left_colours: Colours, right_colours: Colours
) -> bool:
    """Refines colours until they stand still; where some are shared still, tries each partner.

    Both forms have the gold's predicates, so depth and width are bounded by the gold's number of
    variables, and a difference nearly always shows in the first refinement.
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
        by_colour = {colour: variable for variable, colour in right_colours.items()}
        renaming = {variable: by_colour[colour] for variable, colour in left_colours.items()}
        return _bag(left, renaming) == _bag(right, {v: v for v in right_colours})
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
    """Gives variables new colours by where they occur, until no class splits any more.

    Returns:
        The colours of both forms, comparable with each other; None where they differ.
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
        pattern = tuple(
            str(colours[text]) if kind == VARIABLE else f"={text}" for kind, text in atom.terms
        )
        for place, (kind, text) in enumerate(atom.terms):
            if kind == VARIABLE:
                occurrences[text].append((atom.definite, atom.predicate, place, pattern))
    return {
        variable: numbers.setdefault((colours[variable], tuple(sorted(places))), len(numbers))
        for variable, places in occurrences.items()
    }


def _bag(form: LogicalForm, renaming: Mapping[str, str]) -> Counter[Atom]:
    def renamed(atom: Atom) -> Iterator[Term]:
        for kind, text in atom.terms:
            yield (kind, renaming[text]) if kind == VARIABLE else (kind, text)

    return Counter(Atom(atom.definite, atom.predicate, tuple(renamed(atom))) for atom in form.atoms)
