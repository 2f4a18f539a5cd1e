"""What words can mean on a database, and questions drawn about that.

The interpretations are MAGNIFICo's 24 (paper, tables 4 and 5). Ten are about any column. The others
name columns or values there, so here each is bound once to columns and values of the database.

What cannot be said well is not drawn: the average of a year, the highest minimum.
"""

import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from lm_eval_ext.benchmarks.magnifico.generate.english import known
from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Field, Profile, Role
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    FUNCTIONS,
    Aggregate,
    Clause,
    Having,
    Pair,
    Path,
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

COUNT = Aggregate("COUNT")
INSTANCES = 3
"""How often a kind can be bound; each has its own word. Further ones are called ``above_2``."""

_FEWEST, _MOST_NAMES, _MOST_GROUPS, _MOST_TEXT = 4, 12, 30, 32
_FIXED: tuple[Role, ...] = ("category", "place")
_EXTREMES = frozenset({"maximum", "minimum", "average", "total", "high", "low", "mean"})
_ASKS: Mapping[type, Mapping[str, int]] = {
    Clause: {"count": 19, "measure": 19, "groups": 9, "having": 5, "top": 7, "different": 9,
             "list": 32},
    Aggregate: {"measure": 60, "groups": 24, "having": 16},
    Pair: {"measure": 25, "list": 38, "condition": 37},
    Top: {"top": 1},
}  # fmt: skip
"""What is asked about a node, by how often."""

_RULES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(_FIXED, ("=", "=", "=", "=", "<>", "or")),
    **dict.fromkeys(("date", "year"), ("after", "before")),
    **dict.fromkeys(("amount", "total"), (">", "<", ">=", "<=")),
}
"""Further conditions by the role of their column."""


class Impossible(Exception):  # noqa: N818 (caught by callers, no error)
    """What was drawn needs something that the database does not have; another draw may not."""


@dataclass(frozen=True)
class Meaning:
    """An interpretation on a database.

    Attributes:
        name: Its kind, or ``above_2`` for a further meaning of it.
        text: Completes "The word '...' refers to".
        words: The word or phrase by form.
        entity: The table that it is bound to; None if it is about any.
        node: What it is in a tree, if it is bound.
    """

    name: str
    text: str
    words: Mapping[Form, str]
    entity: Entity | None = None
    node: Node | None = None


def meanings_of(profile: Profile, seed: int) -> Iterator[Meaning]:
    """The interpretations that the schema allows, with their words."""
    entities = list(profile.entities.values())
    names = {n.casefold() for one in entities for n in (one.table, one.one, one.many)} | {
        n.casefold() for one in entities for f in one.fields for n in (f.name, f.phrase)
    }
    rng, kinds = random.Random(f"{seed} words"), known()["meanings"]
    drawn = draw_words(WORDLIKE, INSTANCES * len(kinds), rng, taken=names, refused=is_english)
    for (kind, rule), *foreign in zip(kinds.items(), *[iter(drawn)] * INSTANCES, strict=True):
        # Words that stand in names are the last choice.
        free = [one for one in rule["words"] if not any(w in n for w in one for n in names)]
        words = rng.sample(free or rule["words"], len(free or rule["words"]))
        drawer, nodes = Drawer(profile, random.Random(f"{seed} {kind}")), list[Node]()
        for number, (plausible, *adversarial) in enumerate(words[:INSTANCES]):
            name = f"{kind}_{number + 1}" if number else kind
            forms: dict[Form, str] = {"plausible": plausible}
            if adversarial:
                forms |= {"foreign": foreign[number], "adversarial": adversarial[0]}
            if "means" in rule:
                yield Meaning(name, rule["means"], MappingProxyType(forms))
                break
            found = [(one, node) for one in entities for node in drawer.nodes(kind, one)]
            if not found:
                break
            # Tables of which more can be asked give more questions.
            weights = [len(one.fields) ** 2 or 1 for one, _ in found]
            entity, node = drawer.rng.choices(found, weights)[0]
            if node not in nodes:
                nodes.append(node)
                text = f"{'the' if isinstance(node, Pair) else 'those'} {node.words({})}"
                text = text.partition(rule["behind"])[2] if "behind" in rule else text
                node = replace(node, kind=name)
                yield Meaning(name, text, MappingProxyType(forms), entity, node)


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

    def question(self, meaning: Meaning) -> Question:
        """One question with a meaning.

        Raises:
            Impossible: This draw led nowhere; another one may not.
        """
        return self._about(*self._bound(meaning))

    def both(self, measure: Meaning, condition: Meaning) -> Question:
        """One question with two meanings: an aggregate over rows under a condition.

        Raises:
            Impossible: As :meth:`question`.
        """
        entity, node = self._bound(condition)
        measures = [
            replace(one, kind=measure.name) for one in self.nodes(measure.name, entity)
            if isinstance(one, Aggregate) and not _phrases([node]) & _phrases([one])
        ]  # fmt: skip
        if not isinstance(node, Clause):
            raise Impossible
        return Question(entity, (self._pick(measures),), (node,), style=self.rng.randrange(6))

    def _bound(self, meaning: Meaning) -> tuple[Entity, Node]:
        """What a meaning is in a tree: drawn now if it is about any table."""
        if meaning.entity and meaning.node:
            return meaning.entity, meaning.node
        entities = list(self.profile.entities.values())
        entity = self.rng.choices(entities, [len(one.fields) + 1 for one in entities])[0]
        return entity, replace(self._pick([*self.nodes(meaning.name, entity)]), kind=meaning.name)

    def _about(self, entity: Entity, node: Node) -> Question:
        """A question in which a node stands where it can."""
        asks, used = _ASKS[type(node)], _phrases([node])
        ask = self.rng.choices(list(asks), list(asks.values()))[0]
        if isinstance(node, Pair):
            if ask == "condition":
                return self._about(entity, self._pair_condition(node))
            if node.way == "joined":
                ask = "list"  # texts have no average
        show: tuple[Term, ...] = (COUNT,)
        by = top = having = None
        if ask in {"groups", "having"} or (isinstance(node, Top) and node.term == COUNT):
            by = self._group(entity, used, far=ask == "groups")
            term = node if isinstance(node, Aggregate) else COUNT
            show = (term,) if ask == "groups" else ()
            having = self._having(entity, by, term) if ask == "having" else None
            top = node if isinstance(node, Top) else None
        elif ask == "top":
            amounts = self._columns(entity, "amount", "total", used=used)
            top = node if isinstance(node, Top) else Top(self._pick(amounts), self._happens(0.6))
            value = top.rank > 1 and self._happens(0.3)
            show = (top.term,) if value else self._shown(entity, used | _phrases([top]))
        elif ask == "different":
            fields = self._columns(entity, *_FIXED, used=used, fewest=2)
            show = (self._pick(fields),)
        elif ask == "measure":
            function = self.rng.choice(("MAX", "MIN", "AVG") + ("SUM",) * isinstance(node, Clause))
            roles: tuple[Role, ...] = ("total",) if function == "SUM" else ("amount", "total")
            if isinstance(node, Aggregate):
                show = (node,)
            else:
                of = node if isinstance(node, Pair) else self._columns(entity, *roles, used=used)
                show = (Aggregate(function, self._pick(of) if isinstance(of, list) else of),)
        elif ask == "list":
            pair = (node,) if isinstance(node, Pair) else ()
            alone = pair and self._happens(0.4)
            show = (*(() if alone else self._shown(entity, used)), *pair)
        where: tuple[Clause, ...] = (node,) if isinstance(node, Clause) else ()
        if not where or ask in {"count", "measure", "list"}:
            where += self._conditions(entity, used | _phrases([*show, by, top]))
        distinct, style = ask == "different", self.rng.randrange(6)
        return Question(entity, show, where, by, top, having, distinct=distinct, style=style)

    # Parts of questions. ``used`` are the names of columns that are not mentioned again.

    def _happens(self, chance: float) -> bool:
        return self.rng.random() < chance

    def _pick(self, items: Sequence[_Item]) -> _Item:
        if not items:
            raise Impossible
        return self.rng.choice(items)

    def _columns(
        self, entity: Entity, *roles: Role, used: Collection[str] = (), fewest: int = _FEWEST,
        path: Path = (),
    ) -> list[Plain]:  # fmt: skip
        """Columns of these roles that questions can be about."""
        return [
            Plain(f, path) for f in entity.having(*roles)
            if f.distinct >= fewest and Plain(f, path).phrase not in used
            and not (f.nulls and f.role in _FIXED)
            # "the highest minimum salary"
            and not (f.role in {"amount", "total"} and _EXTREMES & set(f.phrase.split()))
        ]  # fmt: skip

    def _far(self, entity: Entity, *roles: Role, far: bool = True) -> list[Plain]:
        """Columns of what a link leads to, sometimes of what two lead to, and none further away."""
        parents, entities = self.profile.parents, self.profile.entities
        paths: list[Path] = [(link,) for link in parents(entity)]
        if far and self._happens(0.3):
            paths += [
                (*path, link) for path in paths for link in parents(entities[path[-1].parent])
                if link.parent != entity.table
            ]  # fmt: skip
        return [
            one for path in paths
            for one in self._columns(entities[path[-1].parent], *roles, fewest=2, path=path)
            if one.field.distinct <= _MOST_GROUPS
        ]  # fmt: skip

    def _group(self, entity: Entity, used: Collection[str], *, far: bool = False) -> Plain:
        """What to group by: a category of its own, or the name of what a link leads to.

        Where ``far``, two links may lead to it: there is one value "for each", but "the team of the
        player with the most goals" says who has them, and it must be the team.
        """
        named = [
            one for one in self._far(entity, "name", far=far)
            if one.field.distinct == self.profile.entities[one.field.table].rows
        ]  # fmt: skip
        found = [*self._columns(entity, *_FIXED, fewest=2), *named]
        return self._pick([
            one for one in found if one.phrase not in used and one.field.distinct <= _MOST_GROUPS
        ])  # fmt: skip

    def _conditions(self, entity: Entity, used: Collection[str]) -> tuple[Clause, ...]:
        """Up to two further conditions."""
        first = None if self._happens(0.35) else self._ordinary(entity, used)
        if first is None or first.link or self._happens(0.75):
            return (first,) if first else ()
        second = self._own(entity, {*used, *_phrases([first])})
        return (first, second) if second else (first,)

    def _ordinary(self, entity: Entity, used: Collection[str]) -> Clause | None:
        far = [one for one in self._far(entity, *_FIXED, "name") if one.phrase not in used]
        linked = [*self._linked("linked", entity)]
        if self._happens(0.7) or not (far or linked):
            return self._own(entity, used)
        if linked and (not far or self._happens(1 / 3)):
            return self.rng.choice(linked)
        return self._condition("=", entity, self.rng.choice(far))

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
        fields = [f for f in entity.fields if f.role in _RULES and f.distinct > 1]
        fields = [f for f in fields if f.phrase not in used]
        if not fields:
            return None
        field = self.rng.choice(fields)
        return self._condition(self.rng.choice(_RULES[field.role]), entity, Plain(field))

    def _condition(self, rule: str, entity: Entity, of: Plain) -> Clause | None:
        """A condition with values of the column; None if it has no fitting ones."""
        field, values = of.field, tuple[Value, ...]()
        said = [value for value in field.common[:8] or field.values if _is_said(value)]
        if rule in {"=", "<>", "or"}:
            several = 2 if rule == "or" else 1
            # What "is not Oslo" says of rows without a city is not decided by English.
            unsure = rule == "<>" and (field.nulls or of.links)
            most = min(_MOST_NAMES, entity.rows // 2)
            many = field.role in _RULES and not (
                field.common or (field.whole and len(said) <= most)
            )
            if unsure or many or len(said) < max(several, several * 2 - 1):
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
        for end, begin in rule["ends"]:
            pairs = []
            for one, other in permutations(fields, 2):
                words, others = one.phrase.split(), other.phrase.split()
                if way == "joined":
                    fits = one.role == end and other.role == begin
                elif way == "product":
                    fits = words[-1] in end.split() and others[-1] in begin.split()
                else:
                    fits = end in words and [begin if w == end else w for w in words] == others
                if fits:
                    pairs.append(Pair(way, Plain(one), Plain(other)))
            yield from pairs
            if pairs and way == "joined":
                return  # names of people rather than a name and a place

    def _pair_condition(self, pair: Pair) -> Clause:
        first, second = pair.first.field, pair.second.field
        if pair.way == "joined":
            value = str(self.rng.choice(first.values))
            at = self.rng.randrange(max(1, len(value) - 2))
            piece = value[at : at + 3].strip()
            if len(piece) <= 1 or not piece.isalpha():
                raise Impossible
            return Clause("contains", pair, (piece,))
        limit: Any = self.rng.choice((7, 14, 30, 60, 100, 365, 1000))
        if pair.way != "days":
            left, right = (f.values[len(f.values) // 2] for f in (first, second))
            limit = left * right if pair.way == "product" else left - right  # type: ignore[operator]
            limit = float(f"{limit:.1g}")
        limit = int(limit) if limit == int(limit) else limit
        return Clause(self.rng.choice((">", "<")), pair, (limit,))

    def _having(self, entity: Entity, by: Plain, term: Aggregate) -> Having:
        """Groups of more rows than some number, or with an aggregate on a side of it.

        None of fewer rows: a query does not find those of no row at all.
        """
        if not isinstance(term.of, Plain):
            usual = entity.rows / max(1, by.field.distinct)
            return Having(term, ">", max(1, round(usual * self.rng.choice((0.3, 0.6, 1.0)))))
        limit = self._threshold(term.of.field)
        if not isinstance(limit, int | float) or term.function == "SUM":
            raise Impossible
        return Having(term, self.rng.choice((">", "<")), limit)

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
    terms = [one.term if isinstance(one, Top) else one for one in nodes]
    return {plain.phrase for term in terms if term for plain in term.columns()}


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
