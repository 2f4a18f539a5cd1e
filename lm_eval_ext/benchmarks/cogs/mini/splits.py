"""The examples of cogs_mini, in splits."""

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from lm_eval_ext.benchmarks.cogs.mini.drawing import Draw, makers
from lm_eval_ext.benchmarks.cogs.mini.grammar import Clause, Verb, primitive, render
from lm_eval_ext.benchmarks.cogs.mini.words import Words, words
from lm_eval_ext.benchmarks.cogs.records import IN_DISTRIBUTION, Example, types_of

SIZES = MappingProxyType({"train": 2000, "dev": 200, "id": 200})
"""Examples in distribution; ``train`` also has primitives and one exposure example per key word."""

PER_TYPE = MappingProxyType({"testlex": 35, "gen": 50})

ALL_SPLITS = (*SIZES, *PER_TYPE)

Text = tuple[str, str]
"""A sentence and its logical form."""


def examples(split: str) -> list[Example]:
    """The examples of one of :data:`ALL_SPLITS`, the same everywhere."""
    return list(_splits()[split])


def digest() -> str:
    """SHA-256 (hex) over every example: names this version of the corpus."""
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
        """Different examples that occur nowhere else."""
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
        *(primitive(Verb(*verb)) for verb in known.intransitive),
        *(primitive(Verb(*verb), transitive=True) for verb in known.transitive),
    ]
