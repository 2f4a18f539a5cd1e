"""Databases drawn at random for one gold, which say whether two queries differ at all.

They keep what the original promises: declared keys, references that hold, NULL only where a
column has one, the kind of a column's values. Nothing here is taken from the package's generator.
"""

import random
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import date, timedelta

from sqlglot import exp

from bench.judge.query import Of, Query, is_day
from bench.judge.right import settling
from lm_eval_ext.sql.compare import Expected
from lm_eval_ext.sql.suite.checks import Runner
from lm_eval_ext.sql.values import Value, quoted, quoted_all

DATABASES = 50
"""A query that none of so many distinguishes is called not distinguished by anything."""

TRIES = 8
"""For each of them so many are drawn at most, since a gold must be settled by its rows."""

COPIED, REDRAWN, NULLS = 0.5, 0.4, 0.2
"""How often rows start as the original's, a value of those is drawn anew, a NULL is drawn."""

Row = dict[str, Value]


def distinguished(gold: Query, others: Sequence[str], databases: int = DATABASES) -> set[str]:
    """Returns the queries that have another result than a gold on one of so many databases."""
    left, judged = set(others), 0
    for connection in _drawn(gold, sorted(left)) if left else ():
        with closing(connection):
            runner = Runner(connection, steps=300_000)
            expected = _settled(gold, runner)
            if expected is not None:
                judged += 1
                left = {sql for sql in left if runner.agrees(expected, sql)}
        if not left or judged == databases:
            break
    return set(others) - left


def _settled(gold: Query, runner: Runner) -> Expected | None:
    """A gold's result, unless ties or the order of rows decide it, or it is empty."""
    expected, result = runner.expected(gold.gold), runner.run(gold.gold)
    rows = getattr(result, "rows", [])
    if expected is None or not any(value not in (None, 0) for row in rows for value in row):
        return None
    runner.connection.execute("PRAGMA reverse_unordered_selects = ON")
    settled = all(runner.agrees(expected, sql) for sql in (gold.gold, *settling(gold)))
    runner.connection.execute("PRAGMA reverse_unordered_selects = OFF")
    return expected if settled else None


def _drawn(gold: Query, others: Sequence[str]) -> Iterator[sqlite3.Connection]:
    chance, facts = random.Random(f"draw {gold.gold}"), gold.facts
    queries = [gold, *(Query(other, facts) for other in others)]
    read = {table.name for query in queries for table in query.tree.find_all(exp.Table)}
    tables = [name for name in facts.schema if name.casefold() in {n.casefold() for n in read}]
    literals = list(dict.fromkeys(pair for query in queries for pair in query.literals))
    for _ in range(TRIES * DATABASES):
        few = chance.choice((1, 2, 3, 4, 6, 10))
        connection = sqlite3.connect(":memory:", isolation_level=None)
        rows: dict[str, list[Row]] = {}
        for name in sorted(tables, key=lambda name: len(facts.schema[name].foreign_keys)):
            table = facts.schema[name]
            if table.view:
                continue
            pools = {
                of.column: _pool(gold, of, few, literals, chance) for of in facts.columns(name)
            }
            template = _template(gold, name, chance) if chance.random() < COPIED else []
            rows[name.casefold()] = made = []
            for _ in range(chance.choice((1, 2, 3, 5, 8, 12, 20, 30))):
                row = dict(chance.choice(template)) if template else {}
                for column, pool in pools.items():
                    if column not in row or chance.random() < REDRAWN:
                        nulls = facts.has_null(Of(name.casefold(), column))
                        null = nulls and chance.random() < NULLS
                        row[column] = None if null else chance.choice(pool)
                for key in table.foreign_keys:
                    parents = rows.get(key.parent.casefold())
                    if parents and len(key.columns) == len(key.parent_columns):
                        parent = chance.choice(parents)
                        pairs = zip(key.columns, key.parent_columns, strict=True)
                        row |= {c.casefold(): parent[t.casefold()] for c, t in pairs}
                made.append(row)
            _store(connection, gold, name, made)
        for name in facts.schema:
            if facts.schema[name].view and name in tables:
                query = "SELECT sql FROM sqlite_master WHERE name = ?"
                (sql,) = facts.runner.connection.execute(query, (name,)).fetchone()
                with suppress(sqlite3.Error):
                    connection.execute(sql)
        yield connection


def _store(connection: sqlite3.Connection, gold: Query, name: str, rows: list[Row]) -> None:
    """Creates a table with its keys; rows that break one are left out."""
    table = gold.facts.schema[name]
    parts = [f"{quoted(c.name)} {c.type}" for c in table.columns]
    parts += [f"UNIQUE ({quoted_all(key)})" for key in table.unique_keys]
    connection.execute(f"CREATE TABLE {quoted(name)} ({', '.join(parts)})")
    marks = ", ".join("?" * len(table.columns))
    values = [[row[c.name.casefold()] for c in table.columns] for row in rows]
    connection.executemany(f"INSERT OR IGNORE INTO {quoted(name)} VALUES ({marks})", values)
    names = [c.name.casefold() for c in table.columns]
    kept = connection.execute(f"SELECT * FROM {quoted(name)}").fetchall()
    rows[:] = [dict(zip(names, row, strict=True)) for row in kept]


def _template(gold: Query, name: str, chance: random.Random) -> list[Row]:
    """Some rows of the original."""
    names = [of.column for of in gold.facts.columns(name)]
    query = f"SELECT {quoted_all(names)} FROM {quoted(name)} LIMIT 2000"
    found = gold.facts.runner.connection.execute(query).fetchall()
    rows = [dict(zip(names, row, strict=True)) for row in found]
    return chance.sample(rows, min(20, len(rows)))


def _pool(
    gold: Query,
    of: Of,
    few: int,
    literals: Sequence[tuple[Value, Of | None]],
    chance: random.Random,
) -> list[Value]:
    """Values for a column: its own, literals that it is compared with, and neighbours of both."""
    kind, own = gold.facts.kind(of), gold.facts.values(of)
    pool: list[Value] = chance.sample(own, min(len(own), chance.choice((few, few + 1, 2 * few))))
    given = [value for value, other in literals if other == of]
    pool += chance.sample(given, min(len(given), chance.choice((0, 1, 1, 2))))
    for _ in range(chance.choice((0, 1, 2, few))):
        near = chance.choice([*pool, *(value for value, _ in literals), 1])
        if kind in ("integer", "number"):
            if isinstance(near, str):
                near = float(near) if re.fullmatch(r"\d+(\.\d+)?", near) else 1
            if isinstance(near, int | float):
                step = chance.choice((-1, 0, 0, 1, 1, 2))
                pool.append(near + step if kind == "number" else round(near) + step)
        elif kind == "date":
            pool.append(_other_day(str(near), chance))
        elif isinstance(near, str) and len(own) > few:
            other = str(chance.choice(pool or [near]))
            made = (near, near + " " + other, near[:-1], near[1:], other[:3] + near, near[:7])
            pool.append(chance.choice(made))
    fits = (int, float) if kind in ("integer", "number") else (str,) if kind == "date" else object
    days = [v for v in pool if isinstance(v, fits) and (kind != "date" or is_day(str(v)))]
    return days or own[:1] or [chance.choice((0, 1, 2, "a"))]


def _other_day(text: str, chance: random.Random) -> str:
    try:
        day = date.fromisoformat(text[:10]) + timedelta(chance.choice((-366, -31, -1, 0, 1, 30)))
    except (ValueError, OverflowError):
        return text
    return day.isoformat() + text[10:]
