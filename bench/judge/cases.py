"""All cases of a database's golds, and what random databases say of those that are missed."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.judge.families import QueryVariants
from lm_eval_ext.sql.schema import fold
from lm_eval_ext.sql.suite import Original, Suite, SuiteRunners, build
from lm_eval_ext.sql.suite.columns import Domain
from lm_eval_ext.sql.suite.reading import GoldRequirements, read_requirements
from lm_eval_ext.sql.values import Row, Value, quoted, quoted_all

RIGHT_FAMILIES = ("rewrite", "recorded")
"""Families of right queries."""

_JUDGING_DATABASES = 50
"""Random databases that may judge a gold."""

_MAX_DATABASES = 200
"""Random databases that are drawn to find these."""

_COPIED_SHARE = 0.5
"""How often the rows of a table start as some of the original's."""

_REDRAWN_SHARE = 0.4
"""How often a value of such a row is drawn anew."""

_MAX_READ_ROWS = 2_000
_MAX_COPIED_ROWS = 20
_STEPS = 300_000
_MAX_RESULT_ROWS = 10_000


class Case(NamedTuple):
    """A query beside a gold.

    Attributes:
        db_id: The database.
        gold: The gold.
        family: Where the query comes from.
        kind: What it changes, or what a person said of it.
        sql: The query.
        wrong_on: The databases on which it is wrong; "" is the original.
        differs: Whether any database distinguishes it, random ones included.
    """

    db_id: str
    gold: str
    family: str
    kind: str
    sql: str
    wrong_on: Sequence[str]
    differs: bool = True

    @property
    def is_right(self) -> bool:
        """Whether it belongs to a family of right queries."""
        return self.family in RIGHT_FAMILIES

    def misjudged(self, databases: Set[str]) -> bool:
        """Return whether databases call a wrong query right, or a right one wrong."""
        is_wrong = not databases.isdisjoint(self.wrong_on)
        return self.is_right == is_wrong


def cases(
    path: Path, suite: Suite, original: Original, chosen: Mapping[str, Mapping[str, str]]
) -> Iterator[Case]:
    """Yield the cases of chosen golds; a right query that the original rejects is none.

    Args:
        path: The original's file.
        suite: The suite that is measured.
        original: The original.
        chosen: By gold, its recorded right predictions with what a person said of them.
    """
    variants = QueryVariants(original)
    with closing(SuiteRunners(suite, path)) as judge:
        for gold_case in build.gold_cases(original):
            gold = gold_case.gold
            if gold not in chosen:
                continue
            queries = _queries(variants, original, gold, chosen[gold])
            gold_cases = list(_judged_cases(suite, judge, gold, queries))
            missed = set()
            for case in gold_cases:
                if not case.is_right and not case.wrong_on:
                    missed.add(case.sql)
            equivalent = missed - distinguished(original, gold_case, missed)
            for case in gold_cases:
                if not case.is_right or "" not in case.wrong_on:
                    yield case._replace(differs=case.sql not in equivalent)


class Query(NamedTuple):
    """A query beside a gold; the fields are those of a case."""

    family: str
    kind: str
    sql: str


def _judged_cases(
    suite: Suite, judge: SuiteRunners, gold: str, queries: Iterable[Query]
) -> Iterator[Case]:
    """Yield queries beside a gold with the databases on which each is wrong."""
    expected = {"": judge.runners[""].expected(gold, "reference")}
    for name in suite.judges_of(gold):
        expected[name] = judge.runners[name].expected(gold, "sets")
    for query in queries:
        wrong_on = []
        for name, gold_result in expected.items():
            if gold_result is None or not judge.runners[name].agrees(gold_result, query.sql):
                wrong_on.append(name)
        yield Case(suite.db_id, gold, *query, wrong_on)


def _queries(
    variants: QueryVariants, original: Original, gold: str, recorded: Mapping[str, str]
) -> Iterator[Query]:
    """Yield the queries beside a gold."""
    mutants = build.mutants_of(gold, original.schema)
    for mutant in mutants:
        if variants.runs(mutant.sql):
            yield Query("mutant", mutant.kind, mutant.sql)
    for kind, sql in variants.neighbours(gold, {mutant.sql for mutant in mutants}):
        yield Query("neighbour", kind, sql)
    for kind, sql in variants.rewrites(gold):
        yield Query("rewrite", kind, sql)
    for sql, remark in recorded.items():
        yield Query("recorded", remark, sql)


def distinguished(original: Original, case: build.GoldCase, wrong: Set[str]) -> set[str]:
    """Return the queries that differ from a gold on a random database that may judge it.

    Like the judge's own it holds what the original promises: constraints, a column's kind of
    values, constants of these queries and their neighbours. Right rewrites decide nothing here.
    """
    remaining = set(wrong)
    judging_count = 0
    draws = random.Random(case.gold)
    case = replace(case, checks=replace(case.checks, may_be_empty=False, rewrites=[]))
    requirements = []
    for sql in (case.gold, *sorted(wrong)):
        requirements.append(read_requirements(sql, original.schema, original.source.domains))
    for _ in range(_MAX_DATABASES):
        if not remaining or judging_count == _JUDGING_DATABASES:
            break
        with closing(original.fill(_drawn(original, requirements, draws))) as connection:
            runner, judges = build.judgeable_golds(original, connection, [case], steps=_STEPS)
            expected = judges.get(case.gold)
            if expected is not None:
                judging_count += 1
                remaining = {
                    sql for sql in remaining if runner.agrees(expected, sql, _MAX_RESULT_ROWS)
                }
    return set(wrong) - remaining


def _drawn(
    original: Original, requirements: Sequence[GoldRequirements], draws: random.Random
) -> dict[str, list[Row]]:
    """Draw rows by table: some of the original's, or new ones, with values drawn anew."""
    drawn: dict[str, list[dict[str, Value]]] = {}
    tables_read = _tables_read(original, requirements)
    for table in original.source.tables:
        if table in tables_read:
            _draw_table(original, requirements, draws, table, drawn)
    rows_by_table: dict[str, list[Row]] = {}
    for table, rows in drawn.items():
        rows_by_table[table] = [tuple(row.values()) for row in rows]
    return rows_by_table


def _tables_read(original: Original, requirements: Sequence[GoldRequirements]) -> set[str]:
    """Return the tables that queries read, and those that these refer to."""
    tables_read: set[str] = set()
    for query_requirements in requirements:
        tables_read.update(query_requirements.tables)
    for table in reversed(original.source.tables):
        if table in tables_read:
            tables_read.update(fold(link.parent) for link in original.source.links[table])
    return tables_read


def _draw_table(
    original: Original,
    requirements: Sequence[GoldRequirements],
    draws: random.Random,
    table: str,
    drawn: dict[str, list[dict[str, Value]]],
) -> None:
    """Add a table to those that are drawn; rows refer to rows of these."""
    names = [name for name in original.source.domains if name.table == table]
    columns = [name.column for name in names]
    original_rows: list[Row] = []
    if draws.random() < _COPIED_SHARE:
        query = f"SELECT {quoted_all(columns)} FROM {quoted(table)} LIMIT {_MAX_READ_ROWS}"
        original_rows = original.connection.execute(query).fetchall()
    original_rows = draws.sample(original_rows, min(_MAX_COPIED_ROWS, len(original_rows)))
    size = draws.choice((1, 2, 3, 4, 6, 10))
    pools: dict[str, list[Value]] = {}
    for name in names:
        constants: list[Value] = []
        for query_requirements in requirements:
            constants += query_requirements.constants.get(name, ())
        pools[name.column] = _pool(original.source.domains[name], constants, size, draws)
    drawn[table] = []
    for _ in range(draws.choice((1, 2, 3, 5, 8, 12, 20, 30))):
        row: dict[str, Value] = {}
        if original_rows:
            row = dict(zip(columns, draws.choice(original_rows), strict=True))
        for column, pool in pools.items():
            if column not in row or draws.random() < _REDRAWN_SHARE:
                row[column] = draws.choice(pool)
        for link in original.source.links[table]:
            parents = drawn.get(fold(link.parent))
            if parents:
                parent = draws.choice(parents)
                for child_column, target in zip(link.columns, link.parent_columns, strict=True):
                    row[fold(child_column)] = parent[fold(target)]
        drawn[table].append(row)


def _pool(
    domain: Domain, constants: Sequence[Value], size: int, draws: random.Random
) -> list[Value]:
    """Draw the values that a column may have: of the original, and near queries' constants."""
    values = draws.sample(domain.values, min(size, len(domain.values)))
    values += draws.sample(constants, min(len(constants), draws.choice((0, 1, 2, size))))
    if values:
        values += list(domain.neighbours(values[-1]))
    if domain.has_nulls or not values:
        values.append(None)
    return values


def flaws(path: Path, suite: Suite, original: Original) -> Counter[str]:
    """Count added values: days that do not exist, runs of letters of no text, first NULLs."""
    counts = Counter[str]()
    with closing(SuiteRunners(suite, path)) as judge:
        for (table, name), domain in original.source.domains.items():
            query = f"SELECT DISTINCT {quoted(name)} FROM {quoted(table)}"
            original_values: set[Value] = set()
            added_values: set[Value] = set()
            for database, runner in judge.runners.items():
                values = {value for (value,) in runner.connection.execute(query)}
                if database:
                    added_values |= values
                else:
                    original_values = values
            if not original_values:
                continue
            for value in added_values - original_values:
                flaw = _flaw(domain, value)
                if flaw:
                    counts[flaw] += 1
    return counts


def _flaw(domain: Domain, value: Value) -> str:
    """Return what is wrong with a value that the original's column lacks; "" if nothing is."""
    if value is None:
        return "first NULLs"
    if domain.kind == "date" and not domain.fits(value):
        return "days"
    if domain.kind == "text" and isinstance(value, str) and domain.has_new_letter_run(value):
        return "runs"
    return ""
