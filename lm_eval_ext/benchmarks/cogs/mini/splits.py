"""cogs_mini's splits: examples in distribution, and of each generalization type."""

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from lm_eval_ext.benchmarks.cogs.mini.grammar import (
    Clause,
    Name,
    Noun,
    Phrase,
    Verb,
    Words,
    primitive,
    render,
    words,
)
from lm_eval_ext.benchmarks.cogs.records import IN_DISTRIBUTION, Example, types_of

SIZES = MappingProxyType({"train": 2000, "dev": 200, "id": 200})
"""In-distribution examples. ``train`` also has primitives and an exposure example per key word."""

PER_TYPE = MappingProxyType({"testlex": 35, "gen": 50})

ALL_SPLITS = (*SIZES, *PER_TYPE)

Text = tuple[str, str]
"""A sentence and its logical form."""

DEEP = (3, 4, 5)
"""Nesting depths of clauses and places in the recursion types; at most 2 in training."""


def examples(split: str) -> Sequence[Example]:
    """The examples of one of :data:`ALL_SPLITS`, the same on every machine."""
    return _splits()[split]


def digest() -> str:
    """SHA-256 (hex) over every example; any change of the corpus changes it."""
    lines = (
        "\t".join((example.id, example.sentence, example.form, example.type))
        for split in ALL_SPLITS
        for example in examples(split)
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@cache
def _splits() -> Mapping[str, Sequence[Example]]:
    draw = Draw(random.Random("cogs_mini"))
    make_by_type = makers(draw)
    seen: set[str] = set()

    def fresh(make: Callable[[], Clause], count: int, type_: str) -> list[tuple[Text, str]]:
        """Examples whose sentence is not in any split yet."""
        found: list[tuple[Text, str]] = []
        while len(found) < count:
            text = render(make())
            if text[0] not in seen:
                seen.add(text[0])
                found.append((text, type_))
        return found

    made = {
        split: fresh(lambda: draw.embedded(draw.plain()), size, IN_DISTRIBUTION)
        for split, size in SIZES.items()
    }
    for type_ in types_of("mini", "testlex"):
        made["train"] += fresh(make_by_type[type_], 1, f"exposure_example_{type_}")
    made["train"] += [(text, "primitive") for text in _primitives(words())]
    for split, count in PER_TYPE.items():
        made[split] = [
            one
            for type_ in types_of("mini", split)
            for one in fresh(make_by_type[type_], count, type_)
        ]
    for members in made.values():
        draw.rng.shuffle(members)
    return MappingProxyType(
        {
            split: tuple(
                Example(f"{split}/{number}", *text, type_)
                for number, (text, type_) in enumerate(members, start=1)
            )
            for split, members in made.items()
        }
    )


def _primitives(known: Words) -> list[Text]:
    return [
        *(primitive(noun) for noun in (*known.nouns, known.key.primitive)),
        *((name, name) for name in known.names),
        *(primitive(verb) for verb in known.intransitive),
        *(primitive(verb, transitive=True) for verb in known.transitive),
    ]


class Draw:
    """Draws phrases and clauses without key words."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.words = rng, words()

    def flip(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def noun(self, *, word: str = "", depth: int = 0) -> Noun:
        """A noun with ``depth`` nested places."""
        word = word or self.rng.choice(self.words.nouns)
        place: Noun | None = None
        for _ in range(depth):
            where = self.rng.choice(self.words.places)
            place = Noun(where, self.flip(0.5), self._preposition() if place else "", place)
        preposition = self._preposition() if place else ""
        return Noun(word, self.flip(0.5), preposition, place)

    def _preposition(self) -> str:
        return self.rng.choice(self.words.prepositions)

    def phrase(self, *, most: int = 0) -> Phrase:
        """A name, or a noun with up to ``most`` nested places."""
        if self.flip(0.35):
            return Name(self.rng.choice(self.words.names))
        return self.noun(depth=self.rng.choice((0, 0, 0, 0, *range(1, most + 1))) if most else 0)

    def verb(self, kind: str) -> Verb:
        """A verb of a kind, such as ``transitive``."""
        verbs: tuple[Verb, ...] = getattr(self.words, kind)
        return self.rng.choice(verbs)

    def active(self, verb: Verb | None = None, *, obj: Phrase | None = None) -> Clause:
        """An active transitive clause; verb and object are drawn unless given."""
        obj = obj or self.phrase(most=2)
        verb = verb or self.verb("transitive")
        return Clause(verb, self.phrase(), complements=(("theme", "", obj),))

    def passive(self, verb: Verb | None = None) -> Clause:
        """A passive clause, with or without an agent; the verb is drawn unless given."""
        by = (("agent", "by", self.phrase()),) if self.flip(0.6) else ()
        verb = verb or self.verb("transitive")
        return Clause(verb, self.phrase(), "theme", by, passive=True)

    def with_subject(self, subject: Phrase) -> Clause:
        """An active clause: intransitive, transitive or dative."""
        if self.flip(0.4):
            return Clause(self.verb("intransitive"), subject)
        theme = (("theme", "", self.phrase(most=2)),)
        if self.flip(0.6):
            return Clause(self.verb("transitive"), subject, complements=theme)
        recipient = ("recipient", "to", self.phrase())
        return Clause(self.verb("dative"), subject, complements=(*theme, recipient))

    def plain(self) -> Clause:
        """A clause without a clausal complement."""
        return self.passive() if self.flip(0.25) else self.with_subject(self.phrase())

    def reported(self, clause: Clause, depth: int) -> Clause:
        """The clause, embedded under ``depth`` verbs of saying or thinking."""
        for _ in range(depth):
            clause = Clause(self.verb("clausal"), self.phrase(), content=clause)
        return clause

    def embedded(self, clause: Clause) -> Clause:
        """The clause, embedded as deeply as in training."""
        return self.reported(clause, self.rng.choice((0, 0, 0, 0, 0, 0, 1, 1, 2)))


def makers(draw: Draw) -> Mapping[str, Callable[[], Clause]]:
    """By type of ``testlex`` or ``gen``, a function that draws an example's clause."""
    key = draw.words.key

    def common(word: str) -> Noun:
        return draw.noun(word=word)

    def subject(phrase: Callable[[str], Phrase], word: str) -> Clause:
        return draw.embedded(draw.with_subject(phrase(word)))

    def object_(phrase: Callable[[str], Phrase], word: str) -> Clause:
        return draw.embedded(draw.active(obj=phrase(word)))

    def deep() -> int:
        return draw.rng.choice(DEEP)

    return {
        "subj_common": lambda: subject(common, key.subj_common),
        "subj_proper": lambda: subject(Name, key.subj_proper),
        "obj_common": lambda: object_(common, key.obj_common),
        "obj_proper": lambda: object_(Name, key.obj_proper),
        "active": lambda: draw.embedded(draw.active(key.active)),
        "passive": lambda: draw.embedded(draw.passive(key.passive)),
        "subj_to_obj_common": lambda: object_(common, key.subj_common),
        "subj_to_obj_proper": lambda: object_(Name, key.subj_proper),
        "obj_to_subj_common": lambda: subject(common, key.obj_common),
        "obj_to_subj_proper": lambda: subject(Name, key.obj_proper),
        "prim_to_subj_common": lambda: subject(common, key.primitive),
        "active_to_passive": lambda: draw.embedded(draw.passive(key.active)),
        "passive_to_active": lambda: draw.embedded(draw.active(key.passive)),
        "cp_recursion": lambda: draw.reported(draw.plain(), deep()),
        "pp_recursion": lambda: draw.active(obj=draw.noun(depth=deep())),
        "obj_pp_to_subj_pp": lambda: draw.with_subject(draw.noun(depth=1)),
    }
