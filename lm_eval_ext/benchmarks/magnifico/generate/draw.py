"""Draws trees: a node with the novel meaning, and something to ask about it."""

from collections.abc import Callable
from dataclasses import replace

from lm_eval_ext.benchmarks.magnifico.generate.meanings import AGGREGATES, Meaning
from lm_eval_ext.benchmarks.magnifico.generate.parts import Impossible, Parts, phrases
from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Link
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    Aggregate,
    Average,
    Compare,
    Exceeds,
    Extreme,
    Filter,
    Function,
    Having,
    Linked,
    Mode,
    Operator,
    Pair,
    Plain,
    Question,
    Top,
    Versus,
)
from lm_eval_ext.benchmarks.magnifico.generate.values import threshold

_ASK = {"count": 19, "measure": 19, "groups": 9, "having": 5, "top": 7, "different": 9, "sets": 3,
        "list": 29}  # fmt: skip
"""What is asked about rows under a condition, in per cent."""


_FEWEST = 4


class Drawer(Parts):
    """Draws questions on one database."""

    def question(self, meaning: Meaning) -> Question:
        """One question with a meaning.

        Raises:
            Impossible: This draw led nowhere; another one may not.
        """
        drawn = _BY_KIND.get(meaning.kind, Drawer._of_bound)(self, meaning)
        return replace(drawn, style=self._rng.randrange(6))

    def both(self, measure: Meaning, condition: Meaning) -> Question:
        """One question with two meanings: an aggregate over rows under a condition.

        Raises:
            Impossible: As :meth:`question`.
        """
        node = condition.node
        if node is None:
            entity = self._entity(lambda one: bool(one.having("amount", "total")))
            node = self._condition(condition.kind, entity)
        else:
            assert condition.entity is not None
            entity = condition.entity
        if isinstance(node, Pair):
            raise Impossible
        used = phrases(node)
        drawn = Question(entity, (self._measure(measure.kind, entity, used),), (node,))
        return replace(drawn, style=self._rng.randrange(6))

    # One method per place where a meaning can stand.

    def _aggregate(self, meaning: Meaning) -> Question:
        summed, count = meaning.kind == "sum", meaning.kind == "count"
        roles = ("total",) if summed else ("amount", "total")
        entity = self._entity(lambda one: count or bool(one.having(*roles)))
        if meaning.kind in {"maximum", "minimum"} and self._happens(0.5):
            return self._superlative(meaning, entity)
        term = self._measure(meaning.kind, entity, set())
        used = {term.of.phrase} if isinstance(term.of, Plain) else set()
        having = not summed and self._happens(0.4)
        by = self._group(entity, used, far=not having) if self._happens(0.4) else None
        where = self._conditions(entity, used | ({by.phrase} if by else set()))
        if by and having:
            return Question(entity, (), where, by, having=self._having(entity, by, term))
        return Question(entity, (term,), where, by=by)

    def _superlative(self, meaning: Meaning, entity: Entity) -> Question:
        amount = self._amount(entity, set())
        highest = meaning.kind != "minimum"
        if meaning.kind != "second_max" and self._happens(0.5):
            node = Extreme(amount, highest, meaning.kind)
            return Question(entity, self._shown(entity, {amount.phrase}), (node,))
        rank = 2 if meaning.kind == "second_max" else 1
        top = Top(amount, highest, rank, meaning.kind)
        where = self._conditions(entity, {amount.phrase})
        if rank > 1 and self._happens(0.3):
            return Question(entity, (amount,), where, top=top)
        shown = self._shown(entity, {amount.phrase}.union(*map(phrases, where)))
        return Question(entity, shown, where, top=top)

    def _second(self, meaning: Meaning) -> Question:
        entity = self._entity(lambda one: bool(one.fields))
        if self._happens(0.3):
            by = self._group(entity, set())
            top = Top(Aggregate("COUNT"), rank=2, kind=meaning.kind)
            return Question(entity, (), self._conditions(entity, {by.phrase}), by, top)
        return self._superlative(meaning, entity)

    def _most_frequent(self, meaning: Meaning) -> Question:
        entity = self._entity(lambda one: True)
        if not entity.having("category", "place") or self._happens(0.35):
            by = self._group(entity, set())
            top = Top(Aggregate("COUNT"), kind=meaning.kind)
            return Question(entity, (), self._conditions(entity, {by.phrase}), by, top)
        return self._asked(entity, self._condition(meaning.kind, entity))

    def _of_condition(self, meaning: Meaning) -> Question:
        if meaning.kind == "not_in":
            entity = self._entity(lambda one: bool(self._profile.children(one)))
        else:
            entity = self._entity(lambda one: bool(one.having("amount", "total")))
        return self._asked(entity, self._condition(meaning.kind, entity))

    def _condition(self, kind: str, entity: Entity) -> Filter:
        if kind == "value_mode":
            fields = [
                f
                for f in entity.having("category", "place")
                if not f.nulls and f.distinct >= _FEWEST - 1
            ]
            return Mode(Plain(self._field(fields)), kind)
        if kind == "not_in":
            links = [
                one for one in self._profile.children(entity)
                if self._profile.entities[one.child].rows
            ]  # fmt: skip
            link = self._pick(links)
            assert isinstance(link, Link)
            return Linked(link, self._profile.entities[link.child], negated=True, kind=kind)
        amount = self._amount(entity, set())
        if kind == "more_than_max":
            those = self._own_condition(entity, {amount.phrase})
            if not isinstance(those, Compare):
                raise Impossible
            return Exceeds(amount, those, kind)
        if kind not in {"above_average", "below_average", "deviation"}:
            raise Impossible
        above = kind != "below_average"
        return Average(amount, above, kind == "deviation", kind)

    def _of_bound(self, meaning: Meaning) -> Question:
        assert meaning.entity is not None
        assert meaning.node is not None
        if not isinstance(meaning.node, Pair):
            return self._asked(meaning.entity, meaning.node)
        return self._of_pair(meaning.entity, meaning.node)

    def _of_pair(self, entity: Entity, pair: Pair) -> Question:
        used = {pair.first.phrase, pair.second.phrase, pair.first.field.phrase}
        if pair.way != "joined" and self._happens(0.25):
            function: Function = self._rng.choice(("MAX", "MIN", "AVG"))
            return Question(entity, (Aggregate(function, pair),), self._conditions(entity, used))
        if self._happens(0.5):
            where = self._conditions(entity, used)
            said = used.union(*map(phrases, where))
            shown = self._shown(entity, said) if self._happens(0.6) else ()
            return Question(entity, (*shown, pair), where)
        return self._asked(entity, self._pair_condition(pair), used)

    def _pair_condition(self, pair: Pair) -> Compare:
        first, second = pair.first.field, pair.second.field
        if pair.way == "joined":
            value = str(self._rng.choice(first.values))
            at = self._rng.randrange(max(1, len(value) - 2))
            piece = value[at : at + 3].strip()
            if len(piece) <= 1 or not piece.isalpha():
                raise Impossible
            return Compare(pair, "LIKE", f"%{piece}%")
        if pair.way == "days":
            limit: float = self._rng.choice((7, 14, 30, 60, 100, 365, 1000))
        else:
            left, right = (
                sorted(v for v in f.values if isinstance(v, int | float)) for f in (first, second)
            )
            middle = [values[len(values) // 2] for values in (left, right)]
            if pair.way == "product":
                limit = float(f"{middle[0] * middle[1]:.1g}")
            else:
                limit = float(f"{middle[0] - middle[1]:.1g}")
            limit = int(limit) if limit.is_integer() else limit
        return Compare(pair, self._rng.choice((">", "<")), limit)

    def _having(self, entity: Entity, by: Plain, term: Aggregate) -> Having:
        """Groups of more rows than some number, or with an aggregate on a side of it.

        None of fewer rows: a query does not find those of no row at all.
        """
        if not isinstance(term.of, Plain):
            usual = entity.rows / max(1, by.field.distinct)
            limit = round(usual * self._rng.choice((0.3, 0.6, 1.0)))
            return Having(term, ">", max(1, limit))
        bound = threshold(term.of.field, self._rng)
        if not isinstance(bound, int | float):
            raise Impossible
        operator: Operator = self._rng.choice((">", "<"))
        return Having(term, operator, bound)

    def _asked(  # noqa: PLR0911
        self, entity: Entity, node: Filter, used: set[str] | None = None
    ) -> Question:
        """Something about the rows that a condition holds for."""
        used = set(used or ()) | phrases(node)
        ask = self._rng.choices(list(_ASK), list(_ASK.values()))[0]
        if ask == "count":
            return Question(entity, (Aggregate("COUNT"),), (node, *self._conditions(entity, used)))
        if ask == "measure" and entity.having("amount", "total"):
            function: Function = self._rng.choice(("MAX", "MIN", "AVG", "SUM"))
            amount = self._amount(entity, used, summed=function == "SUM")
            where = (node, *self._conditions(entity, used | {amount.phrase}))
            return Question(entity, (Aggregate(function, amount),), where)
        if ask == "groups":
            by = self._group(entity, used, far=True)
            return Question(entity, (Aggregate("COUNT"),), (node,), by=by)
        if ask == "having":
            by = self._group(entity, used)
            having = self._having(entity, by, Aggregate("COUNT"))
            return Question(entity, (), (node,), by, having=having)
        if ask == "sets" and not isinstance(node, Extreme | Exceeds):
            by = self._group(entity, used)
            other = self._own_condition(entity, used | {by.phrase})
            versus = Versus(other, also=self._happens(0.5))
            return Question(entity, (by,), (node,), versus=versus)
        if ask == "top":
            amount = self._amount(entity, used)
            shown = self._shown(entity, used | {amount.phrase})
            return Question(entity, shown, (node,), top=Top(amount, self._happens(0.6)))
        if ask == "different":
            fields = [f for f in entity.having("category", "place") if f.phrase not in used]
            field = self._field(fields)
            return Question(entity, (Plain(field),), (node,), distinct=True)
        shown = self._shown(entity, used)
        shown_phrases = {t.phrase for t in shown if isinstance(t, Plain)}
        return Question(entity, shown, (node, *self._conditions(entity, used | shown_phrases)))


_BY_KIND: dict[str, Callable[[Drawer, Meaning], Question]] = {
    **dict.fromkeys(AGGREGATES, Drawer._aggregate),
    "second_max": Drawer._second,
    "value_mode": Drawer._most_frequent,
    **dict.fromkeys(
        ("above_average", "below_average", "deviation", "not_in", "more_than_max"),
        Drawer._of_condition,
    ),
}
