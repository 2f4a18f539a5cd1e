"""Gold queries of MAGNIFICo as trees, to measure how natural what is rendered from them is.

Only what the grammar has is read; the rest is counted as not covered.
"""

from collections.abc import Mapping

from sqlglot import exp

from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Link, Profile
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    Aggregate,
    Clause,
    Pair,
    Plain,
    Question,
    Term,
    Top,
)
from lm_eval_ext.sql.parsing import UnparsedQuery, parse
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import Value

KINDS: Mapping[str, str] = {
    "course_prereq_id": "product", "lname_fname": "alias", "end_start_date": "span",
    "credit_4": "equals", "salary_more_than": "above", "dept_science": "either",
    "city_mv_pa": "place", "yellow_card": "linked", "len_less_than": "shorter",
    "outlier_range": "deviation", "not_intern": "unlike", "dock_count": "at_least",
}  # fmt: skip
"""Our kinds of interpretations that have another name there."""

_FUNCTIONS: Mapping[type[exp.Expr], str] = {
    exp.Max: "MAX", exp.Min: "MIN", exp.Avg: "AVG", exp.Sum: "SUM", exp.Count: "COUNT",
}  # fmt: skip
_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=",
    exp.Like: "LIKE",
}  # fmt: skip
_AGGREGATE = {"maximum": "MAX", "minimum": "MIN", "average": "AVG", "sum": "SUM", "count": "COUNT"}
_TWO = 2


class Uncovered(Exception):  # noqa: N818 (caught by callers, no error)
    """The grammar does not have the query."""


def tree(sql: str, kind: str, schema: Schema, profile: Profile) -> Question:
    """A gold query as a tree in which a node has the interpretation's kind.

    Raises:
        Uncovered: The grammar does not have it, or nothing in it is of that kind.
    """
    try:
        parsed = parse(sql, schema)
    except UnparsedQuery:
        raise Uncovered("not read") from None
    reader = _Reader(parsed, kind, profile)
    found = reader.question()
    if not reader.marked:
        raise Uncovered("the meaning is expressed in another way")
    return found


class _Reader:
    def __init__(self, parsed: exp.Expr, kind: str, profile: Profile) -> None:
        if not isinstance(parsed, exp.Select) or parsed.args.get("having"):
            raise Uncovered("set operation or HAVING")
        if any(isinstance(parsed.args.get(name), exp.With) for name in ("with", "with_")):
            raise Uncovered("WITH")
        self._select, self._kind, self._profile = parsed, kind, profile
        self.marked = False
        self._tables: dict[str, Entity] = {}
        source = _from(parsed)
        tables = [source.this, *(join.this for join in parsed.args.get("joins") or [])]
        for table in tables:
            if not isinstance(table, exp.Table):
                raise Uncovered("a subquery in FROM")
            entity = self._entity(table.name)
            self._tables[(table.alias or table.name).casefold()] = entity
        if len({entity.table for entity in self._tables.values()}) < len(tables):
            raise Uncovered("one table twice")
        self._root, self._links = self._rooted()

    def _entity(self, name: str) -> Entity:
        for entity in self._profile.entities.values():
            if entity.table.casefold() == name.casefold():
                return entity
        raise Uncovered("a table without a name")

    def _rooted(self) -> tuple[Entity, dict[str, Link]]:
        """The table from which links lead to all others."""
        entities = list(self._tables.values())
        for root in entities:
            links = {
                link.parent: link for link in self._profile.links
                if link.child == root.table and link.parent != root.table
            }  # fmt: skip
            if all(other is root or other.table in links for other in entities):
                return root, links
        raise Uncovered("joins that are no star")

    def _plain(self, node: exp.Expr | None) -> Plain:
        if not isinstance(node, exp.Column):
            raise Uncovered("an expression")
        name = node.name.casefold()
        alias = (node.table or "").casefold()
        for key, entity in self._tables.items():
            if alias and alias not in {key, entity.table.casefold()}:
                continue
            for field in entity.fields:
                if field.name.casefold() == name:
                    path = () if entity is self._root else (self._links[entity.table],)
                    return Plain(field, path)
        raise Uncovered("a column without a name")

    def _mark(self, *kinds: str) -> str:
        """The kind, if a node of these kinds is what the word means and none was yet."""
        if self._kind in kinds and not self.marked:
            self.marked = True
            return self._kind
        return ""

    def _term(self, node: exp.Expr) -> Term:
        node = node.unnest().unalias()
        for kind, function in _FUNCTIONS.items():
            if type(node) is kind:
                inner = node.this
                counted = function == "COUNT"
                if isinstance(inner, exp.Distinct):
                    raise Uncovered("an aggregate of different values")
                of = None if counted else self._pair_or_plain(inner)
                marks = [name for name, fn in _AGGREGATE.items() if fn == function]
                return Aggregate(function, of, self._mark(*marks))
        return self._pair_or_plain(node)

    def _pair_or_plain(self, node: exp.Expr) -> Plain | Pair:
        node = node.unnest()
        for way, kind, mark in (
            ("joined", exp.DPipe, "alias"), ("difference", exp.Sub, "span"),
            ("product", exp.Mul, "product"),
        ):  # fmt: skip
            if type(node) is kind:
                first, second = self._plain(node.this), self._plain(node.args["expression"])
                return Pair(way, first, second, self._mark_pair(mark))
        return self._plain(node)

    def _mark_pair(self, kind: str) -> str:
        """A pair may be mentioned several times, as the same word."""
        self.marked = self.marked or kind == self._kind
        return kind if kind == self._kind else ""

    def question(self) -> Question:
        select = self._select
        group = select.args.get("group")
        by = None
        if group is not None:
            if len(group.expressions) != 1:
                raise Uncovered("several groups")
            by = self._plain(group.expressions[0])
        where = select.args.get("where")
        parts = list(where.this.flatten()) if where and isinstance(where.this, exp.And) else (
            [where.this] if where else []
        )  # fmt: skip
        filters = [self._filter(part.unnest()) for part in parts]
        if any(isinstance(one, exp.Star) for one in select.expressions):
            raise Uncovered("SELECT *")
        show = [self._term(one) for one in select.expressions]
        top = self._top()
        if by is not None:
            show = [term for term in show if term != by]
            if top is None and not (show and isinstance(show[0], Aggregate)):
                raise Uncovered("groups without an aggregate")
        if len(show) > 1 and any(isinstance(term, Aggregate) for term in show):
            raise Uncovered("several aggregates")
        return Question(
            self._root, tuple(show), tuple(filters), by, top,
            distinct=select.args.get("distinct") is not None,
        )  # fmt: skip

    def _top(self) -> Top | None:
        order, limit = self._select.args.get("order"), self._select.args.get("limit")
        if order is None and limit is None:
            return None
        if order is None or limit is None or len(order.expressions) != 1 or (
            limit.expression.name != "1"
        ):  # fmt: skip
            raise Uncovered("an order, or a limit above 1")
        offset = self._select.args.get("offset")
        rank = int(offset.expression.name) + 1 if offset else 1
        if rank > _TWO:
            raise Uncovered("a rank below the second")
        (by,) = order.expressions
        descending = bool(by.args.get("desc"))
        kinds: tuple[str, ...] = ("maximum",) if descending else ("minimum",)
        if rank == _TWO:
            kinds = ("second_max",)
        if self._select.args.get("group") is not None and rank == 1 and descending:
            kinds = (*kinds, "value_mode")
        mark = self._mark(*kinds)
        return Top(self._term(by.this), descending, rank, mark)

    def _filter(self, node: exp.Expr) -> Clause:
        if isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.In):
            return self._in(node.this.unnest(), negated=True)
        if isinstance(node, exp.In):
            return self._in(node, negated=False)
        if isinstance(node, exp.Or):
            return self._either(node)
        operator = _OPERATORS.get(type(node))
        if operator is None:
            raise Uncovered("a condition of another kind")
        left, right = node.this.unnest(), node.args["expression"]
        if isinstance(right, exp.Subquery):
            return self._subquery(self._plain(left), operator, right.unnest())
        value = _value(right)
        if isinstance(left, exp.Length):
            if operator != "<":
                raise Uncovered("a length of another kind")
            return Clause("shorter", self._plain(left.this), (value,), kind=self._mark("shorter"))
        marks = {"=": ("equals",), ">": ("above",), ">=": ("at_least",), "<>": ("unlike",)}
        term = self._pair_or_plain(left)
        mark = "" if isinstance(term, Pair) else self._mark(*marks.get(operator, ()))
        if isinstance(term, Plain) and term.field.role in {"date", "year"}:
            operator = {">": "after", "<": "before"}.get(operator, operator)
        if operator == "LIKE":
            operator, value = "contains", str(value).strip("%")
        return Clause(operator, term, (value,), kind=mark)

    def _either(self, node: exp.Or) -> Clause:
        sides = [side.unnest() for side in node.flatten()]
        terms = {self._plain(side.this) for side in sides if isinstance(side, exp.EQ)}
        if len(terms) != 1 or len(sides) != _TWO:
            raise Uncovered("a condition of another kind")
        values = tuple(_value(side.args["expression"]) for side in sides)
        return Clause("or", terms.pop(), values, kind=self._mark("either", "place"))

    def _in(self, node: exp.In, *, negated: bool) -> Clause:
        if query := node.args.get("query"):
            return self._membership(node, query.unnest(), negated=negated)
        term = self._plain(node.this)
        values = tuple(_value(one) for one in node.expressions)
        if negated or len(values) != _TWO:
            raise Uncovered("a list of another length")
        return Clause("or", term, values, kind=self._mark("either", "place"))

    def _membership(self, node: exp.In, query: exp.Expr, *, negated: bool) -> Clause:
        term = self._plain(node.this)
        if isinstance(query, exp.Select) and query.args.get("group") and not negated:
            return Clause("mode", term, kind=self._mark("value_mode"))
        if not isinstance(query, exp.Select) or query.args.get("joins") or query.args.get("where"):
            raise Uncovered("a subquery of another kind")
        source = _from(query)
        column = query.expressions[0]
        for link in self._profile.children(self._root):
            same = link.child.casefold() == source.this.name.casefold()
            if same and link.column.casefold() == column.name.casefold():
                child = self._profile.entities[link.child]
                mark = self._mark("not_in") if negated else ""
                rule = "not in" if negated else "linked"
                return Clause(rule, child=child, link=link, kind=mark)
        raise Uncovered("a subquery of another kind")

    def _subquery(self, term: Plain, operator: str, query: exp.Expr) -> Clause:
        if not isinstance(query, exp.Select) or len(query.expressions) != 1 or (
            query.args.get("joins")
        ):  # fmt: skip
            raise Uncovered("a subquery of another kind")
        (shown,) = query.expressions
        where = query.args.get("where")
        if isinstance(shown, exp.Avg) and operator in {">", "<"}:
            above = operator == ">"
            rule = "above average" if above else "below average"
            return Clause(rule, term, kind=self._mark(rule.replace(" ", "_")))
        if isinstance(shown, exp.Sub) and operator == ">":
            return Clause("deviation", term, kind=self._mark("deviation"))
        if isinstance(shown, exp.Max) and operator == ">" and where is not None:
            inner = self._filter(where.this)
            if not inner.values:
                raise Uncovered("a subquery of another kind")
            return Clause("exceeds", term, inner=inner, kind=self._mark("more_than_max"))
        if isinstance(shown, exp.Max | exp.Min) and operator == "=":
            highest = isinstance(shown, exp.Max)
            mark = self._mark("maximum" if highest else "minimum")
            return Clause("highest" if highest else "lowest", term, kind=mark)
        if query.args.get("group") is not None and operator == "=":
            return Clause("mode", term, kind=self._mark("value_mode"))
        raise Uncovered("a subquery of another kind")


def _from(select: exp.Select) -> exp.Expr:
    found = select.args.get("from_") or select.args.get("from")
    if not isinstance(found, exp.From):
        raise Uncovered("no table")
    return found


def _value(node: exp.Expr) -> Value:
    node = node.unnest()
    if isinstance(node, exp.Neg):
        node = node.this
    if not isinstance(node, exp.Literal):
        raise Uncovered("no constant")
    if node.is_string:
        return str(node.this)
    number = float(node.this)
    return int(number) if number.is_integer() else number


__all__ = ("KINDS", "Uncovered", "tree")
