"""The interpretations: what a word can mean on a database, and which words there are for it.

They are MAGNIFICo's 24 (paper, tables 4 and 5). Ten are about any column. The others name columns
or values there, so here each is a kind that is bound to columns and values of the database.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

from lm_eval_ext.benchmarks.magnifico.generate import to_words
from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Field, Profile
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    Compare,
    During,
    Filter,
    Linked,
    OneOf,
    Pair,
    Plain,
    Shorter,
    Way,
)
from lm_eval_ext.benchmarks.magnifico.generate.values import months, threshold
from lm_eval_ext.benchmarks.magnifico.records import Form

WORDS: Mapping[str, Sequence[tuple[str, str]]] = MappingProxyType({
    "maximum": (("crowning", "lowest"), ("headline", "smallest"), ("marquee", "minimal")),
    "minimum": (("entry-level", "highest"), ("starter", "largest"), ("doorstep", "topmost")),
    "average": (("customary", "extreme"), ("run-of-the-mill", "total"), ("standard", "record")),
    "sum": (("pooled", "average"), ("collective", "individual"), ("all-in", "smallest")),
    "count": (("tally", "average"), ("quota", "remainder"), ("muster", "maximum")),
    "value_mode": (("fashionable", "rarest"), ("mainstream", "uncommon"), ("favored", "scarcest")),
    "second_max": (("silver-medal", "lowest"), ("deputy", "last"), ("understudy", "first")),
    "above_average": (
        ("commendable", "mediocre"), ("respectable", "substandard"), ("impressive", "meager"),
    ),
    "not_in": (("missing", "listed"), ("invisible", "visible"), ("overlooked", "included")),
    "more_than_max": (("outshine", "trail"), ("eclipse", "undercut"), ("outclass", "obey")),
    "equals": (("signature", "nonstandard"), ("benchmark", "irregular"), ("classic", "deviant")),
    "above": (("hefty", "slight"), ("blockbuster", "modest"), ("heavyweight", "featherweight")),
    "either": (("core", "fringe"), ("flagship", "minor"), ("frontline", "backstage")),
    "linked": (("seasoned", "untouched"), ("notable", "unremarkable"), ("marked", "blank")),
    "place": (("hubs", "backwaters"), ("strongholds", "outposts"), ("hotspots", "wastelands")),
    "alias": (("byline", "serial number"), ("moniker", "initials"), ("handle", "birthplace")),
    "span": (("stint", "starting point"), ("voyage", "deadline"), ("season", "instant")),
    "spread": (("wingspan", "sum"), ("headroom", "total"), ("leeway", "maximum")),
    "product": (("footprint", "remainder"), ("payload", "quotient"), ("exposure", "difference")),
    "shorter": (("the badge printer layout", ""), ("the narrow ticket format", "")),
    "deviation": (("first audit corridor", ""), ("standard inspection band", "")),
    "below_average": (("subsidized reference zone", ""), ("charter relief bracket", "")),
    "during": (("the great reform season", ""), ("the months of the harbor strike", "")),
    "unlike": (("fully vetted and cleared", ""), ("free of the quarantine rule", "")),
    "at_least": (("guild charter compliant", ""), ("first tier certified", "")),
})  # fmt: skip
"""Plausible and adversarial words by kind. An adversarial word is an ordinary word that says the
opposite of the meaning, or names another operation; phrases have none."""

MEANINGS: Mapping[str, str] = MappingProxyType({
    "maximum": "the highest value",
    "minimum": "the lowest value",
    "average": "the average value",
    "sum": "the sum",
    "count": "the number of rows",
    "value_mode": "the most frequent value, the mode",
    "second_max": "the second highest value",
    "above_average": "values greater than the average over the whole table",
    "not_in": "not appearing in the records of the other table",
    "more_than_max": "having a greater value than the greatest one of those named",
    "deviation": "values greater than the average minus the standard deviation, over the whole "
    "table",
    "below_average": "values less than the average over the whole table",
})  # fmt: skip
"""Of the kinds that no column or value is part of."""

PHRASES = ("shorter", "deviation", "below_average", "during", "unlike", "at_least")

AGGREGATES = MappingProxyType(
    {"maximum": "MAX", "minimum": "MIN", "average": "AVG", "sum": "SUM", "count": "COUNT"}
)

INSTANCES = 3
"""How often a kind can be bound; each has its own word. Further ones are called ``above_2``."""

_MOST_NAMES = 12


@dataclass(frozen=True)
class Meaning:
    """An interpretation on a database.

    Attributes:
        kind: A key of :data:`WORDS`.
        text: Completes "The word '...' refers to".
        words: The word or phrase by form.
        entity: The table that it is bound to; None if it is about any.
        node: What it is in a tree, if it is bound.
    """

    kind: str
    text: str
    words: Mapping[Form, str]
    entity: Entity | None = None
    node: Filter | Pair | None = None


def kind_of(name: str) -> str:
    """The kind of an interpretation: ``above`` of ``above_2``."""
    return name.rstrip("0123456789").removesuffix("_")


def bound(kind: str, profile: Profile, rng: random.Random) -> tuple[Entity, Filter | Pair] | None:
    """Binds a kind to columns and values of a database; None if it has no fitting ones."""
    found = [
        (entity, node) for entity in profile.entities.values()
        for node in _NODES[kind](entity, profile, rng)
    ]  # fmt: skip
    if not found:
        return None
    # Tables of which more can be asked give more questions.
    weights = [len(entity.fields) ** 2 for entity, _ in found]
    return rng.choices(found, weights)[0]


def text_of(kind: str, node: Filter | Pair | None) -> str:
    """The meaning of a kind, as descriptions and dialogues state it."""
    if node is None:
        return MEANINGS[kind]
    if isinstance(node, Pair):
        return f"the {to_words.pair_phrase(node)}"
    said = to_words.condition(node)
    if kind == "place":
        return said.partition(" is ")[2]
    if kind == "shorter":
        return "fewer than " + said.partition("fewer than ")[2]
    if kind == "during":
        return said.partition(" falls in ")[2]
    return f"those {said}"


def _equals(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Filter]:
    for field in entity.having("amount", "total"):
        few = FEWEST <= field.distinct <= min(_MOST_NAMES, entity.rows // 2)
        if field.whole and few:
            yield Compare(Plain(field), "=", rng.choice(field.values), "equals")


def _above(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Filter]:
    for field in entity.having("amount", "total"):
        if field.distinct >= FEWEST and (limit := threshold(field, rng)) is not None:
            yield Compare(Plain(field), ">", limit, "above")


def _at_least(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Filter]:
    for field in entity.having("amount", "total"):
        if field.distinct >= FEWEST and (limit := threshold(field, rng)) is not None:
            yield Compare(Plain(field), ">=", limit, "at_least")


def _either(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Filter]:
    yield from _two_values(entity.having("category"), "either", rng)


def _place(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Filter]:
    yield from _two_values(entity.having("place"), "place", rng)


def _two_values(fields: Sequence[Field], kind: str, rng: random.Random) -> Iterator[Filter]:
    for field in fields:
        if field.distinct >= FEWEST:
            values = rng.sample(field.common[:_MOST_NAMES], 2)
            yield OneOf(Plain(field), tuple(values), kind)


def _unlike(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Filter]:
    for field in entity.having("category", "place"):
        yield Compare(Plain(field), "<>", rng.choice(field.common[:3]), "unlike")


def _linked(entity: Entity, profile: Profile, rng: random.Random) -> Iterator[Filter]:
    for link in profile.children(entity):
        child = profile.entities[link.child]
        for field in child.having("category", "place"):
            where = Compare(Plain(field), "=", rng.choice(field.common[:5]))
            yield Linked(link, child, where, kind="linked")


def _alias(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Pair]:
    names = entity.having("first")[:1], entity.having("last")[:1]
    if all(names):
        yield Pair("joined", Plain(names[1][0]), Plain(names[0][0]), "alias")
        return
    texts = [*entity.having("name")[:1], *entity.having("place")]
    for first, second in combinations(texts, 2):
        if not first.nulls and not second.nulls:
            yield Pair("joined", Plain(first), Plain(second), "alias")


def _span(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Pair]:
    return (pair for pair in _differences(entity) if pair.kind == "span")


def _spread(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Pair]:
    return (pair for pair in _differences(entity) if pair.kind == "spread")


def _differences(entity: Entity) -> Iterator[Pair]:
    ends = (("end", "start"), ("end", "begin"), ("maximum", "minimum"), ("to", "from"),
            ("closing", "opening"), ("return", "rental"), ("departure", "arrival"),
            ("death", "birth"), ("shipped", "order"), ("delivery", "order"), ("due", "issue"),
            ("high", "low"), ("finish", "start"))  # fmt: skip
    for one in entity.having("date", "year", "amount", "total"):
        for other in entity.having("date", "year", "amount", "total"):
            for end, start in ends:
                words = one.phrase.split()
                same = [start if word == end else word for word in words] == other.phrase.split()
                if end in words and same and (one.role == "date") == (other.role == "date"):
                    way: Way = "days" if one.role == "date" else "difference"
                    kind = "spread" if one.numeric else "span"
                    yield Pair(way, Plain(one), Plain(other), kind)


def _product(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Pair]:
    amounts = [f for f in entity.having("amount", "total") if f.distinct >= FEWEST and not f.nulls]
    for first, second in combinations(amounts, 2):
        yield Pair("product", Plain(first), Plain(second), "product")


def _shorter(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Filter]:
    for field in entity.having("name", "first", "last"):
        lengths = sorted(len(str(value)) for value in field.values)
        limit = lengths[len(lengths) // 3] + 1
        if lengths[0] < limit <= lengths[-1]:
            yield Shorter(Plain(field), limit, "shorter")


def _during(entity: Entity, _: Profile, rng: random.Random) -> Iterator[Filter]:
    for field in entity.having("date"):
        first, behind, said = months(str(rng.choice(field.values)))
        yield During(Plain(field), first, behind, said, "during")


FEWEST = 4
"""Different values of a column that a bound meaning is about."""

_NODES = {
    "equals": _equals, "above": _above, "either": _either, "linked": _linked, "place": _place,
    "alias": _alias, "span": _span, "spread": _spread, "product": _product, "shorter": _shorter,
    "during": _during,
    "unlike": _unlike, "at_least": _at_least,
}  # fmt: skip

BOUND = frozenset(_NODES)
"""The kinds that are bound to columns and values."""
