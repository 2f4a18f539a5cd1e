"""A gold's SELECTs: which tables each reads, under which conditions, and whose its columns are."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sqlglot import exp

from lm_eval_ext.sql.parsing import conjuncts, find_source, parts_of, sources, to_sql
from lm_eval_ext.sql.schema import Schema

Cell = tuple[int, str, str]
"""A column of a row that a SELECT reads: the SELECT's number, alias, column; in lower case."""


@dataclass
class Scope:
    """One SELECT, its number in the query, and the tables and SELECTs in its FROM by alias."""

    number: int
    select: exp.Select
    tables: dict[str, str] = field(default_factory=dict)
    derived: dict[str, "Scope"] = field(default_factory=dict)

    @cached_property
    def parts(self) -> list[exp.Expr]:
        """The conditions of ON, WHERE and HAVING, all of which must hold."""
        joined = (join.args.get("on") for join in self.select.args.get("joins") or ())
        found = [part for on in joined if on is not None for part in conjuncts(on)]
        found += parts_of(self.select, "where") + parts_of(self.select, "having")
        return [part.unnest() for part in found]

    @cached_property
    def groups(self) -> list[exp.Expr]:
        """The terms of GROUP BY."""
        group = self.select.args.get("group")
        return list(group.expressions) if group is not None else []

    @cached_property
    def orders(self) -> list[exp.Expr]:
        """The terms of ORDER BY."""
        order = self.select.args.get("order")
        return [ordered.this for ordered in order.expressions] if order is not None else []

    @cached_property
    def outputs(self) -> list[exp.Expr]:
        """Its result columns, without their aliases."""
        return [column.unalias() for column in self.select.selects]


class Query:
    """A gold's SELECTs, and the table of each of its columns.

    Attributes:
        tree: The gold.
        text: Its SQL.
        scopes: Its SELECTs, the outermost first.
        opaque: Whether it reads anything other than tables, such as a view.
    """

    def __init__(self, tree: exp.Expr, schema: Schema) -> None:
        self.tree = tree
        self.text = to_sql(tree)
        self.opaque = False
        self._cached: dict[str, Any] = {}
        self._schema = schema
        self._by_select: dict[int, Scope] = {}
        self._known: dict[tuple[int, str, str], Cell | None] = {}
        self._within: dict[int, list[Cell]] = {}
        self._used: dict[int, list[Cell]] = {}
        self.scopes: list[Scope] = []
        for select in tree.find_all(exp.Select, bfs=True):
            scope = Scope(len(self.scopes), select)
            self.scopes.append(scope)
            self._by_select[id(select)] = scope
        for scope in self.scopes:
            self._fill(scope)

    @cached_property
    def tables(self) -> frozenset[str]:
        """Lower-case names of all tables that it reads."""
        return frozenset(name for scope in self.scopes for name in scope.tables.values())

    def cached(self, name: str, make: "Callable[[Query], Any]") -> Any:
        """Returns a value that depends on the gold alone, computed once."""
        if name not in self._cached:
            self._cached[name] = make(self)
        return self._cached[name]

    def scope_of(self, query: exp.Expr) -> Scope | None:
        """Returns the scope of a SELECT, of one in brackets, or of a set operation's first."""
        node = query
        while isinstance(node, exp.Subquery | exp.SetOperation | exp.Paren):
            node = node.this
        return self._by_select.get(id(node))

    def cell(self, column: exp.Expr, scope: Scope) -> Cell | None:
        """Returns the cell that a column refers to within a scope, None if it is not a table's."""
        if not isinstance(column, exp.Column):
            return None
        key = (scope.number, column.table.lower(), column.name.lower())
        if key not in self._known:
            self._known[key] = self._resolve(key[1], key[2], scope)
        return self._known[key]

    def _resolve(self, alias: str, name: str, scope: Scope) -> Cell | None:
        found = find_source(alias, name, scope.select, self._schema)
        if found is None:
            return None
        owner, source = self._by_select[id(found[0])], found[1].alias_or_name.lower()
        if source in owner.derived:
            return self._output(owner.derived[source], name)
        table = owner.tables.get(source)
        known = table is not None and self._schema[table].column(name) is not None
        return (owner.number, source, name) if known else None

    def cells_in(self, scope: Scope, alias: str) -> list[Cell]:
        """Returns the cells of one of a SELECT's rows that the query names."""
        return [cell for cell in self.cells_of(scope) if cell[:2] == (scope.number, alias)]

    def cells(self, expression: exp.Expr, scope: Scope) -> list[Cell]:
        """Returns the cells of all columns in an expression, without its subqueries."""
        key = id(expression)  # a node of the gold's tree, which lives as long as this object
        if key in self._within:
            return self._within[key]
        found: list[Cell] = []
        self._within[key] = found
        for node in expression.walk(prune=lambda node: isinstance(node, exp.Subquery | exp.Select)):
            if isinstance(node, exp.Column):
                cell = self.cell(node, scope)
                if cell is not None and cell not in found:
                    found.append(cell)
        return found

    def cells_of(self, scope: Scope) -> list[Cell]:
        """Returns the cells of a SELECT's rows that any part of the query names."""
        if scope.number not in self._used:
            found: dict[Cell, None] = {}
            for around in self.scopes:
                for column in around.select.find_all(exp.Column):
                    cell = self.cell(column, around)
                    if cell is not None and cell[0] == scope.number:
                        found[cell] = None
            self._used[scope.number] = list(found)
        return self._used[scope.number]

    def table_of(self, cell: Cell) -> str:
        """Returns the table of a cell's row, in lower case."""
        return self.scopes[cell[0]].tables[cell[1]]

    def _output(self, inner: Scope, name: str) -> Cell | None:
        for column in inner.select.selects:
            if column.alias_or_name.lower() == name:
                return self.cell(column.unalias(), inner)
        return None

    def _fill(self, scope: Scope) -> None:
        for source in sources(scope.select):
            alias = source.alias_or_name.lower()
            if isinstance(source, exp.Table):
                if source.name in self._schema and not self._schema[source.name].view:
                    scope.tables.setdefault(alias, source.name.lower())
                else:
                    self.opaque = True
            else:
                inner = self.scope_of(source)
                if inner is not None:
                    scope.derived[alias] = inner
