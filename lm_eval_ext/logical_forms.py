"""Logical forms in the notation of COGS (Kim and Linzen 2020): parsing and equivalence.

A logical form is a conjunction: first definites, each with a star (``* dog ( x _ 1 ) ;``), then
atoms joined by AND. Primitives are a single name or bind variables with LAMBDA.

Two forms are *equivalent* if renaming variables makes them the same bag of atoms: the number in
``x _ 3`` is only a position in the sentence, and the order of conjuncts has no meaning.

A model can write anything, so parsing takes linear time, and the cost of comparing is bounded by
the size of the gold form.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

_MARK = re.compile(r"([().,;*]|\[w_[0-9]{1,2}\])", re.ASCII)
"""Tokens that COGS always puts between spaces; no word of any lexicon contains one."""

_WORD = r"(?!(?:AND|LAMBDA|[._])(?: |$))[^ (),;*]+"
"""A name, a predicate or a bound variable; not ``dog(x_1)``."""

_TERM = rf"(?:x _ [0-9]+|{_WORD})"
_ATOM = rf"{_WORD}(?: \. {_WORD})* \( {_TERM}(?: , {_TERM})* \)"
_FORM = re.compile(rf"(?:LAMBDA {_WORD} \. )*(?:\* {_ATOM} ; |{_ATOM} AND )*{_ATOM}", re.ASCII)
_NAME = re.compile(_WORD)
_BINDER = re.compile(r"LAMBDA (\S+) \. ")
_CONJUNCT = re.compile(r"(\* )?(\S+(?: \. \S+)*) \( (.+?) \)")


class Atom(NamedTuple):
    """One conjunct.

    Attributes:
        definite: Whether it has a star.
        predicate: The predicate, such as ``give . recipient``.
        terms: Variables (``x _ 3``, or bound) and names.
    """

    definite: bool
    predicate: str
    terms: tuple[str, ...]


class LogicalForm(NamedTuple):
    """A logical form.

    Attributes:
        binders: Variables of LAMBDA, outermost first; their order is part of the meaning.
        atoms: The conjuncts in the order of the text; empty for a single name.
        name: The name, if the form is a single name.
    """

    binders: tuple[str, ...]
    atoms: tuple[Atom, ...]
    name: str | None = None


class NotAFormError(ValueError):
    """A text is not a logical form."""


def normalise(text: str) -> str:
    """Put single spaces between tokens; only whitespace changes.

    The marks ``( ) , . ; *`` and novel tokens such as ``[w_0]`` are tokens even without spaces
    around them, because decoding can drop or add spaces there (Kim, Linzen and Smolensky 2022,
    appendix B; the clean-up of many tokenizers joins ``.`` and ``,`` to the previous word).
    """
    return " ".join(" ".join(_MARK.split(text)).split())


def parse(text: str) -> LogicalForm:
    """Parse a logical form.

    Raises:
        NotAFormError: The text is not a logical form.
    """
    text = " ".join(text.split())
    if _NAME.fullmatch(text):
        return LogicalForm((), (), text)
    if not _FORM.fullmatch(text):
        raise NotAFormError("not a conjunction of atoms in the notation of COGS")
    binders = tuple(_BINDER.findall(text))
    if len(set(binders)) != len(binders):
        raise NotAFormError("a variable is bound twice")
    start_of_atoms = sum(len(f"LAMBDA {binder} . ") for binder in binders)
    atoms = []
    for star, predicate, terms in _CONJUNCT.findall(text, start_of_atoms):
        atoms.append(Atom(bool(star), predicate, tuple(terms.split(" , "))))
    return LogicalForm(binders, tuple(atoms))


_BETWEEN_CONJUNCTS = re.compile(r" (?:AND|;) | ;$")


def is_part(part: str, form: str) -> bool:
    """Return whether a text is a proper part of a form: fewer conjuncts, all of them in it.

    Stars do not matter, since an explanation leaves them out.
    """
    conjuncts = _conjuncts(part)
    form_conjuncts = _conjuncts(form)
    if conjuncts == form_conjuncts:
        return len(part) < len(form) and "*" not in part
    return conjuncts < form_conjuncts


def _conjuncts(text: str) -> set[str]:
    pieces = _BETWEEN_CONJUNCTS.split(normalise(text))
    return {piece.removeprefix("* ") for piece in pieces if piece}


def equivalent(prediction: str, gold: str) -> bool:
    """Return whether two texts are equivalent logical forms; False if the prediction is no form.

    Raises:
        NotAFormError: The gold is not a logical form.
    """
    gold_form = parse(gold)
    try:
        form = parse(prediction)
    except NotAFormError:
        return False
    if form.name is not None or gold_form.name is not None:
        return form.name == gold_form.name
    if len(form.binders) != len(gold_form.binders):
        return False
    # If these are equal, the prediction is no larger than the gold, which bounds the cost below.
    if _predicates(form) != _predicates(gold_form):
        return False
    left = _ColouredForm(form.atoms, _first_colours(form))
    right = _ColouredForm(gold_form.atoms, _first_colours(gold_form))
    return _renaming_exists(left, right)


def _predicates(form: LogicalForm) -> Counter[tuple[bool, str, int]]:
    """Count the conjuncts, regardless of which terms they have."""
    return Counter((atom.definite, atom.predicate, len(atom.terms)) for atom in form.atoms)


Pattern: TypeAlias = tuple[bool, str, tuple[object, ...]]
"""A conjunct with colours for variables."""


@dataclass(frozen=True)
class _ColouredForm:
    """The conjuncts of a form, and a colour for each of its variables.

    Variables of two forms can be renamed to each other only if they have the same colour.
    """

    atoms: Sequence[Atom]
    colours: Mapping[str, int]

    @cached_property
    def patterns(self) -> list[Pattern]:
        """The pattern of each conjunct."""
        patterns: list[Pattern] = []
        for atom in self.atoms:
            terms = tuple(self.colours.get(term, term) for term in atom.terms)
            patterns.append((atom.definite, atom.predicate, terms))
        return patterns

    def occurrences(self) -> Mapping[str, Counter[tuple[int, Pattern]]]:
        """Return the positions and patterns in which each term occurs."""
        occurrences: dict[str, Counter[tuple[int, Pattern]]] = defaultdict(Counter)
        for atom, pattern in zip(self.atoms, self.patterns, strict=True):
            for position, term in enumerate(atom.terms):
                occurrences[term][position, pattern] += 1
        return occurrences

    def variables_by_colour(self) -> dict[int, list[str]]:
        """Return the variables of each colour."""
        by_colour: dict[int, list[str]] = {}
        for variable, colour in self.colours.items():
            by_colour.setdefault(colour, []).append(variable)
        return by_colour

    def recoloured(self, variable: str, colour: int) -> "_ColouredForm":
        """Return the form with another colour of one variable."""
        return _ColouredForm(self.atoms, {**self.colours, variable: colour})


def _first_colours(form: LogicalForm) -> dict[str, int]:
    """Give each bound variable a colour of its own, and all other variables one colour."""
    colours = {}
    for atom in form.atoms:
        for term in atom.terms:
            if term.startswith("x _ "):
                colours[term] = 0
    for number, binder in enumerate(form.binders, start=1):
        colours[binder] = number
    return colours


_NEW_COLOUR = -1
"""A colour that no variable has: refined colours are numbered from 0."""


def _renaming_exists(left: _ColouredForm, right: _ColouredForm) -> bool:
    """Return whether variables of both forms can be renamed to each other, within their colours.

    Variables are recoloured by their occurrences until no colour splits any more. If variables of
    a form still share a colour, each possible partner of one of them is tried; depth and width of
    this search are bounded by the gold's number of variables. Different forms almost always show
    their difference before it.

    Args:
        left: A form.
        right: A form with the same predicates.
    """
    is_stable = False
    while not is_stable:
        if Counter(left.patterns) != Counter(right.patterns):
            return False
        colour_count = _count_colours(left, right)
        left, right = _refined(left, right)
        is_stable = _count_colours(left, right) == colour_count
    left_variables = left.variables_by_colour()
    right_variables = right.variables_by_colour()
    if left_variables.keys() != right_variables.keys():
        return False
    shared_colours = []
    for colour, variables in left_variables.items():
        if len(variables) != len(right_variables[colour]):
            return False
        if len(variables) > 1:
            shared_colours.append(colour)
    if not shared_colours:
        return True
    rarest = min(shared_colours, key=lambda colour: len(left_variables[colour]))
    right = right.recoloured(right_variables[rarest][0], _NEW_COLOUR)
    for partner in left_variables[rarest]:
        if _renaming_exists(left.recoloured(partner, _NEW_COLOUR), right):
            return True
    return False


def _count_colours(left: _ColouredForm, right: _ColouredForm) -> int:
    return len({*left.colours.values(), *right.colours.values()})


def _refined(left: _ColouredForm, right: _ColouredForm) -> tuple[_ColouredForm, _ColouredForm]:
    """Give variables different colours if they had different ones, or occur differently."""
    numbers: dict[object, int] = {}
    refined = []
    for form in (left, right):
        occurrences = form.occurrences()
        colours = {}
        for variable, colour in form.colours.items():
            occurrences_of_variable = frozenset(occurrences.get(variable, {}).items())
            key = (colour, occurrences_of_variable)
            colours[variable] = numbers.setdefault(key, len(numbers))
        refined.append(_ColouredForm(form.atoms, colours))
    return refined[0], refined[1]
