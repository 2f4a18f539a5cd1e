"""cogs_mini: a small dataset of our own in COGS's design, generated from a fixed seed.

It has exposure examples, in-distribution tests and generalization types like COGS (paper, section
2), with another grammar and other words. It is for tests and demonstrations, and too small to
measure a real model.

The notation is COGS's (:mod:`lm_eval_ext.logical_forms` parses it): the number of a variable is
the position of its noun or verb in the sentence; definites come first, then the other conjuncts
in the order of these positions.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from lm_eval_ext.benchmarks.cogs.records import Example
from lm_eval_ext.reading import embedded

SIZES = {"train": 2000, "dev": 200, "id": 200}
"""In-distribution examples. ``train`` also has primitives and an exposure example per key word."""

PER_TYPE = {"testlex": 35, "gen": 50}

ALL_SPLITS = (*SIZES, *PER_TYPE)

DEEP = (3, 4, 5)
"""Nesting depths of clauses and places in the recursion types; at most 2 in training."""


def words() -> Any:
    """The embedded words."""
    return embedded(__file__, "mini.yaml")


def items() -> tuple[str, ...]:
    """The key words, in the order in which lexicons replace them; a verb's forms are two items."""
    return tuple(words()["key"])


def examples(split: str) -> Sequence[Example]:
    """The examples of one of :data:`ALL_SPLITS`, the same on every machine."""
    return _splits()[split]


Text = tuple[str, str]
"""A sentence and its logical form."""


@cache
def _splits() -> Mapping[str, Sequence[Example]]:
    draw = Draw(random.Random("cogs_mini"))
    seen: set[str] = set()

    def new(count: int, types: Iterable[str], prefix: str = "") -> list[tuple[str, str, str]]:
        """So many examples of each type whose sentences are not in any split yet."""
        found = []
        for type_ in types:
            for _ in range(count):
                while (text := render(draw.clause(type_)))[0] in seen:
                    pass
                seen.add(text[0])
                found.append((*text, prefix + type_))
        return found

    made = {split: new(size, ["in_distribution"]) for split, size in SIZES.items()}
    made["train"] += new(1, words()["testlex"], "exposure_example_")
    made["train"] += [(*text, "primitive") for text in _primitives()]
    made |= {split: new(count, words()[split]) for split, count in PER_TYPE.items()}
    for members in made.values():
        draw.rng.shuffle(members)
    return {
        split: [Example(f"{split}/{number}", *one) for number, one in enumerate(members, start=1)]
        for split, members in made.items()
    }


def _primitives() -> list[Text]:
    """Single words, and their logical forms."""
    bound = "LAMBDA a . LAMBDA b . LAMBDA e ."
    agent, theme = "{0} . agent ( e , b )", "{0} . theme ( e , a )"
    known = words()
    return [
        *((noun, f"LAMBDA a . {noun} ( a )") for noun in (*known["nouns"], known["primitive"])),
        *((name, name) for name in known["names"]),
        *(
            (lemma, f"LAMBDA a . LAMBDA e . {lemma} . agent ( e , a )")
            for _, lemma in known["intransitive"]
        ),
        *(
            (lemma, f"{bound} {agent} AND {theme}".format(lemma))
            for _, lemma in known["transitive"]
        ),
    ]


class Noun(NamedTuple):
    """A noun with its article and, after a preposition, a place; or a name, without article."""

    word: str
    article: str = ""
    preposition: str = ""
    place: "Noun | None" = None


class Clause(NamedTuple):
    """A clause.

    Attributes:
        verb: Past (or participle) and lemma.
        subject: The phrase before the verb: the agent, or in the passive the theme.
        complements: Role, marker (such as ``to``, may be empty) and phrase or clause of each.
        passive: Whether ``was`` precedes the verb.
    """

    verb: Sequence[str]
    subject: Noun
    complements: "tuple[tuple[str, str, Noun | Clause], ...]" = ()
    passive: bool = False


class Draw:
    """Draws phrases and clauses."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def flip(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def clause(self, type_: str) -> Clause:
        """A clause of a type, with its key word; without any, if it is ``in_distribution``."""
        place, key = {**words()["testlex"], **words()["gen"]}.get(type_, ("", ""))
        if place == "clauses":
            return self._reported(self._plain(), self.rng.choice(DEEP))
        if place == "places":
            return self._active(obj=self._noun(depth=self.rng.choice(DEEP)))
        if place == "place":
            return self._with_subject(self._noun(depth=1))
        if place in ("active", "passive"):
            clause = self._active(key) if place == "active" else self._passive(key)
        elif place:
            phrase = Noun(key) if key.istitle() else self._noun(key)
            clause = self._with_subject(phrase) if place == "subject" else self._active(obj=phrase)
        else:
            clause = self._plain()
        # As deeply as in training.
        return self._reported(clause, self.rng.choice((0, 0, 0, 0, 0, 0, 1, 1, 2)))

    def _any(self, kind: str) -> Any:
        return self.rng.choice(words()[kind])

    def _article(self) -> str:
        return "the" if self.flip(0.5) else "a"

    def _noun(self, word: str = "", *, depth: int = 0) -> Noun:
        """A noun with ``depth`` nested places."""
        word = word or self._any("nouns")
        place: Noun | None = None
        for _ in range(depth):
            where, article = self._any("places"), self._article()
            place = Noun(where, article, self._any("prepositions") if place else "", place)
        preposition = self._any("prepositions") if place else ""
        return Noun(word, self._article(), preposition, place)

    def _phrase(self, *, most: int = 0) -> Noun:
        """A name, or a noun with up to ``most`` nested places."""
        if self.flip(0.35):
            return Noun(self._any("names"))
        return self._noun(depth=self.rng.choice((0, 0, 0, 0, *range(1, most + 1))) if most else 0)

    def _active(self, verb: Sequence[str] = (), *, obj: Noun | None = None) -> Clause:
        theme = ("theme", "", obj or self._phrase(most=2))
        return Clause(verb or self._any("transitive"), self._phrase(), (theme,))

    def _passive(self, verb: Sequence[str] = ()) -> Clause:
        by = (("agent", "by", self._phrase()),) if self.flip(0.6) else ()
        return Clause(verb or self._any("transitive"), self._phrase(), by, passive=True)

    def _with_subject(self, subject: Noun) -> Clause:
        """An active clause: intransitive, transitive or dative."""
        if self.flip(0.4):
            return Clause(self._any("intransitive"), subject)
        theme = ("theme", "", self._phrase(most=2))
        if self.flip(0.6):
            return Clause(self._any("transitive"), subject, (theme,))
        recipient = ("recipient", "to", self._phrase())
        return Clause(self._any("dative"), subject, (theme, recipient))

    def _plain(self) -> Clause:
        """A clause without a clausal complement."""
        return self._passive() if self.flip(0.25) else self._with_subject(self._phrase())

    def _reported(self, clause: Clause, depth: int) -> Clause:
        """The clause, embedded under ``depth`` verbs of saying or thinking."""
        for _ in range(depth):
            clause = Clause(self._any("clausal"), self._phrase(), (("ccomp", "that", clause),))
        return clause


def render(clause: Clause) -> Text:
    """The sentence and the logical form of a clause."""
    tokens: list[str] = []
    definites: list[tuple[int, str]] = []
    atoms: list[tuple[int, str]] = []

    def put(*added: str) -> int:
        """Appends words; returns the position of the last one."""
        tokens.extend(filter(None, added))
        return len(tokens) - 1

    def phrase(noun: Noun) -> str:
        """Writes a noun phrase; returns its term."""
        place = put(noun.article, noun.word)
        if not noun.article:
            return noun.word
        variable = f"x _ {place}"
        (definites if noun.article == "the" else atoms).append(
            (place, f"{noun.word} ( {variable} )")
        )
        if noun.place:
            put(noun.preposition)
            relation = f"{noun.word} . nmod . {noun.preposition}"
            atoms.append((place, f"{relation} ( {variable} , {phrase(noun.place)} )"))
        return variable

    def write(one: Clause) -> str:
        """Writes a clause; returns its verb's variable."""
        terms = [("theme" if one.passive else "agent", phrase(one.subject))]
        place = put("was" if one.passive else "", one.verb[0])
        for role, marker, other in one.complements:
            put(marker)
            terms.append((role, write(other) if isinstance(other, Clause) else phrase(other)))
        for role, term in terms:
            atoms.append((place, f"{one.verb[1]} . {role} ( x _ {place} , {term} )"))
        return f"x _ {place}"

    write(clause)
    sentence = " ".join([*tokens, "."])
    starred = "".join(f"* {atom} ; " for _, atom in sorted(definites))
    # Stable: conjuncts of one position keep their order.
    ordered = sorted(atoms, key=lambda one: one[0])
    return sentence[0].upper() + sentence[1:], starred + " AND ".join(atom for _, atom in ordered)
