"""What words can mean on a database, and questions drawn about that.

The interpretations are MAGNIFICo's 24 (paper, tables 4 and 5). Ten are about any column. The others
name columns or values there, so here each is bound once to columns and values of the database.

What cannot be said well is not drawn: the average of a year, the highest minimum.
"""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from lm_eval_ext.benchmarks.magnifico.generate.english import among, known
from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Field, Profile, Role
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    COUNT,
    Aggregate,
    Clause,
    Plain,
    Question,
    Term,
    Top,
)
from lm_eval_ext.benchmarks.magnifico.records import Form
from lm_eval_ext.lexicon import WORDLIKE, draw_words, is_english
from lm_eval_ext.sql.values import Value

Node: TypeAlias = Clause | Aggregate | Top
_Item = TypeVar("_Item")

_FEWEST, _MOST_GROUPS, _MOST_TEXT = 4, 30, 32
_FIXED: tuple[Role, ...] = ("category", "place")
_NUMBERS: tuple[Role, ...] = ("amount", "total")


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
            text = f"those {node.words({})}"
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
            elif rule["of"] == "link":
                yield from self._linked(how, entity)
            else:
                for of in self._columns(entity, *rule["of"].split()):
                    if how in known()["functions"]:
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
        ask = self.rng.choice(known()["asks"][type(node).__name__].split())
        used = _phrases([node])
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
        elif isinstance(node, Aggregate):
            show = (node,)
        elif ask == "measure":
            function = self.rng.choice(list(known()["functions"]))
            columns = self._columns(entity, *_NUMBERS[function == "SUM" :], used=used)
            show = (Aggregate(function, self._pick(columns)),)
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
            and not (f.role in _NUMBERS and among("extremes") & set(f.phrase.split()))
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
        rules: Mapping[str, str] = known()["rules"]
        fields = [
            f for f in entity.fields
            if f.role in rules and f.distinct > 1 and f.phrase not in used
        ]  # fmt: skip
        if not fields:
            return None
        field = self.rng.choice(fields)
        return self._condition(self.rng.choice(rules[field.role].split()), entity, Plain(field))

    def _condition(self, rule: str, entity: Entity, of: Plain) -> Clause | None:
        """A condition with values of the column; None if it has no fitting ones."""
        field, values = of.field, tuple[Value, ...]()
        if rule in {"=", "<>", "or"}:
            said = [value for value in field.common[:8] if _is_said(value)]
            several = 2 if rule == "or" else 1
            # What "is not Oslo" says of rows without a city is not decided by English.
            unsure = rule == "<>" and (field.nulls or of.link)
            if unsure or len(said) < several * 2 - 1:
                return None
            values = tuple(self.rng.sample(said, several))
        elif rule == "shorter":
            lengths = sorted(len(str(value)) for value in field.values)
            values = (lengths[len(lengths) // 3] + 1,)
        elif rule == "during":
            year = int(str(self.rng.choice(field.values))[:4])
            values = (f"{year}-01-01", f"{year + 1}-01-01", str(year))
        elif rule == "exceeds":
            inner = self._own(entity, {of.phrase})
            return Clause(rule, of, inner=inner) if inner and inner.rule != "or" else None
        elif rule in {">", "<", ">=", "<=", "after", "before"}:
            limit = self._threshold(field)
            if limit is None:
                return None
            values = (limit,)
        return Clause(rule, of, values)

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

    def _threshold(self, field: Field) -> Value:
        """A round number, or a date, with a sixth of the values on either side; None without."""
        least = max(1, len(field.values) // 6)
        if len(field.values) < 2 * least + 1:
            return None
        found = self.rng.choice(field.values[least:-least])
        if not isinstance(found, int | float) or field.role == "year":
            return found
        rounded = float(f"{found:.2g}")
        return int(rounded) if rounded.is_integer() else rounded


def _phrases(nodes: Iterable[Term | Clause | Top | None]) -> set[str]:
    """What the columns of nodes are called."""
    return {plain.phrase for node in nodes if node for plain in node.columns()}


def _is_said(value: Value) -> bool:
    """Whether a value can stand in a sentence."""
    return isinstance(value, int | float) or (
        isinstance(value, str) and 1 < len(value) <= _MOST_TEXT and value.isprintable()
        and value.strip() == value and not set("\\\"'`;{}") & set(value)
    )  # fmt: skip
