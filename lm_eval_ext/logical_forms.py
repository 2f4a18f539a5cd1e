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
from collections.abc import Mapping
from typing import NamedTuple

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
    """One conjunct; ``definite`` if it has a star.

    ``give . recipient`` is a predicate; terms are variables (``x _ 3``, or bound) and names.
    """

    definite: bool
    predicate: str
    terms: tuple[str, ...]


class LogicalForm(NamedTuple):
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
    around them, because decoding can drop or add spaces there (Kim, Linzen and Smolensky 2022,
    appendix B; the clean-up of many tokenizers joins ``.`` and ``,`` to the previous word).
    """
    return " ".join(" ".join(_MARK.split(text)).split())


def parse(text: str) -> LogicalForm:
    """Parses a logical form.

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
    conjuncts = _CONJUNCT.findall(text, sum(len(f"LAMBDA {one} . ") for one in binders))
    atoms = (Atom(bool(star), name, tuple(terms.split(" , "))) for star, name, terms in conjuncts)
    return LogicalForm(binders, tuple(atoms))


_BETWEEN_CONJUNCTS = re.compile(r" (?:AND|;) | ;$")


def is_part(part: str, form: str) -> bool:
    """Return whether a text is a proper part of a form: fewer conjuncts, all of them in it.

    Stars do not matter, since an explanation leaves them out.
    """
    conjuncts = _conjuncts(part)
    whole = _conjuncts(form)
    return conjuncts < whole or (conjuncts == whole and len(part) < len(form) and "*" not in part)


def _conjuncts(text: str) -> set[str]:
    pieces = _BETWEEN_CONJUNCTS.split(normalise(text))
    return {piece.removeprefix("* ") for piece in pieces if piece}


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
    # If these are equal, the prediction is no larger than the gold, which bounds the cost below.
    shapes = [
        Counter((atom.definite, atom.predicate, len(atom.terms)) for atom in form.atoms)
        for form in (left, right)
    ]
    if len(left.binders) != len(right.binders) or shapes[0] != shapes[1]:
        return False
    # Each bound variable has its own colour; all others share one.
    colours = {}
    for side, form in enumerate((left, right)):
        for term in (term for atom in form.atoms for term in atom.terms):
            if term.startswith("x _ "):
                colours[side, term] = 0
        colours |= {(side, binder): place for place, binder in enumerate(form.binders, start=1)}
    return _renaming_exists((left, right), colours)


def _renaming_exists(
    forms: tuple[LogicalForm, LogicalForm], colours: Mapping[tuple[int, str], int]
) -> bool:
    """Whether variables of both forms can be renamed to each other, within their colours.

    Variables are recoloured by their occurrences until no colour splits any more. If variables of
    a form still share one, each possible partner of one of them is tried, so depth and width are
    bounded by the gold's number of variables. A difference almost always shows without that.

    Args:
        forms: With the same predicates.
        colours: By side (0 or 1) and variable.
    """
    while True:
        bags: tuple[Counter[object], Counter[object]] = (Counter(), Counter())
        places: dict[tuple[int, str], Counter[object]] = defaultdict(Counter)
        for side, form in enumerate(forms):
            for atom in form.atoms:
                terms = tuple(colours.get((side, term), term) for term in atom.terms)
                pattern = (atom.definite, atom.predicate, terms)
                bags[side][pattern] += 1
                for place, term in enumerate(atom.terms):
                    places[side, term][place, pattern] += 1
        if bags[0] != bags[1]:
            return False
        numbers: dict[object, int] = {}
        refined = {
            one: numbers.setdefault((colour, frozenset(places[one].items())), len(numbers))
            for one, colour in colours.items()
        }
        stable = len(numbers) == len(set(colours.values()))
        colours = refined  # numbered from 0, so that -1 is a new colour below
        if stable:
            break
    classes = defaultdict[int, tuple[list[str], list[str]]](lambda: ([], []))
    for (side, variable), colour in colours.items():
        classes[colour][side].append(variable)
    if any(len(left) != len(right) for left, right in classes.values()):
        return False
    shared = [one for one in classes.values() if len(one[0]) > 1]
    if not shared:
        return True
    partners, (chosen, *_) = min(shared, key=lambda one: len(one[0]))
    return any(
        _renaming_exists(forms, {**colours, (0, partner): -1, (1, chosen): -1})
        for partner in partners
    )
