"""What can stand in a question, drawn by the roles of columns.

Columns of an entity that a link leads to are drawn less often than its own, those that two links
lead to less often still, and none is further away. What cannot be said well is not drawn: the
average of a year, the highest minimum.
"""

import random
from collections.abc import Callable, Sequence

from lm_eval_ext.benchmarks.magnifico.generate.meanings import AGGREGATES
from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Field, Link, Profile
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    Aggregate,
    Compare,
    Exceeds,
    Filter,
    Function,
    Linked,
    OneOf,
    Operator,
    Plain,
    Term,
)
from lm_eval_ext.benchmarks.magnifico.generate.values import threshold

_ALONE, _ONE, _OWN, _FURTHER = 0.35, 0.75, 0.7, 0.3
"""Chances of no further condition, of one where there is any, of one on a column of the entity's
own, and of one two links away where the first leads on."""

_FEWEST = 4
_MOST_GROUPS = 30
_MOST_VALUES = 40
_MOST_TEXT = 32
_EXTREMES = frozenset({"maximum", "minimum", "average", "total", "high", "low", "mean"})


class Impossible(Exception):  # noqa: N818 (caught by callers, no error)
    """What was drawn needs something that the database does not have."""


class Parts:
    """Draws parts of trees on one database."""

    def __init__(self, profile: Profile, rng: random.Random) -> None:
        self._profile, self._rng = profile, rng
        self._entities = list(profile.entities.values())

    def _happens(self, chance: float) -> bool:
        return self._rng.random() < chance

    def _pick(self, items: Sequence[object]) -> object:
        if not items:
            raise Impossible
        return self._rng.choice(items)

    def _field(self, fields: Sequence[Field]) -> Field:
        found = self._pick(fields)
        assert isinstance(found, Field)
        return found

    def _entity(self, fits: Callable[[Entity], bool]) -> Entity:
        """An entity, those with more columns more often."""
        found = [one for one in self._entities if fits(one)]
        if not found:
            raise Impossible
        return self._rng.choices(found, [len(one.fields) + 1 for one in found])[0]

    def _amount(self, entity: Entity, used: set[str], *, summed: bool = False) -> Plain:
        roles = ("total",) if summed else ("amount", "total")
        fields = [
            f
            for f in entity.having(*roles)
            if f.distinct >= _FEWEST and f.phrase not in used
            and not _EXTREMES & set(f.phrase.split())  # "the highest minimum salary"
        ]  # fmt: skip
        return Plain(self._field(fields))

    def _measure(self, kind: str, entity: Entity, used: set[str]) -> Aggregate:
        function: Function = AGGREGATES[kind]  # type: ignore[assignment]
        if function == "COUNT":
            return Aggregate("COUNT", None, kind)
        return Aggregate(function, self._amount(entity, used, summed=function == "SUM"), kind)

    def _group(self, entity: Entity, used: set[str], *, far: bool = False) -> Plain:
        """What to group by: a category of its own, or the name of what a link leads to.

        Where ``far``, two links may lead to it: there is one value "for each", but "the team of the
        player with the most goals" says who has them, and it must be the team.
        """
        own = [
            Plain(f) for f in entity.having("category", "place")
            if not f.nulls and 1 < f.distinct <= _MOST_GROUPS and f.phrase not in used
        ]  # fmt: skip
        linked = [
            Plain(f, path) for path, parent in self._reached(entity)
            for f in parent.having("name")[:1]
            if parent.rows <= _MOST_GROUPS and not f.nulls and f.distinct == parent.rows
        ]  # fmt: skip
        near = [one for one in linked if len(one.links) == 1]
        found = self._pick(own + (linked if far and self._happens(_FURTHER) else near))
        assert isinstance(found, Plain)
        return found

    def _parents(self, entity: Entity) -> list[tuple[Link, Entity]]:
        links = self._profile.parents(entity)
        nouns = [link.noun for link in links]
        return [
            (link, self._profile.entities[link.parent]) for link in links
            if nouns.count(link.noun) == 1
        ]  # fmt: skip

    def _reached(self, entity: Entity) -> list[tuple[tuple[Link, ...], Entity]]:
        """The entities that one link or two lead to, with the links."""
        near = [((link,), parent) for link, parent in self._parents(entity)]
        return near + [
            ((*path, link), other) for path, parent in near for link, other in self._parents(parent)
            if other is not entity
        ]  # fmt: skip

    def _conditions(self, entity: Entity, used: set[str]) -> tuple[Filter, ...]:
        """Up to two further conditions."""
        if self._rng.random() < _ALONE:
            return ()
        try:
            first = self._ordinary(entity, used)
            if isinstance(first, Linked) or self._rng.random() < _ONE:
                return (first,)
            return (first, self._own_condition(entity, used | phrases(first)))
        except Impossible:
            return ()

    def _ordinary(self, entity: Entity, used: set[str]) -> Filter:
        if self._rng.random() < _OWN:
            return self._own_condition(entity, used)
        reached, children = self._reached(entity), self._profile.children(entity)
        if children and (not reached or self._rng.random() < 1 / 3):
            link = self._rng.choice(children)
            return Linked(link, self._profile.entities[link.child])
        if not reached:
            return self._own_condition(entity, used)
        far = [one for one in reached if len(one[0]) > 1]
        near = [one for one in reached if len(one[0]) == 1]
        path, parent = self._rng.choice(far if far and self._happens(_FURTHER) else near)
        fields = [
            f for f in parent.having("category", "place", "name")
            if f.distinct <= _MOST_VALUES and Plain(f, path).phrase not in used
        ]  # fmt: skip
        field = self._field(fields)
        return self._equal(Plain(field, path))

    def _own_condition(self, entity: Entity, used: set[str]) -> Filter:
        fields = [
            f for f in entity.fields if f.role not in {"name", "first", "last", "other", "key"}
            and f.phrase not in used and f.distinct > 1
        ]  # fmt: skip
        field = self._field(fields)
        plain = Plain(field)
        if field.role in {"category", "place"}:
            if field.distinct > _FEWEST and self._rng.random() < 1 / 4:
                return OneOf(plain, tuple(self._rng.sample(field.common[:8], 2)))
            return self._equal(plain)
        return self._bound(plain)

    def _equal(self, plain: Plain) -> Compare:
        values = plain.field.common[:8] or plain.field.values
        value = self._pick([v for v in values if _is_said(v)])
        operator: Operator = "<>" if self._rng.random() < 1 / 6 else "="
        return Compare(plain, operator, value)  # type: ignore[arg-type]

    def _bound(self, plain: Plain) -> Compare:
        limit = threshold(plain.field, self._rng)
        if limit is None:
            raise Impossible
        operators: tuple[Operator, ...] = (">", "<") if isinstance(limit, str) else (
            ">", "<", ">=", "<="
        )  # fmt: skip
        return Compare(plain, self._rng.choice(operators), limit)

    def _shown(self, entity: Entity, used: set[str]) -> tuple[Term, ...]:
        """Columns to show: what rows are named by, or another column beside it or instead."""
        display = [f for f in entity.display if f.phrase not in used]
        others = [
            f for f in entity.fields if f.phrase not in used and f not in display
            and f.role not in {"first", "last", "name"}
        ]  # fmt: skip
        chance = self._rng.random()
        if display and (chance < 1 / 2 or not others):
            return tuple(map(Plain, display))
        other = self._field(others)
        if display and chance < 3 / 4:
            return (*map(Plain, display), Plain(other))
        return (Plain(other),)


def phrases(node: Filter) -> set[str]:
    """What the columns of a condition are called, which are not mentioned again."""
    terms = [] if isinstance(node, Linked) else [node.term]
    terms += [node.those.term] if isinstance(node, Exceeds) else []
    return {term.phrase for term in terms if isinstance(term, Plain)}


def _is_said(value: object) -> bool:
    """Whether a value can stand in a sentence."""
    return isinstance(value, int | float) or (
        isinstance(value, str) and 1 < len(value) <= _MOST_TEXT and value.isprintable()
        and value.strip() == value and not set('"\'`;{}\t') & set(value)
    )  # fmt: skip
