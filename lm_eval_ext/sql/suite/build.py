"""Draws small databases, decides which golds they may judge, and chooses those of a suite.

The first small databases are chosen for nothing: they are the first seeds on which a gold may be
judged. They catch mistakes that no list has. The others are chosen because mutants fall on them
that nothing before distinguishes, or because a gold is judged by few.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.compare import Expected
from lm_eval_ext.sql.mutants import mutants
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.schema import ForeignKey, Schema, schema_of
from lm_eval_ext.sql.suite.checks import Checks, Runner, checks
from lm_eval_ext.sql.suite.drawing import draw
from lm_eval_ext.sql.suite.reading import read_source
from lm_eval_ext.sql.values import Mutant, Row, quoted, quoted_all

SUITE_VERSION = 3
"""Rises whenever other databases would be built, or judge other golds; part of signatures."""

UNCHOSEN = 16
"""Small databases that are chosen for nothing."""

CHOSEN = 24
"""Most small databases that are chosen."""

TRIES = 32
"""Small databases that are tried for each gold that needs them."""

COVERED = 8
"""Small databases that should judge each gold, if the pool has them."""

_SMALL_STEPS = 300_000

_PLAIN = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%collate%'"
_TURN = (
    "CREATE TABLE turned AS SELECT * FROM {0} ORDER BY row_number() OVER () DESC;"
    "DROP TABLE {0}; ALTER TABLE turned RENAME TO {0};"
)
"""Stores rows backwards, without keys by which SQLite would store or find them."""


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
        checks: Which databases may judge it.
        open: Mutants that no database so far distinguishes.
    """

    gold: str
    checks: Checks
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
            self.schema = schema_of(self.connection)
            self.golds = sorted(set(golds))
            self.source = read_source(self.connection, self.schema, self.golds)
            self.creates = self.connection.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'trigger'"
                " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type = 'view', rowid"
            ).fetchall()
        except sqlite3.Error as error:
            raise DataError(f"cannot read the database {path}: {error}") from None

    def cases(self) -> list[Case]:
        """The golds that run, with rewrites and the mutants that the original does not tell."""
        found = []
        for gold in self.golds:
            expected, own = self.runner.expected(gold), checks(gold, self.schema, self.runner)
            if expected is None or own is None:
                continue
            wrong = [
                mutant.sql
                for mutant in mutants_of(gold, self.schema)
                if self.runner.agrees(expected, mutant.sql)
            ]
            found.append(Case(gold, own, wrong))
        return found

    def drawn(self, seed: int, first: Sequence[int]) -> sqlite3.Connection:
        """A small database in memory, drawn from a seed; see :func:`draw`."""
        return self.filled(draw(self.source, f"{SUITE_VERSION}/{seed}", first))

    def filled(self, rows: Mapping[str, Sequence[Row]]) -> sqlite3.Connection:
        """A database of rows by table, in memory; those that break a constraint are left out."""
        connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        for (sql,) in self.creates:
            with suppress(sqlite3.OperationalError):  # such as a module that is not there
                connection.execute(sql)
        for table, records in rows.items():
            stored = [column.name for column in self.schema[table].columns if not column.generated]
            marks = ", ".join("?" * len(stored))
            connection.executemany(
                f"INSERT OR IGNORE INTO {quoted(table)} ({quoted_all(stored)}) VALUES ({marks})",
                records,
            )
        gone = 1
        while gone:  # rows whose parent broke a constraint
            links = [(table, link) for table, own in self.source.links.items() for link in own]
            gone = sum(connection.execute(_orphans(table, link)).rowcount for table, link in links)
        return connection

    def judges(
        self, connection: sqlite3.Connection, cases: Sequence[Case], *, steps: int
    ) -> tuple[Runner, dict[str, Expected]]:
        """The golds that a database may judge, with their results on it."""
        runner = Runner(connection, steps=steps)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as other:
            connection.backup(other)
            other.execute("PRAGMA legacy_alter_table = ON")  # which leaves views alone
            for (name,) in other.execute(_PLAIN).fetchall():
                if name.casefold() in self.source.links:
                    other.executescript(_TURN.format(quoted(name)))
            reordered = Runner(other, steps=steps)
            found = {case.gold: case.checks.judged(runner, reordered) for case in cases}
        return runner, {gold: expected for gold, expected in found.items() if expected}

    def examined(
        self, seed: int, cases: Sequence[Case], first: tuple[int, ...] = ()
    ) -> Small | None:
        """Draws a small database; None if it may judge no gold."""
        connection = self.drawn(seed, first)
        runner, judges = self.judges(connection, cases, steps=_SMALL_STEPS)
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
    drawn = (original.examined(seed, cases) for seed in range(2 * UNCHOSEN))
    kept = list(islice(filter(None, drawn), UNCHOSEN))
    judges = Counter(gold for small in kept for gold in small.judges)
    for case in cases:
        case.open = [
            sql for sql in case.open if not any(_kills(small, case.gold, sql) for small in kept)
        ]
    pool = list(_candidates(original, cases, judges.copy()))
    for _ in range(CHOSEN):
        few = {case.gold for case in cases if judges[case.gold] < COVERED}
        gains = [len(kills) + 0.5 * len(few & small.judges.keys()) for small, kills in pool]
        if not max(gains, default=0):
            break
        best, killed = pool[gains.index(max(gains))]
        found = original.examined(best.seed, cases, best.first)
        if found is not None:
            kept.append(found)
            judges.update(list(found.judges))
            for case in cases:
                case.open = [sql for sql in case.open if (case.gold, sql) not in killed]
        pool = [(small, kills - killed) for small, kills in pool if small is not best]
    return kept


def _candidates(
    original: Original, cases: Sequence[Case], judges: Counter[str]
) -> Iterator[tuple[Small, set[tuple[str, str]]]]:
    """Yields databases, each made for one gold that needs it, with the open mutants they kill."""
    numbers = {wish.gold: number for number, wish in enumerate(original.source.wishes)}
    left = {case.gold: set(case.open) for case in cases if case.gold in numbers}
    tries = Counter[str]()
    while wanted := [
        case
        for case in cases
        if tries[case.gold] < TRIES
        and (left.get(case.gold) or (case.gold in left and judges[case.gold] < COVERED))
    ]:
        # Those that few databases judge need the most.
        gold = min((c.gold for c in wanted), key=lambda g: (tries[g] * (1 + judges[g]), g))
        tries[gold] += 1
        seed = 2 * UNCHOSEN + tries.total()
        small = original.examined(seed, wanted, (numbers[gold],))
        if small is not None:
            kills = {(c.gold, m) for c in wanted for m in c.open if _kills(small, c.gold, m)}
            for killed, sql in kills:
                left[killed].discard(sql)
            judges.update(list(small.judges))
            small.runner.connection.close()
            yield small, kills


def _kills(small: Small, gold: str, sql: str) -> bool:
    expected = small.judges.get(gold)
    return expected is not None and not small.runner.agrees(expected, sql, 10_000)


def _orphans(table: str, link: ForeignKey) -> str:
    pairs = zip(link.columns, link.parent_columns, strict=True)
    same = " AND ".join(f"p.{quoted(t)} = {quoted(table)}.{quoted(c)}" for c, t in pairs)
    held = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in link.columns)
    return (
        f"DELETE FROM {quoted(table)} WHERE {held} AND NOT EXISTS "
        f"(SELECT 1 FROM {quoted(link.parent)} AS p WHERE {same})"
    )
