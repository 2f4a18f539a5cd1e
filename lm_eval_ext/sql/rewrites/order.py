"""Whether a rewrite gives its rows in the gold's order, where the gold leaves it open.

By the ``reference`` semantics the order of rows counts even without ORDER BY, and which of tied
rows is first, and the last bit of a sum of floats. A rewrite is kept in two cases:

- Its result is *settled*: it is the same in whatever order SQLite reads the tables.
- SQLite reads the tables of both queries in the same order (EXPLAIN QUERY PLAN). The plan depends
  on the schema and the stored statistics (sqlite_stat1), not on the rows, so that added rows do
  not change it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from lm_eval_ext.sql.parsing import sources
from lm_eval_ext.sql.proofs.facts import at_most_one_row, facts_of
from lm_eval_ext.sql.proofs.places import aggregates, is_aggregate, own_parts
from lm_eval_ext.sql.rewrites.base import Facts

_READS = re.compile(r"(?:SCAN|SEARCH) (?:TABLE )?(.+?)(?: USING (.*?))?(?: LEFT-JOIN)?$")
_KEY = re.compile(r" \([^()]*\)$")
_SORTS = re.compile(r"USE TEMP B-TREE FOR (?:.* OF )?(GROUP BY|ORDER BY)")
_SUBQUERY = re.compile(
    r"(?:CORRELATED |REUSE )?(?:LIST|SCALAR) SUBQUERY|USING .* FOR IN-OPERATOR|BLOOM FILTER"
    r"|USE TEMP B-TREE FOR (?:DISTINCT|.*\()"
)
_AGGREGATES_OF_ANY_ORDER = (exp.Count, exp.Min, exp.Max)

Step = tuple[str, ...]
Signature = tuple[Any, ...]


def same_order(
    gold: exp.Expr,
    gold_sql: str,
    other: exp.Expr,
    other_sql: str,
    facts: Facts,
    *,
    outer_only: bool,
    names: Mapping[str, str],
) -> bool:
    """Whether two queries with the same set of rows give them in the same order.

    False also if SQLite refuses one of them.
    """
    one, two = facts.plan(gold_sql), facts.plan(other_sql)
    if one is None or two is None:
        return False
    inside = outer_only or not any(map(_depends_on_order, _inner(other, facts)))
    if inside and settled(gold, facts) and settled(other, facts):
        return True
    first = signature(gold, one, facts, {}, whole=not inside)
    second = signature(other, two, facts, names, whole=not inside)
    return first == second


def settled(query: exp.Expr, facts: Facts) -> bool:
    """Whether a query's result does not depend on the order in which tables are read."""
    if isinstance(query, exp.SetOperation):
        if not query.args.get("distinct") or query.args.get("limit") is not None:
            return False
        return all(_settled_set(side, facts) for side in (query.this, query.expression))
    if not isinstance(query, exp.Select) or _loose(query, facts):
        return False
    if at_most_one_row(query, facts.schema):
        return True
    group = query.args.get("group")
    if group is not None and len(group.expressions) == 1:
        return True
    order = query.args.get("order")
    if order is None:
        return False
    known = facts_of(query, facts.schema)
    names = [known.name(term.this) for term in order.expressions]
    terms = [name for name in names if name is not None]
    if known.one_row(terms):
        return True
    selected = known.selected_names()
    plain = all(isinstance(s.unalias(), exp.Column | exp.Star) for s in query.expressions)
    return plain and bool(selected) and selected <= known.fixed(terms)


def _settled_set(side: exp.Expr, facts: Facts) -> bool:
    if isinstance(side, exp.SetOperation):
        return bool(side.args.get("distinct")) and all(
            _settled_set(inner, facts) for inner in (side.this, side.expression)
        )
    return isinstance(side, exp.Select) and not _loose(side, facts) and not side.args.get("limit")


def _loose(select: exp.Select, facts: Facts) -> bool:
    """Whether a value of the result depends on the order in which rows are read."""
    for source in sources(select):
        if isinstance(source, exp.Subquery) and (
            source.find(exp.Limit) is not None
            or any(_loose(inner, facts) for inner in source.find_all(exp.Select))
        ):
            return True
    if not is_aggregate(select) and select.args.get("group") is None:
        return False
    for part in own_parts(select):
        for call in aggregates(part):
            if not isinstance(call, _AGGREGATES_OF_ANY_ORDER) and (
                not isinstance(call, exp.Sum | exp.Avg) or facts.integers(_argument(call)) is None
            ):
                return True
    return _has_bare_columns(select, facts)


def _argument(call: exp.Expr) -> exp.Expr:
    inner = call.this
    return inner.expressions[0] if isinstance(inner, exp.Distinct) else inner


def _has_bare_columns(select: exp.Select, facts: Facts) -> bool:
    """Whether a column outside of aggregates may differ within a group."""
    known = facts_of(select, facts.schema)
    names = known.group_names() if select.args.get("group") is not None else []
    group = select.args.get("group")
    same = {term.sql() for term in group.expressions} if group is not None else set()
    fixed = known.fixed(names or ())
    for part in own_parts(select):
        for node in part.walk(prune=lambda n: isinstance(n, exp.AggFunc | exp.Query)):
            if isinstance(node, exp.Column | exp.Star) and node.find_ancestor(exp.AggFunc) is None:
                aliased = isinstance(node, exp.Column) and known.hides(node.name)
                if aliased or node.sql() in same or _below(node, same):
                    continue
                if known.name(node) not in fixed:
                    return True
    return False


def _below(node: exp.Expr, terms: set[str]) -> bool:
    while node.parent is not None and not isinstance(node.parent, exp.Query):
        node = node.parent
        if node.sql() in terms:
            return True
    return False


def _inner(query: exp.Expr, facts: Facts) -> Iterator[tuple[exp.Select, Facts]]:
    """The SELECTs of conditions and results."""
    for select in query.find_all(exp.Select):
        if select is not query:
            yield select, facts


def _depends_on_order(inner: tuple[exp.Select, Facts]) -> bool:
    select, facts = inner
    return select.args.get("limit") is not None or _loose(select, facts)


def signature(
    query: exp.Expr,
    plan: tuple[tuple[Any, ...], ...],
    facts: Facts,
    names: Mapping[str, str],
    *,
    whole: bool,
) -> Signature:
    """Returns what decides the order of a query's rows, read from its plan.

    Sources of one row are left out, and what only looks up or filters: DISTINCT keeps the first of
    equal rows where it is, an index without its bounds still has one order.

    Args:
        query: The tree, for the sources and columns.
        plan: The rows of EXPLAIN QUERY PLAN.
        facts: Of the original.
        names: New aliases, each with the former one.
        whole: Whether the subqueries of conditions count as well.
    """
    children: dict[int, list[tuple[int, str]]] = {}
    for number, parent, _, detail in plan:
        children.setdefault(parent, []).append((number, str(detail)))
    single = {
        source.alias_or_name.casefold()
        for select in query.find_all(exp.Select)
        for source in sources(select)
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select)
        and (_limit_one(source.this) or at_most_one_row(source.this, facts.schema))
    }  # fmt: skip
    columns = tuple(sorted({c.name.casefold() for c in query.find_all(exp.Column)}))
    reader = _Reader(children, single, names, columns, whole=whole)
    return reader.read(0)


def _limit_one(select: exp.Select) -> bool:
    limit = select.args.get("limit")
    return limit is not None and limit.expression.sql() == "1"


class _Reader:
    def __init__(
        self,
        children: Mapping[int, list[tuple[int, str]]],
        single: set[str],
        names: Mapping[str, str],
        columns: tuple[str, ...],
        *,
        whole: bool,
    ) -> None:
        self._children = children
        self._single = single
        self._names = names
        self._columns = columns
        self._whole = whole
        self._derived: dict[str, Signature] = {}

    def read(self, parent: int) -> Signature:
        found: list[Any] = []
        for number, detail in self._children.get(parent, ()):
            for start in ("CO-ROUTINE ", "MATERIALIZE "):
                if detail.startswith(start):
                    self._derived[detail.removeprefix(start).casefold()] = self.read(number)
                    break
            else:
                found.extend(self._step(number, detail))
        return tuple(found)

    def _step(self, number: int, detail: str) -> Iterator[Any]:
        if _SUBQUERY.match(detail):
            if self._whole and (inner := self.read(number)):
                yield "inside", inner
        elif match := _SORTS.match(detail):
            yield "sort", match[1]
        elif match := _READS.match(detail):
            name, access = match[1].casefold(), match[2] or "rowid"
            if name in self._derived:
                if name not in self._single:
                    yield from self._derived[name]
            elif name != "constant row":
                access = _KEY.sub("", access).replace("COVERING ", "")
                access = "rowid" if access == "INTEGER PRIMARY KEY" else access
                own = self._columns if access.startswith("AUTOMATIC") else ()
                yield self._names.get(name, name), _KEY.sub("", access), own
        else:
            yield detail, self.read(number)
