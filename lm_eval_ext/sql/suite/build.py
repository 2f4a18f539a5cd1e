"""Draws small databases, decides which golds they may judge, and chooses those of a suite.

The first small databases are random: they are the first seeds on which a gold may be judged.
They catch mistakes that no list has. The others are targeted: mutants fall on them that nothing
before distinguishes, or a gold is judged by few.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

from lm_eval_ext.sql.compare import Expected
from lm_eval_ext.sql.mutants import mutants
from lm_eval_ext.sql.parsing import UnparsedQuery, parse, to_sql
from lm_eval_ext.sql.schema import Schema, fold
from lm_eval_ext.sql.suite.checks import Checks, Runner, checks_of
from lm_eval_ext.sql.suite.drawing import draw
from lm_eval_ext.sql.suite.original import Original, in_memory
from lm_eval_ext.sql.values import Mutant, quoted

__all__ = [
    "SUITE_VERSION",
    "GoldCase",
    "Original",
    "Seed",
    "SmallDatabase",
    "choose",
    "gold_cases",
    "in_memory",
    "judgeable_golds",
    "mutants_of",
    "small_connection",
    "without_rows",
]

SUITE_VERSION = 4
"""Rises whenever other databases would be built, or judge other golds; part of signatures."""

RANDOM_SEEDS = 16
"""Small databases that are random."""

MAX_TARGETED = 24
"""Most small databases that are targeted."""

MAX_TRIES = 20
"""Small databases that are tried for each gold that needs them."""

MIN_JUDGES = 8
"""Small databases that should judge each gold, if the pool has them."""

_SMALL_STEPS = 300_000
_MUTANT_ROWS = 10_000
_FEW_JUDGES_GAIN = 0.5
"""The worth of a database for a gold that few judge; a mutant that it distinguishes counts 1."""

_PLAIN_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%collate%'"

_OpenMutant = tuple[str, str]
"""A gold and a mutant of it."""


class Seed(NamedTuple):
    """The choices that a small database is drawn from.

    Attributes:
        number: Its number.
        gold_numbers: The numbers of the golds that rows are made for; none: all.
    """

    number: int
    gold_numbers: tuple[int, ...] = ()


@dataclass
class SmallDatabase:
    """A small database that was drawn, in memory.

    Attributes:
        seed: What it was drawn from.
        runner: Runs queries on it.
        judges: The golds that it may judge, with their results on it.
    """

    seed: Seed
    runner: Runner
    judges: dict[str, Expected]


@dataclass
class GoldCase:
    """A gold that runs on the original.

    Attributes:
        gold: The query.
        checks: Which databases may judge it.
        open_mutants: Mutants that no database so far distinguishes.
    """

    gold: str
    checks: Checks
    open_mutants: list[str] = field(default_factory=list)


def gold_cases(original: Original) -> list[GoldCase]:
    """Return the golds that run, with the mutants that the original does not distinguish.

    The gold without rows is one of the mutants: some database of the suite should give it rows.
    """
    cases = []
    for gold in original.golds:
        expected = original.runner.expected(gold)
        gold_checks = checks_of(gold, original.schema, original.runner)
        if expected is None or gold_checks is None:
            continue
        open_mutants = []
        for mutant in mutants_of(gold, original.schema):
            if original.runner.agrees(expected, mutant.sql):
                open_mutants.append(mutant.sql)
        # A gold that is 0 or empty everywhere would accept any other count and any other join.
        empty_query = without_rows(gold, original.schema)
        if empty_query is not None and original.runner.agrees(expected, empty_query):
            open_mutants.append(empty_query)
        cases.append(GoldCase(gold, gold_checks, open_mutants))
    return cases


def mutants_of(gold: str, schema: Schema) -> tuple[Mutant, ...]:
    """Return the mutants of a gold; none if it cannot be read."""
    try:
        return mutants(gold, schema)
    except (UnparsedQuery, RecursionError):
        return ()


def without_rows(gold: str, schema: Schema) -> str | None:
    """Return a gold whose outer queries read no rows; None if it cannot be parsed."""
    try:
        tree = parse(gold, schema).copy()
    except (UnparsedQuery, RecursionError):
        return None
    for select in tree.find_all(exp.Select):
        if select.parent is None or isinstance(select.parent, exp.SetOperation):
            select.where(exp.false(), copy=False)
    return to_sql(tree)


def small_connection(original: Original, seed: Seed) -> sqlite3.Connection:
    """Return a small database in memory, drawn from a seed; see :func:`draw`."""
    rows = draw(original.source, f"{SUITE_VERSION}/{seed.number}", seed.gold_numbers)
    return original.fill(rows)


def judgeable_golds(
    original: Original, connection: sqlite3.Connection, cases: Sequence[GoldCase], *, steps: int
) -> tuple[Runner, dict[str, Expected]]:
    """Return the golds that a database may judge, with their results on it.

    Args:
        original: The database that it was made from.
        connection: The database.
        cases: The golds in question.
        steps: What a query may take, as of :class:`Runner`.
    """
    runner = Runner(connection, steps=steps)
    judges = {}
    with closing(_reordered(original, connection)) as reordered_connection:
        reordered = Runner(reordered_connection, steps=steps)
        for case in cases:
            expected = case.checks.expected_on(runner, reordered)
            if expected is not None:
                judges[case.gold] = expected
    return runner, judges


def _reordered(original: Original, connection: sqlite3.Connection) -> sqlite3.Connection:
    """Return a copy with rows stored backwards, without keys by which SQLite would find them."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    connection.backup(copy)
    copy.execute("PRAGMA legacy_alter_table = ON")  # which leaves views alone
    names = {fold(name) for name in original.schema}
    free_name = "turned"
    while free_name in names:
        free_name += "_"
    tables_read = original.tables_read
    for (name,) in copy.execute(_PLAIN_TABLES).fetchall():
        if fold(name) in tables_read:
            table = quoted(name)
            backwards = f"SELECT * FROM {table} ORDER BY row_number() OVER () DESC"
            copy.execute(f"CREATE TABLE {free_name} AS {backwards}")
            copy.execute(f"DROP TABLE {table}")
            copy.execute(f"ALTER TABLE {free_name} RENAME TO {table}")
    return copy


def _examine(original: Original, seed: Seed, cases: Sequence[GoldCase]) -> SmallDatabase | None:
    """Draw a small database; return None if it may judge no gold."""
    connection = small_connection(original, seed)
    runner, judges = judgeable_golds(original, connection, cases, steps=_SMALL_STEPS)
    if not judges:
        connection.close()
        return None
    return SmallDatabase(seed, runner, judges)


@dataclass(eq=False)
class _Candidate:
    """A small database that may become one of a suite.

    Attributes:
        small: The database; its connection is closed.
        killed: The open mutants that it distinguishes from their golds.
    """

    small: SmallDatabase
    killed: set[_OpenMutant]


def choose(original: Original, cases: Sequence[GoldCase]) -> list[SmallDatabase]:
    """Draw the small databases of a suite, the random ones first."""
    chosen = _random_databases(original, cases)
    for case in cases:
        case.open_mutants = [sql for sql in case.open_mutants if not _is_killed(case, sql, chosen)]
    judge_counts = Counter[str]()
    for small in chosen:
        judge_counts.update(list(small.judges))
    candidates = list(_candidates(original, cases, judge_counts.copy()))
    for _ in range(MAX_TARGETED):
        best = _best_candidate(candidates, cases, judge_counts)
        if best is None:
            break
        # Candidates were examined for the golds that needed them then.
        small_again = _examine(original, best.small.seed, cases)
        if small_again is not None:
            chosen.append(small_again)
            judge_counts.update(list(small_again.judges))
            for case in cases:
                case.open_mutants = [
                    sql for sql in case.open_mutants if (case.gold, sql) not in best.killed
                ]
        candidates.remove(best)
        for candidate in candidates:
            candidate.killed -= best.killed
    return chosen


def _best_candidate(
    candidates: Sequence[_Candidate], cases: Sequence[GoldCase], judge_counts: Counter[str]
) -> _Candidate | None:
    """Return the first of the candidates that are worth most; None if none is worth anything."""
    rarely_judged = {case.gold for case in cases if judge_counts[case.gold] < MIN_JUDGES}
    best, best_gain = None, 0.0
    for candidate in candidates:
        judged = rarely_judged & candidate.small.judges.keys()
        gain = len(candidate.killed) + _FEW_JUDGES_GAIN * len(judged)
        if gain > best_gain:
            best, best_gain = candidate, gain
    return best


def _random_databases(original: Original, cases: Sequence[GoldCase]) -> list[SmallDatabase]:
    databases: list[SmallDatabase] = []
    for number in range(2 * RANDOM_SEEDS):
        small = _examine(original, Seed(number), cases)
        if small is not None:
            databases.append(small)
        if len(databases) == RANDOM_SEEDS:
            break
    return databases


def _candidates(
    original: Original, cases: Sequence[GoldCase], judge_counts: Counter[str]
) -> Iterator[_Candidate]:
    """Yield databases, each made for one gold that needs it."""
    numbers = {gold.gold: number for number, gold in enumerate(original.source.requirements)}
    remaining = {case.gold: set(case.open_mutants) for case in cases if case.gold in numbers}
    tries = Counter[str]()
    while True:
        needy = []
        for case in cases:
            gold = case.gold
            if gold not in remaining or tries[gold] >= MAX_TRIES:
                continue
            if remaining[gold] or judge_counts[gold] < MIN_JUDGES:
                needy.append(case)
        if not needy:
            return
        # Those that few databases judge need the most.
        effort = {case.gold: tries[case.gold] * (1 + judge_counts[case.gold]) for case in needy}
        neediest = min(effort, key=lambda gold: (effort[gold], gold))
        tries[neediest] += 1
        seed = Seed(2 * RANDOM_SEEDS + tries.total(), gold_numbers=(numbers[neediest],))
        small = _examine(original, seed, needy)
        if small is None:
            continue
        killed = set()
        for case in needy:
            for sql in case.open_mutants:
                if _distinguishes(small, case.gold, sql):
                    killed.add((case.gold, sql))
                    remaining[case.gold].discard(sql)
        judge_counts.update(list(small.judges))
        small.runner.connection.close()
        yield _Candidate(small, killed)


def _is_killed(case: GoldCase, sql: str, databases: Sequence[SmallDatabase]) -> bool:
    return any(_distinguishes(small, case.gold, sql) for small in databases)


def _distinguishes(small: SmallDatabase, gold: str, sql: str) -> bool:
    """Return whether a database may judge a gold and a query has another result there."""
    expected = small.judges.get(gold)
    return expected is not None and not small.runner.agrees(expected, sql, _MUTANT_ROWS)
