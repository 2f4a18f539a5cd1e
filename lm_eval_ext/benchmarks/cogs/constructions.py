"""Which constructions an example shows, read from its logical form.

No word but the grammar's own (was, the, a, prepositions) is in a construction's name, so an
example has the same ones under every lexicon.
"""

from collections import defaultdict
from collections.abc import Mapping

from lm_eval_ext.benchmarks.cogs.forms import VARIABLE, LogicalForm, Term, parse

MODIFIER, CLAUSE = "nmod", "ccomp"
"""What nests: places behind nouns, and clauses in clauses."""

_ROLE, _MODIFIER = 2, 3
"""Parts of a predicate: lemma and role, or noun, ``nmod`` and preposition."""


def constructions(sentence: str, form: str) -> frozenset[str]:
    """The constructions of an example.

    For each verb its *frame*, the roles in the order of the form: ``agent theme``, or ``was
    theme agent`` in the passive. For each noun phrase its *slot* and what it is: ``subject
    name``, ``theme the``, ``theme a``, ``theme modified`` (a place behind it). The slot is the
    role; the first of a frame is the subject. For each place its preposition: ``nmod in``. And
    how deep places and clauses are nested, by one for each level: ``ccomp 1``, ``ccomp 2``. A
    primitive, which is a word alone, has none.

    Args:
        sentence: A variable's number is the place of its word in it.
        form: The logical form.

    Raises:
        NotAFormError: If the form is no logical form.
    """
    read = parse(form)
    if read.name is not None or read.binders:
        return frozenset()
    found: set[str] = set()
    nouns = _nouns(read)
    tokens = sentence.split()
    nested: dict[str, dict[Term, Term]] = {MODIFIER: {}, CLAUSE: {}}
    frames: defaultdict[Term, list[tuple[str, Term]]] = defaultdict(list)
    for atom in read.atoms:
        if len(atom.predicate) == _MODIFIER:
            nested[MODIFIER][atom.terms[0]] = atom.terms[1]
            found.add(f"{MODIFIER} {atom.predicate[2]}")
        elif len(atom.predicate) == _ROLE:
            frames[atom.terms[0]].append((atom.predicate[1], atom.terms[1]))
            if atom.predicate[1] == CLAUSE:
                nested[CLAUSE][atom.terms[0]] = atom.terms[1]
    for verb, arguments in frames.items():
        voice = "was " if tokens[_place(verb) - 1] == "was" else ""
        found.add(voice + " ".join(role for role, _ in arguments))
        for number, (role, term) in enumerate(arguments):
            if term in frames:
                continue
            slot = "subject" if number == 0 else role
            found.add(f"{slot} {nouns.get(term, 'name')}")
            if term in nested[MODIFIER]:
                found.add(f"{slot} modified")
    for what, inner in nested.items():
        found |= {f"{what} {level}" for level in range(1, _depth(inner) + 1)}
    return frozenset(found)


def _nouns(form: LogicalForm) -> dict[Term, str]:
    """By variable of a noun, which article it has."""
    return {
        atom.terms[0]: "the" if atom.definite else "a"
        for atom in form.atoms
        if len(atom.predicate) == 1
    }


def _place(verb: Term) -> int:
    kind, text = verb
    return int(text.removeprefix("x_")) if kind == VARIABLE else 0


def _depth(inner: Mapping[Term, Term]) -> int:
    """How many levels are nested in each other."""
    deepest = 0
    for outermost in inner.keys() - set(inner.values()):
        level, term = 0, outermost
        while term in inner:
            level, term = level + 1, inner[term]
        deepest = max(deepest, level)
    return deepest
