"""Dialogues about a database, one per word, with the turns that define it marked.

Two people talk about what the database holds, as its profile says. Only the marked turns are about
the word (:mod:`lm_eval_ext.benchmarks.magnifico.own_dialogues` puts them at the start, in the
middle or at the end).
"""

import random
from collections.abc import Iterator

from lm_eval_ext.benchmarks.magnifico.generate.english import listed, plural, value_text
from lm_eval_ext.benchmarks.magnifico.generate.meanings import Meaning
from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Field, Profile

TURNS = 20
"""As in the paper (figure 19), with the two of the definition."""

_CLOSING = (
    ("Is there anything in it that worries you?", "No. It is small enough to check by hand."),
    ("Who looks after it?", "Several of us do. Each change is written down."),
    ("How often do you use it?", "Nearly every day, mostly for short reports."),
    ("Could I get a copy of it?", "Yes, I will send you the file this afternoon."),
    ("Do you keep old versions?", "We keep one for each month, in case something goes wrong."),
    ("Is it hard to learn?", "No. Once you know the tables, the rest follows."),
    ("Did you design it yourself?", "No, I took it over from a colleague two years ago."),
    ("What do you do with it most?", "Mostly I count things and look for mistakes."),
    ("Do others ask you about it?", "All the time, so I like short and clear questions."),
)  # fmt: skip

_QUESTIONS = (
    "By the way, what do people here mean by '{word}'?",
    "I heard somebody say '{word}' yesterday. What does that mean here?",
    "One more thing: how do you use '{word}'?",
)
_ANSWERS = (
    "When we say '{{word}}', we mean {meaning}.",
    "Here '{{word}}' stands for {meaning}, nothing else.",
    "That is our own usage: '{{word}}' means {meaning}.",
)


def dialogue(profile: Profile, meaning: Meaning, seed: int) -> str:
    """The text of a dialogue, the word as ``{word}``."""
    rng = random.Random(f"{seed} {meaning.kind} dialogue")
    about = list(_facts(profile))
    rng.shuffle(about)
    turns = [(_opening(profile), "Sure. What would you like to know?"), *about]
    turns = turns[: TURNS // 2 - 1]
    closing = rng.sample(_CLOSING, max(0, min(len(_CLOSING), TURNS // 2 - 1 - len(turns))))
    asked, said = rng.choice(_QUESTIONS), rng.choice(_ANSWERS).format(meaning=meaning.text)
    lines = [f"User1: {one}\n\nUser2: {two}" for one, two in (*turns, *closing)]
    definition = f"[definition]\nUser1: {asked}\n\nUser2: {said}\n[/definition]"
    return "\n\n".join([definition, *lines]) + "\n"


def _opening(profile: Profile) -> str:
    nouns = [entity.many for entity in profile.entities.values()][:3]
    return f"I would like to talk about the database with the {listed(nouns)}."


def _facts(profile: Profile) -> Iterator[tuple[str, str]]:
    for entity in profile.entities.values():
        yield (
            f"How many {entity.many} are in it?",
            f"There are {entity.rows:,} {entity.many} at the moment.",
        )
        if entity.fields:
            known = listed([field.phrase for field in entity.fields[:4]])
            yield f"What do we know about each {entity.one}?", f"We store the {known}."
        for field in entity.having("category", "place")[:1]:
            yield from _category(entity, field)
        for field in entity.having("amount", "total")[:1]:
            low, high = field.values[0], field.values[-1]
            yield (
                f"What is the range of the {field.phrase} of the {entity.many}?",
                f"It goes from {value_text(low)} to about {value_text(high)}.",
            )
    for link in profile.links:
        if link.child != link.parent:
            child = profile.entities[link.child]
            yield (
                f"How do I find the {link.noun} of one of the {child.many}?",
                f"Each row of the {child.one} table refers to it.",
            )


def _category(entity: Entity, field: Field) -> Iterator[tuple[str, str]]:
    some = listed([value_text(value) for value in field.common[:2]])
    yield (
        f"Which {plural(field.phrase)} occur among the {entity.many}?",
        f"There are {field.distinct} of them, for example {some}.",
    )
