"""Drawing clauses of cogs_mini: what is in distribution, and what each type tests."""

import random
from collections.abc import Callable, Mapping

from lm_eval_ext.benchmarks.cogs.mini.grammar import Clause, Name, Noun, Phrase, Verb
from lm_eval_ext.benchmarks.cogs.mini.words import VerbForms, words

DEEP = (3, 4, 5)
"""How deep clauses or places are nested in the recursion types; in training at most 2."""


class Draw:
    """Draws phrases and clauses of ordinary words.

    Args:
        rng: The source of randomness.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.words = rng, words()

    def flip(self, probability: float) -> bool:
        """True as often as the probability says."""
        return self.rng.random() < probability

    def noun(self, *, word: str = "", depth: int = 0) -> Noun:
        """A noun, with as many places nested in each other behind it as ``depth`` says."""
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
        """A name, or a noun with places up to a depth."""
        if self.flip(0.35):
            return Name(self.rng.choice(self.words.names))
        return self.noun(depth=self.rng.choice((0, 0, 0, 0, *range(1, most + 1))) if most else 0)

    def verb(self, kind: str) -> Verb:
        """A verb of a kind, such as ``transitive``."""
        return Verb(*self.rng.choice(getattr(self.words, kind)))

    def active(self, verb: Verb | None = None, *, obj: Phrase | None = None) -> Clause:
        """Somebody does something to something; what is not given is drawn."""
        obj = obj or self.phrase(most=2)
        verb = verb or self.verb("transitive")
        return Clause(verb, self.phrase(), complements=(("theme", "", obj),))

    def passive(self, verb: Verb | None = None) -> Clause:
        """Something has something done to it, by somebody or not."""
        by = (("agent", "by", self.phrase()),) if self.flip(0.6) else ()
        verb = verb or self.verb("transitive")
        return Clause(verb, self.phrase(), "theme", by, passive=True)

    def with_subject(self, subject: Phrase) -> Clause:
        """An active clause about a subject: alone, with an object, with a recipient as well."""
        if self.flip(0.4):
            return Clause(self.verb("intransitive"), subject)
        theme = (("theme", "", self.phrase(most=2)),)
        if self.flip(0.6):
            return Clause(self.verb("transitive"), subject, complements=theme)
        recipient = ("recipient", "to", self.phrase())
        return Clause(self.verb("dative"), subject, complements=(*theme, recipient))

    def plain(self) -> Clause:
        """Any clause without another one in it."""
        return self.passive() if self.flip(0.25) else self.with_subject(self.phrase())

    def reported(self, clause: Clause, depth: int) -> Clause:
        """The clause, said or thought by as many people as ``depth`` says."""
        for _ in range(depth):
            clause = Clause(self.verb("clausal"), self.phrase(), content=clause)
        return clause

    def embedded(self, clause: Clause) -> Clause:
        """The clause, as deep as it may be in training."""
        return self.reported(clause, self.rng.choice((0, 0, 0, 0, 0, 0, 1, 1, 2)))


def makers(draw: Draw) -> Mapping[str, Callable[[], Clause]]:
    """What an example of a type of ``testlex`` or ``gen`` is."""
    key = draw.words.key

    def subject(phrase: Callable[[], Phrase]) -> Callable[[], Clause]:
        return lambda: draw.embedded(draw.with_subject(phrase()))

    def object_(phrase: Callable[[], Phrase]) -> Callable[[], Clause]:
        return lambda: draw.embedded(draw.active(obj=phrase()))

    def active(verb: VerbForms) -> Callable[[], Clause]:
        return lambda: draw.embedded(draw.active(Verb(*verb)))

    def passive(verb: VerbForms) -> Callable[[], Clause]:
        return lambda: draw.embedded(draw.passive(Verb(*verb)))

    def common(word: str) -> Callable[[], Noun]:
        return lambda: draw.noun(word=word)

    def proper(word: str) -> Callable[[], Name]:
        return lambda: Name(word)

    def deep() -> int:
        return draw.rng.choice(DEEP)

    return {
        "subj_common": subject(common(key.subj_common)),
        "subj_proper": subject(proper(key.subj_proper)),
        "obj_common": object_(common(key.obj_common)),
        "obj_proper": object_(proper(key.obj_proper)),
        "active": active(key.active),
        "passive": passive(key.passive),
        "subj_to_obj_common": object_(common(key.subj_common)),
        "subj_to_obj_proper": object_(proper(key.subj_proper)),
        "obj_to_subj_common": subject(common(key.obj_common)),
        "obj_to_subj_proper": subject(proper(key.obj_proper)),
        "prim_to_subj_common": subject(common(key.primitive)),
        "active_to_passive": passive(key.active),
        "passive_to_active": active(key.passive),
        "cp_recursion": lambda: draw.reported(draw.plain(), deep()),
        "pp_recursion": lambda: draw.active(obj=draw.noun(depth=deep())),
        "obj_pp_to_subj_pp": lambda: draw.with_subject(draw.noun(depth=1)),
    }
