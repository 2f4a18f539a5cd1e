"""Small random databases around a query: few values, many ties, all keys kept."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sqlglot import exp

from lm_eval_ext.sql.compare import Gold, find_semantics
from lm_eval_ext.sql.parsing import parse
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.schema import Column, Schema, Table
from lm_eval_ext.sql.values import Failure, Rows, Value

MOST_STEPS = 200_000


def declarations(path: Path) -> dict[str, str]:
    """The CREATE statement of each table, by name in lower case."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        return {name.casefold(): sql for name, sql in rows}


class RandomDatabases:
    """Fills the tables that a query reads, again and again.

    Args:
        sql: The query; its literals and their neighbours are among the values.
        schema: Of the database.
        creates: CREATE statement by table name in lower case.
        seed: Of the pseudo-random numbers.
    """

    def __init__(self, sql: str, schema: Schema, creates: dict[str, str], seed: int) -> None:
        self.random = random.Random(seed)
        tree = parse(sql, schema)
        self.tables = sorted(
            {t.name.casefold() for t in tree.find_all(exp.Table) if t.name in schema}
        )
        self.schema, self.creates = schema, creates
        literals = {(str(node.this), node.is_string) for node in tree.find_all(exp.Literal)}
        self.numbers: list[Value] = [0, 1, 2, 3]
        self.texts: list[Value] = ["a", "b", "B", ""]
        for text, is_string in sorted(literals):
            value = float(text) if text.replace(".", "", 1).isdigit() else None
            if value is not None:
                whole = int(value) if value == int(value) else value
                self.texts += [f"{whole}", f"0{whole}", f"{whole}.0"]
                self.numbers += [whole, whole - 1, whole + 1, whole, whole + 0.5]
            if is_string:
                bare = text.replace("%", "")
                self.texts += [bare, bare, bare + "x", "x" + bare, bare[:-1]]

    def __iter__(self) -> Iterator[sqlite3.Connection]:
        while True:
            with closing(sqlite3.connect(":memory:")) as connection:
                register(connection)
                self._fill(connection)
                steps = [0]
                connection.set_progress_handler(lambda s=steps: _stop(s), 1000)
                yield connection

    def _fill(self, connection: sqlite3.Connection) -> None:
        for name in self.tables:
            connection.execute(self.creates[name])
            table = self.schema[name]
            columns = [column for column in table.columns if not column.generated]
            pools = [self._pool(column, table) for column in columns]
            marks = ", ".join("?" * len(columns))
            names = ", ".join('"' + c.name + '"' for c in columns)
            rows = [
                [self.random.choice(pool) for pool in pools]
                for _ in range(self.random.choice((0, 1, 2, 3, 4, 6, 9)))
            ]
            connection.executemany(
                f'INSERT OR IGNORE INTO "{table.name}" ({names}) VALUES ({marks})', rows
            )
        connection.commit()

    def _pool(self, column: Column, table: Table) -> list[Value]:
        """Few values for a column, so that rows meet and tie; keys get more."""
        if column.name == table.rowid_alias:
            return [*range(1, 9)]
        numeric = column.affinity in ("INTEGER", "REAL", "NUMERIC") and not (
            column.type.upper().startswith(("DATE", "TIME"))
        )
        mostly, rarely = (self.numbers, self.texts) if numeric else (self.texts, self.numbers)
        size = self.random.choice((1, 2, 3, 5)) + 4 * bool(column.primary_key)
        pool = [self.random.choice(mostly) for _ in range(size)]
        if self.random.random() < 0.1 and not column.primary_key:
            pool.append(self.random.choice(rarely))
        if not column.not_null and self.random.random() < 0.4:
            pool.append(None)
        return pool


def _stop(steps: list[int]) -> bool:
    steps[0] += 1
    return steps[0] * 1000 > MOST_STEPS


def same_result(connection: sqlite3.Connection, one: str, other: str) -> bool | None:
    """Whether two queries agree by the reference semantics; None if one cannot be finished."""
    results = []
    for sql in (one, other):
        try:
            results.append([frozenset(row) for row in connection.execute(sql)])
        except sqlite3.Error:
            return None
    return results[0] == results[1]


def may_result(
    connection: sqlite3.Connection, schema: Schema, gold: str, other: str, *, tries: int
) -> bool | None:
    """Whether a query's result is one that a gold may have, too, by what it leaves open.

    The gold is run on copies with the rows in other orders, and without keys and indexes, which
    would settle the order; each time its result is compared by the strict semantics, which
    allow for any order of rows that it does not settle itself.

    Returns:
        None if one of the two cannot be finished.
    """
    result = _rows(connection, other)
    if isinstance(result, Failure):
        return None
    shuffles = random.Random(0)
    for number in range(tries):
        with closing(_shuffled(connection, schema, shuffles)) as copy:
            there = copy if number else connection
            expected = _rows(there, gold)
            if isinstance(expected, Failure):
                return None
            right = Gold(gold, expected, lambda sql, c=there: _rows(c, sql))
            if find_semantics("strict").prepare(right).matches(result):
                return True
    return False


def _rows(connection: sqlite3.Connection, sql: str) -> Rows | Failure:
    try:
        cursor = connection.execute(sql)
        return Rows(tuple(column[0] for column in cursor.description), cursor.fetchall())
    except sqlite3.Error as error:
        return Failure("error", str(error))


def _shuffled(
    connection: sqlite3.Connection, schema: Schema, shuffles: random.Random
) -> sqlite3.Connection:
    copy = sqlite3.connect(":memory:")
    register(copy)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        columns = schema[name].columns
        declared = ", ".join(f'"{c.name}" {c.type} COLLATE {c.collation}' for c in columns)
        copy.execute(f'CREATE TABLE "{name}" ({declared})')
        rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()
        shuffles.shuffle(rows)
        copy.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})', rows)
    return copy
