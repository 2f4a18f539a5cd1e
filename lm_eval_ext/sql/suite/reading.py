"""What golds ask of rows: constants by column, columns that are compared, conditions of each row.

Nothing here decides whether an answer is right. A query that is read wrongly or not at all only
makes rows that are less to the point.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field

from sqlglot import exp

from lm_eval_ext.sql.parsing import (
    COMPARISONS,
    UnparsedQuery,
    find_source,
    parse,
    select_of,
    sources,
    table_of,
    to_sql,
)
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.suite.columns import Domain
from lm_eval_ext.sql.values import Value, quoted

Name = tuple[str, str]
"""A table and a column, in lower case."""

Domains = Mapping[Name, Domain]

Place = tuple[int, str]
"""A row that a SELECT reads: the SELECT's number in the query, and the alias."""

Cell = tuple[Place, str]
"""A column of such a row."""

_MOST_REPEATS = 20
_BARE = (exp.Max, exp.Min, exp.Avg, exp.Paren, exp.Lower, exp.Upper)
"""What may stand around a column that a constant is compared with."""


@dataclass
class Wish:
    """What a gold asks of rows.

    Attributes:
        gold: Its text.
        tables: The table of each row that it reads, in the order of FROM.
        equal: Pairs of cells that it compares with each other.
        conditions: A cell, SQL text of a condition on it alone, in which it is ``v``, and the
            constants in it with their neighbours.
        allowed: For each condition, the vocabulary's values that satisfy it.
        grouped: The cells of GROUP BY.
        outputs: The cells that it returns.
        means: Cells that are compared with an average, each with the cell that is averaged.
        sizes: Sizes of groups that HAVING compares, and those beside them.
    """

    gold: str
    tables: dict[Place, str] = field(default_factory=dict)
    equal: list[tuple[Cell, Cell]] = field(default_factory=list)
    conditions: list[tuple[Cell, str, list[Value]]] = field(default_factory=list)
    allowed: list[list[Value]] = field(default_factory=list)
    grouped: list[Cell] = field(default_factory=list)
    outputs: list[Cell] = field(default_factory=list)
    means: list[tuple[Cell, Cell]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def name_of(self, cell: Cell) -> Name:
        """The table and the column of a cell."""
        return self.tables[cell[0]], cell[1]


def read_wishes(golds: Iterable[str], schema: Schema, domains: Domains) -> list[Wish]:
    """Reads golds, and names their constants to the columns' domains; skips what it cannot read."""
    wishes = []
    for gold in golds:
        with suppress(UnparsedQuery, RecursionError, KeyError):
            wishes.append(_Reader(gold, schema, domains).wish)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as scratch:
        register(scratch)
        for wish in wishes:
            wish.allowed = [
                _satisfying(scratch, text, schema, wish.name_of(cell), domains)
                for cell, text, _ in wish.conditions
            ]
    return wishes


class _Reader:
    def __init__(self, gold: str, schema: Schema, domains: Domains) -> None:
        self.wish = Wish(gold)
        self._schema, self._domains = schema, domains
        tree = parse(gold, schema)
        self._numbers = {id(s): i for i, s in enumerate(tree.find_all(exp.Select, bfs=True))}
        for select in tree.find_all(exp.Select, bfs=True):
            for source in sources(select):
                table = table_of(source, schema)
                if table is not None and not table.view:
                    place = (self._numbers[id(select)], source.alias_or_name.casefold())
                    self.wish.tables[place] = table.name.casefold()
        self.wish.outputs = [cell for cell in self._outputs(tree) if cell]
        for node in tree.walk():
            if isinstance(node, (exp.SetOperation, exp.In)):
                self._align(node)
            elif isinstance(node, (*COMPARISONS, exp.Between, exp.Like)):
                self._compare(node)
            elif isinstance(node, exp.Group):
                self.wish.grouped += filter(None, map(self._cell, node.expressions))

    def _cell(self, node: exp.Expr | None) -> Cell | None:
        """The table's cell that an expression is, also through derived tables."""
        if not isinstance(node, exp.Column):
            return None
        name = node.name.casefold()
        found = find_source(node.table.casefold(), name, select_of(node), self._schema)
        if found is None:
            return None
        select, source = found
        if isinstance(source, exp.Subquery):
            inner = source.this.find(exp.Select)
            outputs = {s.alias_or_name.casefold(): s.unalias() for s in inner.selects}
            return self._cell(outputs.get(name)) if inner is not select else None
        place = (self._numbers[id(select)], source.alias_or_name.casefold())
        table = self.wish.tables.get(place)
        return (place, name) if table and self._schema[table].column(name) else None

    def _outputs(self, query: exp.Expr) -> list[Cell | None]:
        select = query.find(exp.Select)
        return [self._cell(s.unalias()) for s in select.selects] if select else []

    def _align(self, node: exp.Expr) -> None:
        """Columns that a set operation or IN compares."""
        if isinstance(node, exp.In):
            query = node.args.get("query")
            if query is None:
                self._compare(node)
                return
            left: list[Cell | None] = [self._cell(node.this)]
            right = self._outputs(query)
        else:
            left, right = self._outputs(node.this), self._outputs(node.expression)
        for one, two in zip(left, right, strict=False):
            if one and two:
                self.wish.equal.append((one, two))

    def _compare(self, node: exp.Expr) -> None:
        sides = [node.this, node.args.get("expression")]
        constants = [
            part for part in (*node.args.values(), *node.expressions) if _is_constant(part)
        ]
        cells = {c for column in node.find_all(exp.Column) if (c := self._cell(column))}
        if len(cells) == 2 and not constants and all(isinstance(s, exp.Column) for s in sides):  # noqa: PLR2004
            one, two = map(self._cell, sides)
            if one and two:
                self.wish.equal.append((one, two))
            return
        for side in sides:  # the scalar subquery's output is of the other side's kind
            if isinstance(side, exp.Subquery):
                other = next((self._cell(s) for s in sides if s is not side), None)
                inner = side.this.find(exp.Select)
                output = inner.selects[0].unalias() if inner and inner.selects else None
                bare = output.find(exp.Column) if output else None
                if other and (found := self._cell(bare)):
                    mean = isinstance(output, exp.Avg)
                    (self.wish.means if mean else self.wish.equal).append((other, found))
        if node.find(exp.Count) is not None:
            self._size(constants)
        elif len(cells) == 1 and constants and node.find(exp.Select) is None:
            (cell,) = cells
            near = self._name(node, cell, constants)
            self.wish.conditions.append((cell, _with_v(node), near))

    def _size(self, constants: list[exp.Expr]) -> None:
        for constant in constants:
            number = _value(constant)
            if isinstance(number, int) and number <= _MOST_REPEATS:
                self.wish.sizes += [size for size in (number, number + 1, number - 1) if size > 0]

    def _name(self, node: exp.Expr, cell: Cell, constants: list[exp.Expr]) -> list[Value]:
        """Names constants to the domain of a column; returns them with their neighbours."""
        domain = self._domains[self.wish.name_of(cell)]
        around = next(iter(node.find_all(exp.Column))).parent
        while isinstance(around, _BARE):
            around = around.parent
        near: list[Value] = []
        for constant in constants:
            value = _value(constant)
            if isinstance(node, exp.Like):
                for piece in str(value).replace("_", "%").split("%"):
                    near += domain.contain(piece)
            elif around is node:
                near += domain.name(value)
            elif isinstance(value, int) and "LENGTH" in to_sql(node).upper():
                near += domain.cut(value)
        return near


def _is_constant(part: object) -> bool:
    return isinstance(part, exp.Literal) or (
        isinstance(part, exp.Neg) and isinstance(part.this, exp.Literal)
    )


def _value(constant: exp.Expr) -> Value:
    if isinstance(constant, exp.Neg):
        inner = _value(constant.this)
        return -inner if isinstance(inner, (int, float)) else inner
    text = str(constant.this)
    if constant.args.get("is_string"):
        return text
    try:
        return int(text)
    except ValueError:
        return float(text)


def _with_v(node: exp.Expr) -> str:
    """The condition on a value v; an aggregate is that of a group of one row."""
    copy = node.copy()
    for part in [*copy.find_all(exp.AggFunc), *copy.find_all(exp.Column)]:
        part.replace(exp.column("v"))
    return to_sql(copy)


def _satisfying(
    scratch: sqlite3.Connection, text: str, schema: Schema, name: Name, domains: Domains
) -> list[Value]:
    """The values of a column's vocabulary that satisfy a condition, by SQLite's own rules."""
    column = schema[name[0]][name[1]]
    collation = column.collation if column.collation in ("NOCASE", "RTRIM") else "BINARY"
    scratch.execute("DROP TABLE IF EXISTS c")
    scratch.execute(f"CREATE TABLE c (v {quoted(column.type or 'BLOB')} COLLATE {collation})")
    scratch.executemany("INSERT INTO c VALUES (?)", [(v,) for v in domains[name].vocabulary])
    try:
        return [row[0] for row in scratch.execute(f"SELECT v FROM c WHERE {text}")]
    except sqlite3.Error:
        return []


def compared(wishes: Iterable[Wish]) -> Iterator[tuple[Name, Name]]:
    """Yields pairs of different columns that golds compare."""
    for wish in wishes:
        for one, two in [*wish.equal, *wish.means]:
            if wish.name_of(one) != wish.name_of(two):
                yield wish.name_of(one), wish.name_of(two)
