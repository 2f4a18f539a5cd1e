"""Whether a rewrite gives its rows in the gold's order, where the gold leaves it open.

By the ``reference`` semantics the order of rows counts even without ORDER BY, and which of tied
rows is first, and the last bit of a sum of floats. A rewrite is kept in two cases:

- Its result is *settled*: it is the same in whatever order SQLite reads the tables.
- SQLite reads the tables of both queries in the same order (EXPLAIN QUERY PLAN). The plan depends
  on the schema and the stored statistics (sqlite_stat1), not on the rows, so that added rows do
  not change it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from lm_eval_ext.sql.parsing import sources, table_of
from lm_eval_ext.sql.proofs.facts import at_most_one_row, facts_of
from lm_eval_ext.sql.proofs.places import aggregates, is_aggregate, limit_of, own_parts
from lm_eval_ext.sql.rewrites.base import Change, Facts, declared

_READS = re.compile(r"(?:SCAN|SEARCH) (?:TABLE )?(.+?)(?: USING (.*?))?(?: LEFT-JOIN)?$")
_KEY = re.compile(r" \([^()]*\)$")
_EQUAL = re.compile(r"(\w+)=\?")
_SORTS = re.compile(r"USE TEMP B-TREE FOR (?:.* OF )?(GROUP BY|ORDER BY)")
_SUBQUERY = re.compile(
    r"(?:CORRELATED |REUSE )?(?:LIST|SCALAR) SUBQUERY|USING .* FOR IN-OPERATOR|BLOOM FILTER"
    r"|USE TEMP B-TREE FOR (?:DISTINCT|.*\()"
)
_STEP = 3
_AGGREGATES_OF_ANY_ORDER = (exp.Count, exp.Min, exp.Max)

Step = tuple[str, ...]
Signature = tuple[Any, ...]


def same_groups(gold: exp.Expr, other: exp.Expr, facts: Facts) -> bool:
    """Whether groups are read in the same order, where a value depends on it.

    SQLite sorts the rows of GROUP BY by its terms and by the first of the other columns that
    results, ORDER BY and HAVING name. So these must be the same, and in the same order.
    """
    return _read_in_groups(gold, facts) == _read_in_groups(other, facts)


def _read_in_groups(query: exp.Expr, facts: Facts) -> "Counter[tuple[str, ...]]":
    found: Counter[tuple[str, ...]] = Counter()
    for select in query.find_all(exp.Select):
        if select.args.get("group") is not None and _loose(select, facts):
            parts = [*select.expressions, select.args.get("order"), select.args.get("having")]
            names = (
                node.name.casefold()
                for part in parts
                if part is not None
                for node in part.dfs(prune=lambda n: isinstance(n, exp.Query))
                if isinstance(node, exp.Column)
            )
            found[tuple(dict.fromkeys(names))] += 1
    return found


def same_order(
    gold: tuple[exp.Expr, str], other: tuple[exp.Expr, str], change: Change, facts: Facts
) -> bool:
    """Whether two queries with the same set of rows give them in the same order.

    False also if SQLite refuses one of them.
    """
    plans = facts.plan(gold[1]), facts.plan(other[1])
    if plans[0] is None or plans[1] is None:
        return False
    inside = change.outer_only or not _depends_on_order(other[0], facts)
    if inside and settled(gold[0], facts) and settled(other[0], facts):
        return True
    first = signature(gold[0], plans[0], facts, {}, whole=not inside)
    second = signature(other[0], plans[1], facts, change.names, whole=not inside)
    if first == second:
        return True
    return inside and _ascending(gold[0], first, facts) and _ascending(other[0], second, facts)


def _ascending(query: exp.Expr, steps: Signature, facts: Facts) -> bool:
    """Whether the rows differ from each other and are sorted by all results in turn."""
    if query.args.get("order") is not None or query.args.get("limit") is not None:
        return False
    if isinstance(query, exp.SetOperation):
        return settled(query, facts)
    return isinstance(query, exp.Select) and _select_ascends(query, steps, facts)


def _select_ascends(query: exp.Select, steps: Signature, facts: Facts) -> bool:
    if not isinstance(query.expressions[0], exp.Column):
        return False
    first, group = query.expressions[0], query.args.get("group")
    if group is not None:
        return len(query.expressions) == 1 and group.expressions == [first]
    place = declared(first, facts.schema)
    if place is None or len(steps) != 1 or len(list(sources(query))) != 1 or len(steps[0]) != _STEP:
        return False
    if steps[0][1] == "rowid":
        return place[1].name == place[0].rowid_alias
    index = steps[0][1].removeprefix("INDEX ").replace("'", "''")
    if len(query.expressions) > 1 or (place[1].name,) not in place[0].unique_keys:
        return False
    asked = f"SELECT name, desc, coll FROM pragma_index_xinfo('{index}') WHERE seqno = 0"
    return facts.ask(asked) == ((place[1].name, 0, "BINARY"),)


def settled(query: exp.Expr, facts: Facts) -> bool:
    """Whether a query's result does not depend on the order in which tables are read."""
    if isinstance(query, exp.SetOperation):
        return query.args.get("limit") is None and _settled_set(query, facts)
    if not isinstance(query, exp.Select) or _loose(query, facts):
        return False
    group = query.args.get("group")
    if group is not None and len(group.expressions) == 1:
        return True
    return at_most_one_row(query, facts.schema) or _sorted_throughout(query, facts)


def _sorted_throughout(select: exp.Select, facts: Facts) -> bool:
    """Whether rows that tie in ORDER BY are equal."""
    order = select.args.get("order")
    if order is None:
        return False
    known = facts_of(select, facts.schema)
    names = [known.name(term.this) for term in order.expressions]
    terms = [name for name in names if name is not None]
    if known.one_row(terms):
        return True
    selected = known.selected_names()
    plain = all(isinstance(s.unalias(), exp.Column | exp.Star) for s in select.expressions)
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
    return has_bare_columns(select, facts)


def _argument(call: exp.Expr) -> exp.Expr:
    inner = call.this
    found: exp.Expr = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
    return found


def has_bare_columns(select: exp.Select, facts: Facts) -> bool:
    """Whether a column outside of aggregates may differ within a group."""
    known = facts_of(select, facts.schema)
    terms = _group_terms(select)
    same = {term.sql() for term in terms}
    names = [known.name(term) for term in terms]
    fixed = known.fixed([name for name in names if name is not None])
    for part in own_parts(select):
        for node in part.walk(prune=lambda n: isinstance(n, exp.AggFunc | exp.Query)):
            if isinstance(node, exp.Column | exp.Star) and node.find_ancestor(exp.AggFunc) is None:
                aliased = isinstance(node, exp.Column) and known.hides(node.name)
                if aliased or node.sql() in same or _below(node, same):
                    continue
                if known.name(node) not in fixed:
                    return True
    return False


def _group_terms(select: exp.Select) -> list[exp.Expr]:
    """The terms of GROUP BY, with the result for its number."""
    group = select.args.get("group")
    found = []
    for term in [] if group is None else group.expressions:
        position = int(term.this) if isinstance(term, exp.Literal) and term.is_int else 0
        inside = 0 < position <= len(select.expressions)
        found.append(select.expressions[position - 1].unalias() if inside else term)
    return found


def _below(node: exp.Expr, terms: set[str]) -> bool:
    while node.parent is not None and not isinstance(node.parent, exp.Query):
        node = node.parent
        if node.sql() in terms:
            return True
    return False


def _depends_on_order(query: exp.Expr, facts: Facts) -> bool:
    """Whether a subquery's result depends on the order in which rows are read."""
    return any(
        select is not query and (select.args.get("limit") is not None or _loose(select, facts))
        for select in query.find_all(exp.Select)
    )


def signature(
    query: exp.Expr,
    plan: tuple[tuple[Any, ...], ...],
    facts: Facts,
    names: Mapping[str, str],
    *,
    whole: bool,
) -> Signature:
    """Returns what decides the order of a query's rows, read from its plan.

    Sources of one row are left out, also those of one row for each row of the others, which a key
    looks up. So is what only filters: DISTINCT keeps the first of equal rows where it is, and an
    index has one order, whatever its bounds.

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
    keys: dict[str, list[frozenset[str]]] = {}
    rowids = {
        source.alias_or_name.casefold(): table.rowid_alias.casefold()
        for source in query.find_all(exp.Table)
        if (table := table_of(source, facts.schema)) is not None and table.rowid_alias
    }
    listed = _listed(query)
    for select in query.find_all(exp.Select):
        for alias, own in _keys_of(select, facts):
            usable = [key for key in own if not key & listed]
            keys[alias] = [] if alias in keys else usable
    columns = tuple(sorted({c.name.casefold() for c in query.find_all(exp.Column)}))
    reader = _Reader(children, keys, rowids, names, columns, whole=whole)
    return reader.read(0)


def _listed(query: exp.Expr) -> set[str]:
    """Returns the names of columns that may be looked up as one of several values.

    The plan says ``x=?`` for x IN (...), too, and for x = y AND y IN (...).
    """
    found = {
        column.name.casefold()
        for node in query.find_all(exp.In, exp.Or)
        for column in (node.this if isinstance(node, exp.In) else node).find_all(exp.Column)
    }
    pairs = [
        {side.name.casefold() for side in (node.this, node.expression)}
        for node in query.find_all(exp.EQ)
        if isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column)
    ]
    while more := [pair for pair in pairs if pair & found and not pair <= found]:
        found = found.union(*more)
    return found


def _keys_of(select: exp.Select, facts: Facts) -> Iterator[tuple[str, list[frozenset[str]]]]:
    """Yields each source's alias with its keys; the key of no columns is that of one row."""
    for source in sources(select):
        alias = source.alias_or_name.casefold()
        table, inner = table_of(source, facts.schema), source.this
        if table is not None:
            keys = [frozenset(c.casefold() for c in key) for key in table.unique_keys]
            yield alias, keys
        elif isinstance(source, exp.Subquery) and isinstance(inner, exp.Select):
            if limit_of(inner) == 1 or at_most_one_row(inner, facts.schema):
                yield alias, [frozenset()]
            elif inner.args.get("distinct") or inner.args.get("group"):
                group = inner.args.get("group")
                terms = inner.selects if group is None else group.expressions
                known = {r.unalias(): r.alias_or_name.casefold() for r in inner.selects}
                if all(term.unalias() in known for term in terms):
                    yield alias, [frozenset(known[term.unalias()] for term in terms)]


class _Reader:
    def __init__(
        self,
        children: Mapping[int, list[tuple[int, str]]],
        keys: Mapping[str, list[frozenset[str]]],
        rowids: Mapping[str, str],
        names: Mapping[str, str],
        columns: tuple[str, ...],
        *,
        whole: bool,
    ) -> None:
        self._children = children
        self._keys = keys
        self._rowids = rowids
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
            old = self._names.get(name, name)
            bound = frozenset(column.casefold() for column in _EQUAL.findall(access))
            bound = bound | ({self._rowids.get(name, "")} if "rowid" in bound else set())
            if any(key <= bound for key in self._keys.get(name, ())):
                return
            if name in self._derived and access == "rowid":
                yield from self._derived[name]
            elif old and name != "constant row":
                access = _KEY.sub("", access).replace("COVERING ", "")
                access = "rowid" if access == "INTEGER PRIMARY KEY" else access
                yield old, access, self._columns if access.startswith("AUTOMATIC") else ()
        else:
            yield detail, self.read(number)
