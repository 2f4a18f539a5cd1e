"""cogs_mini's grammar: its words, and clauses as a sentence with its logical form.

The notation is COGS's (:mod:`~lm_eval_ext.benchmarks.cogs.forms` parses it): the number of a
variable is the position of its noun or verb in the sentence; definites come first, then the other
conjuncts in the order of these positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import NamedTuple, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict


class Verb(NamedTuple):
    """A verb: the past form, which is also the participle, and the lemma."""

    past: str
    lemma: str


class Key(BaseModel):
    """The key words, named after their exposure examples."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    subj_common: str
    obj_common: str
    primitive: str
    subj_proper: str
    obj_proper: str
    active: Verb
    passive: Verb


class Words(BaseModel):
    """All words except the grammar's own (a, the, was, by, to, that)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nouns: tuple[str, ...]
    names: tuple[str, ...]
    places: tuple[str, ...]
    prepositions: tuple[str, ...]
    intransitive: tuple[Verb, ...]
    transitive: tuple[Verb, ...]
    dative: tuple[Verb, ...]
    clausal: tuple[Verb, ...]
    key: Key


@cache
def words() -> Words:
    """The embedded words."""
    text = resources.files(__package__).joinpath("words.yaml").read_text(encoding="utf-8")
    return Words.model_validate(yaml.safe_load(text))


def items() -> tuple[str, ...]:
    """The key words, in the order in which lexicons replace them; a verb's forms are two items."""
    key = words().key
    return (
        key.subj_common, key.obj_common, key.primitive, key.subj_proper, key.obj_proper,
        *key.active, *key.passive,
    )  # fmt: skip


@dataclass(frozen=True)
class Name:
    """A proper name."""

    word: str


@dataclass(frozen=True)
class Noun:
    """A noun with its article and, after a preposition, a place."""

    word: str
    definite: bool
    preposition: str = ""
    place: "Noun | None" = None


Phrase: TypeAlias = Name | Noun


@dataclass(frozen=True)
class Clause:
    """A clause.

    Attributes:
        verb: Its verb.
        subject: The phrase before the verb.
        subject_role: ``agent``, or ``theme`` in the passive.
        complements: Role, preposition (such as ``to``, may be empty) and phrase of each.
        passive: Whether ``was`` precedes the verb.
        content: The clause after ``that``.
    """

    verb: Verb
    subject: Phrase
    subject_role: str = "agent"
    complements: tuple[tuple[str, str, Phrase], ...] = ()
    passive: bool = False
    content: "Clause | None" = None


def render(clause: Clause) -> tuple[str, str]:
    """The sentence and the logical form of a clause."""
    writer = _Writer()
    writer.clause(clause)
    sentence = " ".join([*writer.tokens, "."])
    definites = "".join(f"* {atom} ; " for _, atom in sorted(writer.definites))
    atoms = [atom for _, _, atom in sorted(writer.atoms)]
    return sentence[0].upper() + sentence[1:], definites + " AND ".join(atoms)


def primitive(word: str | Verb, *, transitive: bool = False) -> tuple[str, str]:
    """A single noun or verb, and its logical form."""
    if isinstance(word, str):
        return word, f"LAMBDA a . {word} ( a )"
    lemma = word.lemma
    if not transitive:
        return lemma, f"LAMBDA a . LAMBDA e . {lemma} . agent ( e , a )"
    return lemma, (
        f"LAMBDA a . LAMBDA b . LAMBDA e . {lemma} . agent ( e , b ) AND {lemma} . theme ( e , a )"
    )


@dataclass
class _Writer:
    """Collects a sentence and its conjuncts, each with its sort key: position, then order."""

    tokens: list[str] = field(default_factory=list)
    definites: list[tuple[int, str]] = field(default_factory=list)
    atoms: list[tuple[int, int, str]] = field(default_factory=list)

    def _put(self, words: Sequence[str]) -> int:
        """Appends words; returns the position of the last one."""
        self.tokens += words
        return len(self.tokens) - 1

    def _atom(self, place: int, predicate: str, *terms: str) -> None:
        self.atoms.append((place, len(self.atoms), f"{predicate} ( {' , '.join(terms)} )"))

    def phrase(self, phrase: Phrase) -> str:
        """Writes a noun phrase; returns its term."""
        if isinstance(phrase, Name):
            self._put([phrase.word])
            return phrase.word
        place = self._put(["the" if phrase.definite else "a", phrase.word])
        variable = f"x _ {place}"
        if phrase.definite:
            self.definites.append((place, f"{phrase.word} ( {variable} )"))
        else:
            self._atom(place, phrase.word, variable)
        if phrase.place is not None:
            self._put([phrase.preposition])
            where = self.phrase(phrase.place)
            predicate = f"{phrase.word} . nmod . {phrase.preposition}"
            self._atom(place, predicate, variable, where)
        return variable

    def clause(self, clause: Clause) -> str:
        """Writes a clause; returns its verb's variable."""
        arguments = [(clause.subject_role, self.phrase(clause.subject))]
        place = self._put(["was", clause.verb.past] if clause.passive else [clause.verb.past])
        variable = f"x _ {place}"
        for role, marker, phrase in clause.complements:
            self._put([marker] if marker else [])
            arguments.append((role, self.phrase(phrase)))
        if clause.content is not None:
            self._put(["that"])
            arguments.append(("ccomp", self.clause(clause.content)))
        for role, term in arguments:
            self._atom(place, f"{clause.verb.lemma} . {role}", variable, term)
        return variable
