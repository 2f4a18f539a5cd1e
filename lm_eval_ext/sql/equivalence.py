"""Proofs that a mutant is equivalent to its gold: three rules, and no more.

Each rule drops a part of a query that changes no result on any database that keeps its declared
keys and NOT NULLs. Two queries that end up the same are equivalent, up to the order that neither
asks for. What these rules do not prove may still be true; it is reported as not distinguished.

Nothing is concluded from foreign keys (Spider's databases break theirs), outer joins, views and
subqueries in FROM, and collations other than BINARY.
"""

from collections.abc import Callable, Iterable

from sqlglot import exp

from lm_eval_ext.sql.parsing import (
    COMPARISONS,
    UnparsedQuery,
    conjuncts,
    find_source,
    parse,
    parts_of,
    select_of,
    sources,
    table_of,
    to_sql,
)
from lm_eval_ext.sql.schema import Schema, Table

Name = tuple[str, str]
"""A column: its source's alias and its own name, both in lower case."""


def equivalent(gold: str, mutant: str, schema: Schema) -> str | None:
    """Returns why two queries have the same result on every database, None if it is not proven."""
    try:
        one, two = _simplified(gold, schema), _simplified(mutant, schema)
    except UnparsedQuery:
        return None
    if one[0] != two[0]:
        return None
    used = [reason for reason in (*one[1], *two[1]) if reason not in one[1] or reason not in two[1]]
    return "; ".join(dict.fromkeys(used or one[1])) or "both are the same query"


def _simplified(sql: str, schema: Schema) -> tuple[str, list[str]]:
    tree = parse(sql, schema)
    used: list[str] = []
    # What one rule drops, another may have waited for.
    while found := _step(tree, schema):
        used.append(found)
    return to_sql(tree), used


def _step(tree: exp.Expr, schema: Schema) -> str | None:
    for select in tree.find_all(exp.Select):
        rows = _Rows(select, schema)
        for reason, rule in _RULES:
            if rows.tables and rule(select, rows):
                return reason
    return None


class _Rows:
    """What keys and conditions say of a SELECT's rows, before they are grouped.

    Attributes:
        tables: By alias; empty if it reads anything but tables in inner joins.
        constants: Columns that WHERE or ON set equal to a literal.
        equal: Pairs of columns that it sets equal.
        known: Columns that a comparison keeps from being NULL.
    """

    def __init__(self, select: exp.Select, schema: Schema) -> None:
        self.select, self._schema = select, schema
        joins = select.args.get("joins") or ()
        plain = all(
            not any(join.args.get(key) for key in ("side", "using", "method"))
            and join.args.get("kind") in (None, "", "INNER", "CROSS")
            for join in joins
        )
        found = {source.alias_or_name.casefold(): source for source in sources(select)}
        tables = {alias: table_of(source, schema) for alias, source in found.items()}
        self.tables: dict[str, Table] = {
            alias: table for alias, table in tables.items() if table is not None and not table.view
        }
        if not plain or len(self.tables) < len(joins) + 1:
            self.tables = {}
        self.constants: set[Name] = set()
        self.equal: list[tuple[Name, Name]] = []
        self.known: set[Name] = set()
        on = [join.args["on"] for join in joins if join.args.get("on") is not None]
        for part in [p for one in on for p in conjuncts(one)] + parts_of(select, "where"):
            self._learn(part.unnest())

    def _learn(self, part: exp.Expr) -> None:
        if not isinstance(part, tuple(COMPARISONS)):
            return
        one, two = self.name(part.this), self.name(part.expression)
        self.known |= {name for name in (one, two) if name is not None}
        if isinstance(part, exp.EQ) and one is not None:
            if isinstance(part.expression, exp.Literal):
                self.constants.add(one)
            elif two is not None and self.affinity(one) == self.affinity(two):
                self.equal += [(one, two), (two, one)]

    def affinity(self, name: Name) -> str:
        """What SQLite makes of a column's type."""
        return self.tables[name[0]][name[1]].affinity

    def name(self, node: exp.Expr | None) -> Name | None:
        """The column of this SELECT's tables that a node is; None for aliases of results."""
        if not isinstance(node, exp.Column) or not self.tables:
            return None
        column = node.name.casefold()
        aliases = {selected.alias.casefold() for selected in self.select.selects if selected.alias}
        if not node.table and column in aliases:
            return None
        found = find_source(node.table.casefold(), column, select_of(node), self._schema)
        if found is None or found[0] is not self.select:
            return None
        name = (found[1].alias_or_name.casefold(), column)
        declared = self.tables[name[0]].column(column)
        return name if declared is not None and declared.collation == "BINARY" else None

    def fixed(self, given: Iterable[Name] = ()) -> set[Name]:
        """The columns that are the same in any two rows that agree in ``given``."""
        known = set(given) | self.constants
        while True:
            more = {two for one, two in self.equal if one in known}
            for alias, table in self.tables.items():
                if self._has_key(alias, known):
                    more |= {(alias, column) for column in table.by_name}
            if more <= known:
                return known
            known |= more

    def one_row(self, given: Iterable[Name] = ()) -> bool:
        """Whether at most one row has the same values of ``given`` (without any: at all)."""
        known = self.fixed(given)
        return bool(self.tables) and all(self._has_key(alias, known) for alias in self.tables)

    def _has_key(self, alias: str, known: set[Name]) -> bool:
        table = self.tables[alias]
        return any(
            all(
                (name := (alias, column.casefold())) in known
                and (table[column].not_null or name in self.known)
                for column in key
            )
            for key in table.unique_keys
        )

    def groups(self) -> list[Name | None]:
        """The columns of GROUP BY; None for terms that are no columns."""
        group = self.select.args.get("group")
        return [] if group is None else [self.name(term) for term in group.expressions]

    def results(self) -> set[Name]:
        """The columns that the result holds as they are."""
        found: set[Name] = set()
        for selected in self.select.selects:
            node = selected.unalias()
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and node.is_star):
                own = getattr(node, "table", "").casefold()
                found |= {
                    (a, c) for a, t in self.tables.items() if own in ("", a) for c in t.by_name
                }
            else:
                found |= {name for name in [self.name(node)] if name is not None}
        return found


def _one_row(select: exp.Select, rows: _Rows) -> bool:
    """``SELECT DISTINCT COUNT(*) FROM t`` and ``SELECT COUNT(*) FROM t ORDER BY 1 LIMIT 2``."""
    some = _limit(select) != 0 and select.args.get("offset") is None
    return some and _has_one_row(select, rows) and _drop(select, "order", "limit", "distinct")


def _has_one_row(select: exp.Select, rows: _Rows) -> bool:
    if groups := rows.groups():
        return None not in groups and {g for g in groups if g} <= rows.fixed()
    return _is_aggregate(select) or rows.one_row()


def _limit(select: exp.Select) -> int | None:
    """The number of a LIMIT; None without one, 0 if it cannot be read."""
    limit = select.args.get("limit")
    if limit is None:
        return None
    return int(limit.expression.name) if limit.expression.name.isdigit() else 0


def _distinct_rows(select: exp.Select, rows: _Rows) -> bool:
    """``SELECT DISTINCT id, name FROM t``, ``SELECT DISTINCT a, COUNT(*) FROM t GROUP BY a``."""
    given, groups = rows.results(), rows.groups()
    if groups:
        # A column that varies within a group is taken from any of its rows.
        names = {name for name in groups if name is not None}
        differ = None not in groups and names <= rows.fixed(given & rows.fixed(names))
    else:
        differ = not _is_aggregate(select) and rows.one_row(given)
    return differ and _drop(select, "distinct")


def _same_sort_term(select: exp.Select, rows: _Rows) -> bool:
    """``WHERE a = 1 ORDER BY a``, ``ORDER BY id, name``."""
    order = select.args.get("order")
    if order is None:
        return False
    before: set[Name] = set()
    for term in order.expressions:
        name = rows.name(term.this)
        if _counts_one(term.this, rows) or (name is not None and name in rows.fixed(before)):
            order.set("expressions", [other for other in order.expressions if other is not term])
            return bool(order.expressions) or _drop(select, "order")
        before |= set() if name is None else {name}
    return False


def _counts_one(term: exp.Expr, rows: _Rows) -> bool:
    """Whether a term counts the rows of groups that are single rows."""
    groups = rows.groups()
    if not isinstance(term, exp.Count) or not groups or None in groups:
        return False
    counted = term.this.expressions[0] if isinstance(term.this, exp.Distinct) else term.this
    name = rows.name(counted)
    never_null = name is not None and rows.tables[name[0]][name[1]].not_null
    one = rows.one_row(name for name in groups if name is not None)
    return one and (isinstance(counted, exp.Star) or never_null)


def _is_aggregate(select: exp.Select) -> bool:
    own = [select.args[clause] for clause in ("having", "order") if select.args.get(clause)]
    return any(
        call.parent_select is select and (isinstance(call, exp.AggFunc) or call.name == "STDEV")
        for part in (*select.selects, *own)
        for call in part.find_all(exp.AggFunc, exp.Anonymous)
        if not (isinstance(call, exp.Min | exp.Max) and call.expressions)
    )


def _drop(select: exp.Select, *clauses: str) -> bool:
    """Removes clauses; returns whether there was one."""
    found = any(select.args.get(clause) is not None for clause in clauses)
    for clause in clauses:
        select.set(clause, None)
    return found


_RULES: tuple[tuple[str, Callable[[exp.Select, _Rows], bool]], ...] = (
    ("the query gives at most one row", _one_row),
    ("the rows differ from each other anyway", _distinct_rows),
    ("all rows tie in that sort term", _same_sort_term),
)
