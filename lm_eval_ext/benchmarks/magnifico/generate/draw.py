"""What words can mean on a database, and questions drawn about that.

The interpretations are MAGNIFICo's 24 (paper, tables 4 and 5). Ten are about any column. The others
name columns or values there, so here each is bound once to columns and values of the database.

What cannot be said well is not drawn: the average of a year, the highest minimum.
"""

import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any, TypeAlias, TypeVar

from lm_eval_ext.benchmarks.magnifico.generate.english import known
from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Field, Profile, Role
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    COUNT,
    FUNCTIONS,
    Aggregate,
    Clause,
    Pair,
    Plain,
    Question,
    Term,
    Top,
)
from lm_eval_ext.benchmarks.magnifico.records import Form
from lm_eval_ext.lexicon.words import WORDLIKE, draw_words, is_english
from lm_eval_ext.sql.values import Value

Node: TypeAlias = Clause | Pair | Aggregate | Top
_Item = TypeVar("_Item")

_FEWEST, _MOST_NAMES, _MOST_GROUPS, _MOST_TEXT = 4, 12, 30, 32
_FIXED: tuple[Role, ...] = ("category", "place")
_NUMBERS: tuple[Role, ...] = ("amount", "total")
_EXTREMES = frozenset({"maximum", "minimum", "average", "total", "high", "low", "mean"})
_ASKS: Mapping[type, Mapping[str, int]] = {
    Clause: {"count": 20, "measure": 20, "groups": 12, "top": 8, "different": 10, "list": 30},
    Aggregate: {"measure": 60, "groups": 40},
    Pair: {"measure": 50, "list": 50},
    Top: {"top": 1},
}
"""What is asked about a node, by how often."""

_RULES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(_FIXED, ("=", "=", "=", "=", "<>", "or")),
    **dict.fromkeys(("date", "year"), ("after", "before")),
    **dict.fromkeys(_NUMBERS, (">", "<", ">=", "<=")),
}
"""Further conditions by the role of their column."""


class Impossible(Exception):  # noqa: N818 (caught by callers, no error)
    """What was drawn needs something that the database does not have; another draw may not."""


@dataclass(frozen=True)
class Meaning:
    """An interpretation on a database.

    Attributes:
        text: Completes "The word '...' refers to".
        words: The word or phrase by form.
        entity: The table that it is bound to; None if it is about any.
        node: What it is in a tree, if it is bound.
    """

    text: str
    words: Mapping[Form, str]
    entity: Entity | None = None
    node: Node | None = None


def meanings_of(profile: Profile, seed: int) -> dict[str, Meaning]:
    """The interpretations that the schema allows, with their words, by kind."""
    entities = list(profile.entities.values())
    names = {n.casefold() for one in entities for n in (one.table, one.one, one.many)} | {
        n.casefold() for one in entities for f in one.fields for n in (f.name, f.phrase)
    }
    rng, kinds = random.Random(f"{seed} words"), known()["meanings"]
    drawn = draw_words(WORDLIKE, len(kinds), rng, taken=names, refused=is_english)
    made = {}
    for (kind, rule), foreign in zip(kinds.items(), drawn, strict=True):
        # Words that stand in names are the last choice.
        free = [one for one in rule["words"] if not any(w in n for w in one for n in names)]
        plausible, *adversarial = rng.choice(free or rule["words"])
        forms: dict[Form, str] = {"plausible": plausible}
        if adversarial:
            forms |= {"foreign": foreign, "adversarial": adversarial[0]}
        if "means" in rule:
            made[kind] = Meaning(rule["means"], forms)
            continue
        drawer = Drawer(profile, random.Random(f"{seed} {kind}"))
        if found := [(one, node) for one in entities for node in drawer.nodes(kind, one)]:
            # Tables of which more can be asked give more questions.
            weights = [len(one.fields) ** 2 or 1 for one, _ in found]
            entity, node = drawer.rng.choices(found, weights)[0]
            text = f"{'the' if isinstance(node, Pair) else 'those'} {node.words({})}"
            text = text.partition(rule["behind"])[2] if "behind" in rule else text
            made[kind] = Meaning(text, forms, entity, replace(node, kind=kind))
    return made


class Drawer:
    """Draws nodes and questions on one database."""

    def __init__(self, profile: Profile, rng: random.Random) -> None:
        self.profile, self.rng = profile, rng

    def nodes(self, kind: str, entity: Entity) -> Iterator[Node]:
        """What a word of a kind can mean on a table; values are drawn."""
        rule: Mapping[str, Any] = known()["meanings"][kind]
        for how in rule["as"]:
            if how == "COUNT":
                yield COUNT
            elif how in known()["groups"]:
                yield Top(COUNT, rank=known()["groups"][how])
            elif how in known()["pairs"]:
                yield from self._pairs(kind, how, entity)
            elif rule["of"] == "link":
                yield from self._linked(how, entity)
            else:
                for of in self._columns(entity, *rule["of"].split()):
                    if how in FUNCTIONS:
                        yield Aggregate(how, of)
                    elif how in known()["ranks"]:
                        yield Top(of, *known()["ranks"][how])
                    elif node := self._condition(how, entity, of):
                        yield node

    def question(self, kind: str, meaning: Meaning) -> Question:
        """One question with a meaning.

        Raises:
            Impossible: This draw led nowhere; another one may not.
        """
        if meaning.entity and meaning.node:
            return self._about(meaning.entity, meaning.node)
        entities = list(self.profile.entities.values())
        entity = self.rng.choices(entities, [len(one.fields) + 1 for one in entities])[0]
        return self._about(entity, replace(self._pick([*self.nodes(kind, entity)]), kind=kind))

    def _about(self, entity: Entity, node: Node) -> Question:
        """A question in which a node stands where it can."""
        asks, used = _ASKS[type(node)], _phrases([node])
        ask = self.rng.choices(list(asks), list(asks.values()))[0]
        show: tuple[Term, ...] = (COUNT,)
        by = top = None
        if isinstance(node, Top) and node.term == COUNT:
            show, by, top = (), self._group(entity, used), node
        elif ask == "groups":
            by = self._group(entity, used)
            show = (node,) if isinstance(node, Aggregate) else show
        elif ask == "top":
            amounts = self._columns(entity, *_NUMBERS, used=used)
            top = node if isinstance(node, Top) else Top(self._pick(amounts), self._happens(0.6))
            value = top.rank > 1 and self._happens(0.3)
            show = (top.term,) if value else self._shown(entity, used | _phrases([top]))
        elif ask == "different":
            show = (self._pick(self._columns(entity, *_FIXED, used=used, fewest=2)),)
        elif isinstance(node, Aggregate) or (
            isinstance(node, Pair) and (ask == "list" or node.way == "joined")
        ):  # texts have no average
            show = (node,)
        elif ask == "measure":
            function = self.rng.choice(("MAX", "MIN", "AVG") + ("SUM",) * isinstance(node, Clause))
            roles = _NUMBERS[function == "SUM" :]
            of = node if isinstance(node, Pair) else None
            show = (
                Aggregate(function, of or self._pick(self._columns(entity, *roles, used=used))),
            )
        elif ask == "list":
            show = self._shown(entity, used)
        where: tuple[Clause, ...] = (node,) if isinstance(node, Clause) else ()
        if self._happens(0.65) and (not where or ask in {"count", "measure", "list"}):
            where += self._further(entity, used | _phrases([*show, by, top]))
        distinct, style = ask == "different", self.rng.randrange(6)
        return Question(entity, show, where, by, top, distinct=distinct, style=style)

    # Parts of questions. ``used`` are the names of columns that are not mentioned again.

    def _happens(self, chance: float) -> bool:
        return self.rng.random() < chance

    def _pick(self, items: Sequence[_Item]) -> _Item:
        if not items:
            raise Impossible
        return self.rng.choice(items)

    def _columns(
        self, entity: Entity, *roles: Role, used: Collection[str] = (), fewest: int = _FEWEST
    ) -> list[Plain]:
        """Columns of these roles that questions can be about."""
        return [
            Plain(f) for f in entity.having(*roles)
            if f.distinct >= fewest and f.phrase not in used
            and not (f.nulls and f.role in _FIXED)
            # "the highest minimum salary"
            and not (f.role in _NUMBERS and _EXTREMES & set(f.phrase.split()))
        ]  # fmt: skip

    def _far(self, entity: Entity, used: Collection[str], *roles: Role) -> list[Plain]:
        """Columns of what a link leads to."""
        found = [
            replace(one, link=link) for link in self.profile.parents(entity)
            for one in self._columns(self.profile.entities[link.parent], *roles, fewest=2)
            if one.field.distinct <= _MOST_GROUPS
        ]  # fmt: skip
        return [one for one in found if one.phrase not in used]

    def _group(self, entity: Entity, used: Collection[str]) -> Plain:
        """What to group by: a category of its own, or the name of what a link leads to."""
        entities = self.profile.entities
        named = [
            one for one in self._far(entity, used, "name")
            if one.field.distinct == entities[one.field.table].rows
        ]  # fmt: skip
        own = self._columns(entity, *_FIXED, used=used, fewest=2)
        return self._pick([*(one for one in own if one.field.distinct <= _MOST_GROUPS), *named])

    def _further(self, entity: Entity, used: Collection[str]) -> tuple[Clause, ...]:
        """A further condition, if there is one: on the entity, its parents or its children."""
        far = self._far(entity, used, *_FIXED, "name")
        linked = [*self._linked("linked", entity)]
        one: Clause | None
        if self._happens(0.7) or not (far or linked):
            one = self._own(entity, used)
        elif linked and (not far or self._happens(1 / 3)):
            one = self.rng.choice(linked)
        else:
            one = self._condition("=", entity, self.rng.choice(far))
        return (one,) if one else ()

    def _linked(self, how: str, entity: Entity) -> Iterator[Clause]:
        """Conditions that rows of other tables refer to these."""
        for link in self.profile.children(entity):
            child = self.profile.entities[link.child]
            if how != "linked where":
                yield Clause(how, link=link, child=child)
                continue
            for of in self._columns(child, *_FIXED, fewest=2):
                if inner := self._condition("=", child, of):
                    yield Clause(how, inner=inner, link=link, child=child)

    def _own(self, entity: Entity, used: Collection[str]) -> Clause | None:
        """A condition on a column of the entity."""
        fields = [
            f for f in entity.fields
            if f.role in _RULES and f.distinct > 1 and f.phrase not in used
        ]  # fmt: skip
        if not fields:
            return None
        field = self.rng.choice(fields)
        return self._condition(self.rng.choice(_RULES[field.role]), entity, Plain(field))

    def _condition(self, rule: str, entity: Entity, of: Plain) -> Clause | None:
        """A condition with values of the column; None if it has no fitting ones."""
        field, values = of.field, tuple[Value, ...]()
        if rule in {"=", "<>", "or"}:
            said = [value for value in field.common[:8] or field.values if _is_said(value)]
            several = 2 if rule == "or" else 1
            # What "is not Oslo" says of rows without a city is not decided by English.
            unsure = rule == "<>" and (field.nulls or of.link)
            most = min(_MOST_NAMES, entity.rows // 2)
            many = field.role in _RULES and not (
                field.common or (field.whole and len(said) <= most)
            )
            if unsure or many or len(said) < several * 2 - 1:
                return None
            values = tuple(self.rng.sample(said, several))
        elif rule == "shorter":
            lengths = sorted(len(str(value)) for value in field.values)
            values = (lengths[len(lengths) // 3] + 1,)
        elif rule == "during":
            values = _months(str(self.rng.choice(field.values)))
        elif rule == "exceeds":
            inner = self._own(entity, {of.phrase})
            return Clause(rule, of, inner=inner) if inner and inner.rule != "or" else None
        elif rule in {">", "<", ">=", "<=", "after", "before"}:
            limit = self._threshold(field)
            if limit is None:
                return None
            values = (limit,)
        return Clause(rule, of, values)

    def _pairs(self, kind: str, way: str, entity: Entity) -> Iterator[Pair]:
        """Two columns that make sense as one, by their roles and names."""
        rule: Mapping[str, Any] = known()["meanings"][kind]
        fields = [f for f in entity.having(*rule["of"].split()) if way == "days" or not f.nulls]
        for (end, begin), (one, other) in product(rule["ends"], [*permutations(fields, 2)]):
            words = [begin if word == end else word for word in one.phrase.split()]
            joined = way == "joined" and (one.role, other.role) == (end, begin)
            if joined or (way != "joined" and words == other.phrase.split() != one.phrase.split()):
                yield Pair(way, Plain(one), Plain(other))

    def _shown(self, entity: Entity, used: Collection[str]) -> tuple[Term, ...]:
        """Columns to show: what rows are named by, or another column beside it or instead."""
        display = [Plain(f) for f in entity.display if f.phrase not in used]
        others = [
            Plain(f) for f in entity.fields
            if f.phrase not in used and f.role not in {"first", "last", "name"}
        ]  # fmt: skip
        chance = self.rng.random()
        if display and (chance < 1 / 2 or not others):
            return tuple(display)
        return (*(display if chance < 3 / 4 else ()), self._pick(others))

    def _threshold(self, field: Field) -> int | float | str | None:
        """A round number, or a date, with a sixth of the values on either side; None without."""
        least = max(1, len(field.values) // 6)
        if len(field.values) < 2 * least + 1:
            return None
        place = self.rng.randrange(least, len(field.values) - least)
        # Some values may lie between, since 500 is asked rather than 522.1.
        low, high = field.values[place - 1], field.values[place + len(field.values) // 10]
        if isinstance(low, int | float) and isinstance(high, int | float):
            return _simplest(low, high)
        return str(low)


def _phrases(nodes: Iterable[Term | Clause | Top | None]) -> set[str]:
    """What the columns of nodes are called."""
    return {plain.phrase for node in nodes if node for plain in node.columns()}


def _is_said(value: Value) -> bool:
    """Whether a value can stand in a sentence."""
    return isinstance(value, int | float) or (
        isinstance(value, str) and 1 < len(value) <= _MOST_TEXT and value.isprintable()
        and value.strip() == value and not set("\\\"'`;{}") & set(value)
    )  # fmt: skip


def _simplest(low: float, high: float) -> int | float:
    """The number with the fewest digits that is at least ``low`` and below ``high``."""
    for power in range(math.ceil(math.log10(abs(high) + 1)) + 1, -6, -1):
        step = 10.0**power
        found = math.ceil(low / step - 1e-9) * step
        if low <= found < high:
            rounded = round(found, max(0, -power))
            return int(rounded) if float(rounded).is_integer() else rounded
    return low


def _months(day: str) -> tuple[str, str, str]:
    """The month of a day and the next one: the first day, the day behind, and their names."""
    start = int(day[:4]) * 12 + int(day[5:7]) - 1
    (year, first), (its, second), (last, behind) = (divmod(start + n, 12) for n in range(3))
    names = known()["months"].split()
    front = names[first] if year == its else f"{names[first]} {year}"
    days = f"{year:04}-{first + 1:02}-01", f"{last:04}-{behind + 1:02}-01"
    return (*days, f"{front} or {names[second]} {its}")
