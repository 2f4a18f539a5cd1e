"""Draws small databases, decides which golds they may judge, and chooses those of a suite.

The first small databases are chosen for nothing: they are the first seeds on which a gold may be
judged. They catch mistakes that no list has. The others are chosen because mutants fall on them
that nothing before distinguishes, or because a gold is judged by few.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.compare import Expected
from lm_eval_ext.sql.mutants import mutants
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.schema import ForeignKey, Schema, schema_of
from lm_eval_ext.sql.suite.checks import Runner, is_void, judged, rewrites
from lm_eval_ext.sql.suite.drawing import Draws, draw
from lm_eval_ext.sql.suite.source import Source, read_source
from lm_eval_ext.sql.values import Failure, Mutant, Row, quoted, quoted_all

SUITE_VERSION = 3
"""Rises whenever other databases would be built, or judge other golds; part of signatures."""

UNCHOSEN = 10
"""Small databases that are chosen for nothing."""

CHOSEN = 14
"""Most small databases that are chosen."""

POOL = 80
"""Small databases that are tried."""

FOCUS = 8
"""Golds that rows are made for first, in databases that may be chosen."""

COVERED = 8
"""Small databases that should judge each gold, if the pool has them."""

_SMALL_STEPS = 300_000


@dataclass
class Small:
    """A small database that was drawn, in memory.

    Attributes:
        seed: Its number.
        first: The numbers of golds that rows were made for first.
        runner: On it.
        judges: The golds that it may judge, with their results on it.
    """

    seed: int
    first: tuple[int, ...]
    runner: Runner
    judges: dict[str, Expected]


@dataclass
class Case:
    """A gold that runs on the original.

    Attributes:
        void: Whether the original gives it nothing but NULLs.
        rewrites: Right rewrites, which must keep its result.
        open: Mutants that no database so far distinguishes.
    """

    gold: str
    void: bool
    rewrites: list[str]
    open: list[str] = field(default_factory=list)


class Original:
    """A database in memory, with what small ones are drawn from.

    Raises:
        DataError: It cannot be read.
    """

    def __init__(self, path: Path, golds: Sequence[str]) -> None:
        self.connection = in_memory(path)
        self.runner = Runner(self.connection)
        try:
            self.schema: Schema = schema_of(self.connection)
            self.golds = sorted(set(golds))
            self.source: Source = read_source(self.connection, self.schema, self.golds)
            self.stored = {
                table.name: quoted_all(c.name for c in table.columns if not c.generated)
                for table in self.schema.values()
                if not table.view
            }
            self.creates = [
                sql
                for (sql,) in self.connection.execute(
                    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'trigger'"
                    " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type = 'view', rowid"
                )
            ]
        except sqlite3.Error as error:
            raise DataError(f"cannot read the database {path}: {error}") from None

    def cases(self) -> list[Case]:
        """The golds that run, with rewrites and the mutants that the original does not tell."""
        found = []
        for gold in self.golds:
            result = self.runner.run(gold)
            if isinstance(result, Failure):
                continue
            case = Case(gold, is_void(result), rewrites(gold, self.schema, self.runner))
            expected = self.runner.expected(gold)
            if expected is not None:
                case.open = [
                    mutant.sql
                    for mutant in mutants_of(gold, self.schema)
                    if self.runner.agrees(expected, mutant.sql, len(result.rows))
                ]
                found.append(case)
        return found

    def rows(self, seed: int, first: Sequence[int]) -> dict[str, list[Row]]:
        """The rows of a small database."""
        return draw(self.source, f"{SUITE_VERSION}/{seed}", first)

    def small(self, rows: Mapping[str, Sequence[Row]]) -> sqlite3.Connection:
        """A small database in memory."""
        connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        write(connection, self.creates, self.source, rows)
        return connection

    def judges(
        self, connection: sqlite3.Connection, cases: Sequence[Case], seed: object, *, steps: int
    ) -> tuple[Runner, dict[str, Expected]]:
        """The golds that a database may judge, with their results on it."""
        runner = Runner(connection, steps=steps)
        with closing(self._reordered(connection, Draws(f"order/{seed}"))) as other:
            shuffled = [Runner(other, steps=steps)]
            found = {
                case.gold: judged(
                    case.gold, runner, shuffled, case.rewrites, may_be_empty=case.void
                )
                for case in cases
            }
        return runner, {gold: expected for gold, expected in found.items() if expected}

    def _reordered(self, connection: sqlite3.Connection, draws: Draws) -> sqlite3.Connection:
        """A database with the same rows, stored in another order."""
        other = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        for sql in self.creates:
            with suppress(sqlite3.OperationalError):  # such as a module that is not there
                other.execute(sql)
        for name, columns in self.stored.items():
            rows = connection.execute(f"SELECT {columns} FROM {quoted_all([name])}").fetchall()
            marks = ", ".join("?" * (columns.count('", "') + 1))
            other.executemany(
                f"INSERT OR IGNORE INTO {quoted_all([name])} ({columns}) VALUES ({marks})",
                draws.shuffled(rows),
            )
        return other

    def examined(
        self, seed: int, cases: Sequence[Case], first: tuple[int, ...] = ()
    ) -> Small | None:
        """Draws a small database; None if it may judge no gold."""
        connection = self.small(self.rows(seed, first))
        runner, judges = self.judges(connection, cases, seed, steps=_SMALL_STEPS)
        if not judges:
            connection.close()
            return None
        return Small(seed, first, runner, judges)


def mutants_of(gold: str, schema: Schema) -> tuple[Mutant, ...]:
    """The mutants of a gold; none if it cannot be read."""
    try:
        return mutants(gold, schema)
    except (UnparsedQuery, RecursionError):
        return ()


def in_memory(path: Path) -> sqlite3.Connection:
    """Reads a database file into memory.

    Raises:
        DataError: It is missing, being written to, or no database.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
    try:
        if not path.is_file():
            raise OSError("no such file")
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=2)) as source:
            source.execute("SELECT COUNT(*) FROM sqlite_master")
            source.backup(connection)
        connection.execute("SELECT COUNT(*) FROM sqlite_master")
    except (sqlite3.Error, OSError) as error:
        connection.close()
        hint = (
            "; another program is writing to it: try again when it has ended"
            if "locked" in str(error)
            else ""
        )
        raise DataError(f"cannot read the database {path}: {error}{hint}") from None
    return connection


def choose(original: Original, cases: Sequence[Case]) -> list[Small]:
    """Draws the small databases of a suite, those chosen for nothing first."""
    kept: list[Small] = []
    pool: list[tuple[Small, set[tuple[str, str]]]] = []
    numbers = {wish.gold: number for number, wish in enumerate(original.source.wishes)}
    judges = dict.fromkeys((case.gold for case in cases), 0)
    tried = dict.fromkeys(judges, 0)
    left: set[tuple[str, str]] = set()
    for seed in range(POOL):
        first: tuple[int, ...] = ()
        if len(kept) == UNCHOSEN:
            wanted = {gold for gold, _ in left} | {g for g, n in judges.items() if n < COVERED}
            # Golds that few databases judge are tried twice as often.
            turn = {g: tried[g] // 2 if judges[g] < COVERED else tried[g] for g in wanted}
            golds = sorted(wanted & numbers.keys(), key=lambda gold: (turn[gold], gold))[:FOCUS]
            for gold in golds:
                tried[gold] += 1
            first = tuple(sorted(numbers[gold] for gold in golds))
        found = original.examined(seed, cases, first)
        if found is None:
            continue
        for gold in found.judges:
            judges[gold] += 1
        if len(kept) < UNCHOSEN:
            kept.append(found)
            for case in cases:
                case.open = list(_survivors(case, found))
            left = {(case.gold, miss) for case in cases for miss in case.open}
        else:
            pool.append((found, _killed(cases, found)))
            left -= pool[-1][1]
    judges = {case.gold: sum(case.gold in small.judges for small in kept) for case in cases}
    while pool and len(kept) < UNCHOSEN + CHOSEN:
        few = {gold for gold, count in judges.items() if count < COVERED}

        def gain(entry: tuple[Small, set[tuple[str, str]]], few: set[str] = few) -> float:
            return len(entry[1]) + 0.5 * len(few & entry[0].judges.keys())

        best = max(pool, key=gain)
        if not gain(best):
            break
        kept.append(best[0])
        for gold in best[0].judges:
            judges[gold] += 1
        pool = [(small, killed - best[1]) for small, killed in pool if small is not best[0]]
        for case in cases:
            case.open = [miss for miss in case.open if (case.gold, miss) not in best[1]]
    return kept


def _survivors(case: Case, small: Small) -> Iterator[str]:
    expected = small.judges.get(case.gold)
    for miss in case.open:
        if expected is None or small.runner.agrees(expected, miss, 10_000):
            yield miss


def _killed(cases: Iterable[Case], small: Small) -> set[tuple[str, str]]:
    return {
        (case.gold, miss)
        for case in cases
        for miss in set(case.open) - set(_survivors(case, small))
    }


def write(
    connection: sqlite3.Connection,
    creates: Sequence[str],
    source: Source,
    rows: Mapping[str, Sequence[Row]],
) -> None:
    """Creates tables and views in an empty database and inserts rows.

    Rows that break a constraint are left out, and then those whose parent is missing.
    """
    schema = source.schema
    for sql in creates:
        with suppress(sqlite3.OperationalError):  # such as a module that is not there
            connection.execute(sql)
    for table, records in rows.items():
        stored = [quoted(c.name) for c in schema[table].columns if not c.generated]
        insert = (
            f"INSERT INTO {quoted(schema[table].name)} ({', '.join(stored)}) "
            f"VALUES ({', '.join('?' * len(stored))})"
        )
        for record in records:
            with suppress(sqlite3.IntegrityError):
                connection.execute(insert, record)
    gone = 1
    while gone:
        gone = 0
        for table, links in source.links.items():
            for link in links:
                gone += connection.execute(_orphans(table, link)).rowcount


def _orphans(table: str, link: ForeignKey) -> str:
    pairs = zip(link.columns, link.parent_columns, strict=True)
    same = " AND ".join(f"p.{quoted(t)} = {quoted(table)}.{quoted(c)}" for c, t in pairs)
    held = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in link.columns)
    return (
        f"DELETE FROM {quoted(table)} WHERE {held} AND NOT EXISTS "
        f"(SELECT 1 FROM {quoted(link.parent)} AS p WHERE {same})"
    )
