"""When two logical forms of COGS say the same.

Two forms are *equivalent* where a renaming of variables makes them the same bag of atoms: the
numbers in ``x _ 3`` are positions in the sentence, and the order of conjuncts means nothing.
Comparing costs no more than the gold form's own size allows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from lm_eval_ext.benchmarks.cogs.forms import (
    VARIABLE,
    Atom,
    LogicalForm,
    NotAFormError,
    Term,
    parse,
)


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
