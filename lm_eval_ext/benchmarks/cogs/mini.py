"""cogs_mini: a small dataset of our own in COGS's design, generated from a fixed seed.

It has exposure examples, in-distribution tests and generalization types like COGS (paper, section
2), with another grammar and other words. It is for tests and demonstrations, and too small to
measure a real model.

The notation is COGS's (:mod:`lm_eval_ext.logical_forms` parses it): the number of a variable is
the position of its noun or verb in the sentence; definites come first, then the other conjuncts
in the order of these positions.
"""

import random
from collections.abc import Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from lm_eval_ext.benchmarks.cogs.records import Example
from lm_eval_ext.reading import embedded

SIZES = {"train": 2000, "dev": 200, "id": 200}
"""In-distribution examples. ``train`` also has primitives and an exposure example per key word."""

PER_TYPE = {"testlex": 35, "gen": 50}

ALL_SPLITS = (*SIZES, *PER_TYPE)

DEEP = (3, 4, 5)
"""Nesting depths of clauses and locations in the recursion types; at most 2 in training."""


def words() -> Any:
    """Return the embedded words."""
    return embedded(__file__, "mini.yaml")


def items() -> tuple[str, ...]:
    """Return the key words, in the order in which lexicons replace them.

    A verb's forms are two items.
    """
    return tuple(words()["key"])


def examples(split: str) -> Sequence[Example]:
    """Return the examples of one of :data:`ALL_SPLITS`, the same on every machine."""
    return _splits()[split]


Text = tuple[str, str]
"""A sentence and its logical form."""

_Row = tuple[str, str, str]
"""A sentence, its logical form and its type."""


@cache
def _splits() -> Mapping[str, Sequence[Example]]:
    sampler = _Sampler()
    rows: dict[str, list[_Row]] = {}
    for split, size in SIZES.items():
        rows[split] = sampler.rows("in_distribution", size)
    for type_ in words()["testlex"]:
        for sentence, form, _ in sampler.rows(type_, 1):
            rows["train"].append((sentence, form, f"exposure_example_{type_}"))
    for sentence, form in _primitives():
        rows["train"].append((sentence, form, "primitive"))
    for split, size in PER_TYPE.items():
        rows[split] = []
        for type_ in words()[split]:
            rows[split] += sampler.rows(type_, size)
    examples: dict[str, list[Example]] = {}
    for split, rows_of_split in rows.items():
        sampler.draw.rng.shuffle(rows_of_split)
        examples[split] = []
        for number, (sentence, form, type_) in enumerate(rows_of_split, start=1):
            examples[split].append(Example(f"{split}/{number}", sentence, form, type_))
    return examples


class _Sampler:
    """Draws examples whose sentences are in no split yet."""

    def __init__(self) -> None:
        self.draw = Draw(random.Random("cogs_mini"))
        self._sentences: set[str] = set()

    def rows(self, type_: str, count: int) -> list[_Row]:
        """Return so many new examples of a type."""
        rows: list[_Row] = []
        while len(rows) < count:
            sentence, form = render(self.draw.clause(type_))
            if sentence not in self._sentences:
                self._sentences.add(sentence)
                rows.append((sentence, form, type_))
        return rows


def _primitives() -> list[Text]:
    """Return single words, and their logical forms."""
    texts: list[Text] = []
    for noun in (*words()["nouns"], words()["primitive"]):
        texts.append((noun, f"LAMBDA a . {noun} ( a )"))
    for name in words()["names"]:
        texts.append((name, name))
    for _, lemma in words()["intransitive"]:
        texts.append((lemma, f"LAMBDA a . LAMBDA e . {lemma} . agent ( e , a )"))
    for _, lemma in words()["transitive"]:
        atoms = f"{lemma} . agent ( e , b ) AND {lemma} . theme ( e , a )"
        texts.append((lemma, f"LAMBDA a . LAMBDA b . LAMBDA e . {atoms}"))
    return texts


class Noun(NamedTuple):
    """A noun with its article and, after a preposition, a location; or a name, without article."""

    word: str
    article: str = ""
    preposition: str = ""
    location: "Noun | None" = None


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
    complements: "tuple[Complement, ...]" = ()
    passive: bool = False


Complement = tuple[str, str, Noun | Clause]
"""Role, marker and phrase or clause."""


class Draw:
    """Draws phrases and clauses."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def flip(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.rng.random() < probability

    def clause(self, type_: str) -> Clause:
        """Return a clause of a type, with its key word; ``in_distribution`` has none."""
        position, key_word = {**words()["testlex"], **words()["gen"]}.get(type_, ("", ""))
        if position == "clauses":
            return self._reported(self._plain(), self.rng.choice(DEEP))
        if position == "places":
            return self._active(theme=self._noun(depth=self.rng.choice(DEEP)))
        if position == "place":
            return self._with_subject(self._noun(depth=1))
        if position == "active":
            clause = self._active(key_word)
        elif position == "passive":
            clause = self._passive(key_word)
        elif position == "subject":
            clause = self._with_subject(self._name_or_noun(key_word))
        elif position == "object":
            clause = self._active(theme=self._name_or_noun(key_word))
        else:
            clause = self._plain()
        depth = self.rng.choice((0, 0, 0, 0, 0, 0, 1, 1, 2))  # as in training
        return self._reported(clause, depth)

    def _any(self, kind: str) -> Any:
        return self.rng.choice(words()[kind])

    def _article(self) -> str:
        return "the" if self.flip(0.5) else "a"

    def _name_or_noun(self, word: str) -> Noun:
        if word.istitle():
            return Noun(word)
        return self._noun(word)

    def _noun(self, word: str = "", *, depth: int = 0) -> Noun:
        """Return a noun with ``depth`` nested locations."""
        word = word or self._any("nouns")
        location: Noun | None = None
        for _ in range(depth):
            place = self._any("places")
            article = self._article()
            location = Noun(place, article, self._preposition(location), location)
        # Drawn before the article: the digest of the dataset depends on the order.
        preposition = self._preposition(location)
        return Noun(word, self._article(), preposition, location)

    def _preposition(self, location: Noun | None) -> str:
        if location is None:
            return ""
        return str(self._any("prepositions"))

    def _phrase(self, *, max_depth: int = 0) -> Noun:
        """Return a name, or a noun with up to ``max_depth`` nested locations."""
        if self.flip(0.35):
            return Noun(self._any("names"))
        depth = 0
        if max_depth:
            depth = self.rng.choice((0, 0, 0, 0, *range(1, max_depth + 1)))
        return self._noun(depth=depth)

    def _active(self, verb: Sequence[str] = (), *, theme: Noun | None = None) -> Clause:
        theme = theme or self._phrase(max_depth=2)
        verb = verb or self._any("transitive")
        return Clause(verb, self._phrase(), (("theme", "", theme),))

    def _passive(self, verb: Sequence[str] = ()) -> Clause:
        complements: tuple[Complement, ...] = ()
        if self.flip(0.6):
            complements = (("agent", "by", self._phrase()),)
        verb = verb or self._any("transitive")
        return Clause(verb, self._phrase(), complements, passive=True)

    def _with_subject(self, subject: Noun) -> Clause:
        """Return an active clause: intransitive, transitive or dative."""
        if self.flip(0.4):
            return Clause(self._any("intransitive"), subject)
        theme: Complement = ("theme", "", self._phrase(max_depth=2))
        if self.flip(0.6):
            return Clause(self._any("transitive"), subject, (theme,))
        recipient: Complement = ("recipient", "to", self._phrase())
        return Clause(self._any("dative"), subject, (theme, recipient))

    def _plain(self) -> Clause:
        """Return a clause without a clausal complement."""
        if self.flip(0.25):
            return self._passive()
        return self._with_subject(self._phrase())

    def _reported(self, clause: Clause, depth: int) -> Clause:
        """Return the clause, embedded under ``depth`` verbs of saying or thinking."""
        for _ in range(depth):
            verb = self._any("clausal")
            clause = Clause(verb, self._phrase(), (("ccomp", "that", clause),))
        return clause


def render(clause: Clause) -> Text:
    """Return the sentence and the logical form of a clause."""
    writer = _Writer()
    writer.write_clause(clause)
    return writer.sentence(), writer.form()


class _Writer:
    """Writes the words of a sentence, and collects the conjuncts of its logical form.

    Attributes:
        tokens: The words so far.
        definites: The conjuncts of nouns with "the", each after the position of its noun.
        atoms: All other conjuncts, each after the position of its noun or verb.
    """

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.definites: list[tuple[int, str]] = []
        self.atoms: list[tuple[int, str]] = []

    def sentence(self) -> str:
        """Return the sentence."""
        text = " ".join([*self.tokens, "."])
        return text[0].upper() + text[1:]

    def form(self) -> str:
        """Return the logical form."""
        starred = [f"* {atom} ; " for _, atom in sorted(self.definites)]
        # Stable: conjuncts of one position keep their order.
        by_position = sorted(self.atoms, key=itemgetter(0))
        return "".join(starred) + " AND ".join(atom for _, atom in by_position)

    def write_clause(self, clause: Clause) -> str:
        """Write a clause; return its verb's variable."""
        past, lemma = clause.verb
        subject_role = "theme" if clause.passive else "agent"
        terms = [(subject_role, self._write_phrase(clause.subject))]
        if clause.passive:
            self._write("was")
        position = self._write(past)
        for role, marker, complement in clause.complements:
            if marker:
                self._write(marker)
            if isinstance(complement, Clause):
                terms.append((role, self.write_clause(complement)))
            else:
                terms.append((role, self._write_phrase(complement)))
        for role, term in terms:
            self.atoms.append((position, f"{lemma} . {role} ( x _ {position} , {term} )"))
        return f"x _ {position}"

    def _write_phrase(self, noun: Noun) -> str:
        """Write a noun phrase; return its term."""
        if not noun.article:
            self._write(noun.word)
            return noun.word
        self._write(noun.article)
        position = self._write(noun.word)
        variable = f"x _ {position}"
        conjuncts = self.definites if noun.article == "the" else self.atoms
        conjuncts.append((position, f"{noun.word} ( {variable} )"))
        if noun.location:
            self._write(noun.preposition)
            location = self._write_phrase(noun.location)
            relation = f"{noun.word} . nmod . {noun.preposition}"
            self.atoms.append((position, f"{relation} ( {variable} , {location} )"))
        return variable

    def _write(self, word: str) -> int:
        """Append a word; return its position."""
        self.tokens.append(word)
        return len(self.tokens) - 1
