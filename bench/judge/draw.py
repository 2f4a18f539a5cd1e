"""Databases drawn at random, which say whether two queries differ at all.

They keep what the original promises: declared keys, references that hold, NULL only where a
column has one, the kind of a column's values. Nothing here is taken from the package's generator.
"""

import random
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date, timedelta

from sqlglot import exp

from bench.judge.query import Answer, Facts, Of, Query, answer, is_day, prepared
from bench.judge.rewrite_queries import settling
from lm_eval_ext.sql.schema import Table
from lm_eval_ext.sql.values import Value, quoted, quoted_all

DATABASES = 50
"""A query that none of so many distinguishes is called not distinguished by anything."""

COPIED, REDRAWN, NULLS = 0.5, 0.4, 0.2
"""How often rows start as the original's, a value of those is drawn anew, a NULL is drawn."""

TRIES = 8
"""For each of them so many are drawn at most, since a gold must be settled by its rows."""


class Drawer:
    """Fills the tables that a gold and similar queries read."""

    def __init__(self, query: Query, others: Sequence[str]) -> None:
        self.facts: Facts = query.facts
        self.chance = random.Random(f"draw {query.gold}")
        queries = [query, *(Query(other, self.facts) for other in others)]
        names = {
            node.name.casefold()
            for one in queries
            for node in one.tree.find_all(exp.Table)
            if node.name in self.facts.schema
        }
        self.tables = self._parents_first(names)
        self.literals = list(dict.fromkeys(v for one in queries for v in one.literals))
        self.like = {
            str(node.expression.this).replace("%", "")
            for one in queries
            for node in one.tree.find_all(exp.Like)
            if isinstance(node.expression, exp.Literal)
        }
        self.compared: dict[Of, list[Value]] = {}
        for one in queries:
            for value, of in one.compared():
                known = self.compared.setdefault(of, [])
                if value not in known:
                    known.append(value)
        self.group: dict[Of, Of] = {}
        for one in queries:
            for a, b in one.equated():
                self.group[self._root(a)] = self._root(b)
        for table in self.tables:
            for key in self.facts.schema[table].foreign_keys:
                if len(key.columns) == len(key.parent_columns) == 1:
                    child = Of(table, key.columns[0].casefold())
                    parent = Of(key.parent.casefold(), key.parent_columns[0].casefold())
                    if parent.table in self.tables:
                        self.group[self._root(child)] = self._root(parent)

    def _root(self, of: Of) -> Of:
        while (up := self.group.get(of, of)) != of:
            of = up
        return of

    def _parents_first(self, names: set[str]) -> list[str]:
        done: list[str] = []

        def visit(name: str, above: tuple[str, ...]) -> None:
            for key in self.facts.schema[name].foreign_keys:
                parent = key.parent.casefold()
                if parent in names and parent not in (*above, name, *done):
                    visit(parent, (*above, name))
            if name not in done:
                done.append(name)

        for name in sorted(names):
            visit(name, ())
        return done

    def __iter__(self) -> Iterator[sqlite3.Connection]:
        while True:
            with closing(prepared(sqlite3.connect(":memory:"))) as connection:
                self._fill(connection)
                yield connection

    def _fill(self, connection: sqlite3.Connection) -> None:
        chance = self.chance
        few = chance.choice((1, 2, 3, 4, 6, 10))
        shared: dict[Of, list[Value]] = {}
        drawn: dict[str, list[dict[str, Value]]] = {}
        for table in self.tables:
            schema = self.facts.schema[table]
            columns = self.facts.columns(table)
            for of in columns:
                root = self._root(of)
                if root not in shared:
                    size = chance.choice((few, few + 1, 2 * few)) + 3 * self.facts.is_key(of)
                    shared[root] = self._pool(root if root.table in self.tables else of, size)
            template = self._template(table) if chance.random() < COPIED else []
            rows: list[dict[str, Value]] = []
            keys = [[c.casefold() for c in key] for key in schema.unique_keys]
            taken: list[set[tuple[Value, ...]]] = [set() for _ in keys]
            for _ in range(chance.choice((1, 2, 3, 5, 8, 12, 20, 30))):
                row = dict(chance.choice(template)) if template else {}
                for of in columns:
                    if of.column not in row or chance.random() < REDRAWN:
                        row[of.column] = self._value(of, shared[self._root(of)])
                if not self._refer(schema, row, drawn):
                    continue
                values = [tuple(row[c] for c in key) for key in keys]
                if any(value in used for value, used in zip(values, taken, strict=True)):
                    continue
                for value, used in zip(values, taken, strict=True):
                    used.add(value)
                rows.append(row)
            drawn[table] = rows
            names = [of.column for of in columns]
            declared = ", ".join(f"{quoted(c.name)} {c.type}" for c in schema.columns)
            connection.execute(f"CREATE TABLE {quoted(schema.name)} ({declared})")
            marks = ", ".join("?" * len(names))
            connection.executemany(
                f"INSERT INTO {quoted(schema.name)} ({quoted_all(names)}) VALUES ({marks})",
                [[row[name] for name in names] for row in rows],
            )
        connection.commit()

    def _template(self, table: str) -> list[dict[str, Value]]:
        """Some rows of the original."""
        names = [of.column for of in self.facts.columns(table)]
        query = f"SELECT {quoted_all(names)} FROM {quoted(table)} LIMIT 2000"
        rows = [dict(zip(names, row, strict=True)) for row in self.facts.connection.execute(query)]
        return self.chance.sample(rows, min(20, len(rows)))

    def _refer(
        self, schema: Table, row: dict[str, Value], drawn: dict[str, list[dict[str, Value]]]
    ) -> bool:
        """Gives declared references values of their parents' rows; False if there is no parent."""
        for key in schema.foreign_keys:
            parents = drawn.get(key.parent.casefold())
            if parents is None or len(key.columns) != len(key.parent_columns):
                continue
            if not parents:
                return False
            parent = self.chance.choice(parents)
            for column, target in zip(key.columns, key.parent_columns, strict=True):
                if row[column.casefold()] is not None:
                    row[column.casefold()] = parent[target.casefold()]
        return True

    def _value(self, of: Of, pool: list[Value]) -> Value:
        if self.facts.has_null(of) and self.chance.random() < NULLS:
            return None
        return self.chance.choice(pool)

    def _pool(self, of: Of, size: int) -> list[Value]:
        """Values for a column and those that it is compared with."""
        chance, kind = self.chance, self.facts.kind(of)
        own = self.facts.values(of)
        pool: list[Value] = chance.sample(own, min(size, len(own)))
        given = self.compared.get(of, [])
        for value in chance.sample(given, min(len(given), chance.choice((0, 1, 1, 2)))):
            number = _number(value)
            if kind in ("integer", "number"):
                if number is not None:
                    pool += [round(number) + step for step in chance.sample((-1, 0, 1), 2)]
            elif isinstance(value, str) and (kind != "date" or is_day(value)):
                pool += [value.replace("%", "")] * chance.choice((1, 2))
        for _ in range(chance.choice((0, 1, 2, size))):
            if kind in ("integer", "number"):
                literals = [v for v in map(_number, self.literals) if v is not None]
                near = chance.choice(
                    [*literals, *(v for v in pool if isinstance(v, int | float)), 1]
                )
                step = chance.choice((-1, 0, 0, 1, 1, 2))
                pool.append(near + step if kind == "number" else round(near) + step)
            elif kind == "date":
                texts = [str(value) for value in [*own, *self.literals] if is_day(str(value))]
                pool.append(_next_day(chance.choice(texts), chance))
            elif not self.facts.is_closed(of):
                pool.append(self._text(pool))
        return pool or [chance.choice((0, 1, 2, "a"))]

    def _text(self, pool: list[Value]) -> Value:
        chance = self.chance
        texts = [v for v in [*pool, *self.literals, *self.like] if isinstance(v, str)] or ["ab"]
        text = chance.choice(texts).replace("%", "")
        other = chance.choice(texts).replace("%", "")
        return chance.choice(
            (text, text.lower(), text.title(), text + " " + other, text[:-1], text[1:],
             other[:3] + text, text + other[-2:], text[: chance.choice((3, 6, 7, 8))])
        )  # fmt: skip


def _number(value: Value) -> int | float | None:
    if isinstance(value, str):
        return float(value) if re.fullmatch(r"-?\d+(\.\d+)?", value) else None
    return value if isinstance(value, int | float) else None


def _next_day(text: str, chance: random.Random) -> str:
    try:
        day = date.fromisoformat(text[:10]) + timedelta(chance.choice((-366, -31, -1, 0, 1, 30)))
    except (ValueError, OverflowError):
        return text
    return day.isoformat() + text[10:]


def differs(gold: Query, connection: sqlite3.Connection) -> "Comparison | None":
    """Prepares a comparison with a gold's result; None where ties or their order decide it."""
    first = answer(connection, gold.gold)
    connection.execute("PRAGMA reverse_unordered_selects = ON")
    results = [answer(connection, sql) for sql in (gold.gold, *settling(gold))]
    connection.execute("PRAGMA reverse_unordered_selects = OFF")
    if first is None or any(other is None or bag(first) != bag(other) for other in results):
        return None
    settled = all(other is not None and same_rows(first, other) for other in results)
    return Comparison(first, ordered=gold.ordered() and settled)


class Comparison:
    """A gold's result on one database; ``says``: whether it is more than NULL and 0."""

    def __init__(self, expected: Answer, *, ordered: bool) -> None:
        self.expected, self.ordered = expected, ordered
        self.says = any(value not in (None, 0) for row in expected.rows for value in row)

    def __call__(self, other: Answer | None) -> bool:
        """Whether a query's result is another one."""
        if other is None:
            return True
        if self.ordered:
            return not same_rows(self.expected, other)
        return bag(self.expected) != bag(other)


def bag(found: Answer) -> list[list[str]]:
    """The rows as sets of values, in no order; floats to nine digits."""
    return sorted(sorted({_shown(value) for value in row}) for row in found.rows)


def same_rows(one: Answer, other: Answer) -> bool:
    """Whether two results have the same sets of values at the same positions."""
    sets = [[{_shown(value) for value in row} for row in found.rows] for found in (one, other)]
    return sets[0] == sets[1]


def _shown(value: Value) -> str:
    if isinstance(value, int | float):
        return f"{value:.9g}"
    return repr(value)


def distinguished(gold: Query, others: Sequence[str], databases: int = DATABASES) -> set[str]:
    """Returns the queries that have another result than a gold on one of so many databases."""
    left = set(others)
    if not left:
        return set()
    judged = 0
    for _, connection in zip(range(TRIES * databases), Drawer(gold, sorted(left)), strict=False):
        comparison = differs(gold, connection)
        if comparison is not None:
            judged += comparison.says
            left -= {other for other in sorted(left) if comparison(answer(connection, other))}
        if not left or judged == databases:
            break
    return set(others) - left
