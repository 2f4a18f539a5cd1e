"""All cases of a database's golds, and what random databases say of those that are missed."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.judge.families import Beside
from lm_eval_ext.sql.schema import fold
from lm_eval_ext.sql.suite import Original, Suite, SuiteRunners, build
from lm_eval_ext.sql.suite.reading import GoldRequirements, read_requirements
from lm_eval_ext.sql.values import Row, Value, quoted, quoted_all

DATABASES, TRIES = 50, 200  # random ones that may judge a gold, and how many are drawn for them
COPIED, REDRAWN = 0.5, 0.4  # how often rows start as the original's, and a value is drawn anew
RIGHT = ("rewrite", "recorded")  # families of right queries


class Case(NamedTuple):
    """A query beside a gold.

    ``wrong_on`` are databases on which it is wrong, "" is the original; ``differs`` is whether any
    database distinguishes it, random ones included.
    """

    db_id: str
    gold: str
    family: str
    kind: str
    sql: str
    wrong_on: Sequence[str]
    differs: bool = True

    def misjudged(self, asked: set[str]) -> bool:
        """Whether databases call a wrong query right, or a right one wrong."""
        return (self.family in RIGHT) == (not asked.isdisjoint(self.wrong_on))


def cases(
    path: Path, suite: Suite, original: Original, chosen: Mapping[str, Mapping[str, str]]
) -> Iterator[Case]:
    """Yields the cases of chosen golds, each with recorded predictions and what is said of them."""
    beside = Beside(original)
    with closing(SuiteRunners(suite, path)) as judge:
        for case in [case for case in build.gold_cases(original) if case.gold in chosen]:
            asked = {n: judge.runners[n] for n in ("", *suite.judging(case.gold))}
            own = {n: r.expected(case.gold, "sets" if n else "reference") for n, r in asked.items()}
            wrong = build.mutants_of(case.gold, original.schema)
            others = {
                "mutant": [(one.kind, one.sql) for one in wrong if beside.runs(one.sql)],
                "neighbour": beside.neighbours(case.gold, {one.sql for one in wrong}),
                "rewrite": beside.rewrites(case.gold),
                "recorded": [(said, sql) for sql, said in chosen[case.gold].items()],
            }
            found = []
            for family, texts in others.items():
                for kind, sql in texts:
                    agrees = {n: e and asked[n].agrees(e, sql) for n, e in own.items()}
                    on = [name for name in agrees if not agrees[name]]
                    found.append(Case(suite.db_id, case.gold, family, kind, sql, on))
            missed = {one.sql for one in found if one.family not in RIGHT and not one.wrong_on}
            same = missed - distinguished(original, case, missed)
            for one in found:
                if one.family not in RIGHT or "" not in one.wrong_on:
                    yield one._replace(differs=one.sql not in same)


def distinguished(original: Original, case: build.GoldCase, wrong: set[str]) -> set[str]:
    """Returns the queries that differ from a gold on a random database that may judge it.

    Like the judge's own it holds what the original promises: constraints, a column's kind of
    values, constants of these queries and their neighbours. Right rewrites decide nothing here.
    """
    left, judged, draws = set(wrong), 0, random.Random(case.gold)
    case = replace(case, checks=replace(case.checks, may_be_empty=False, rewrites=[]))
    known = original.schema, original.source.domains
    wishes = [read_requirements(sql, *known) for sql in (case.gold, *sorted(wrong))]
    for _ in range(TRIES if left else 0):
        with closing(original.fill(_drawn(original, wishes, draws))) as connection:
            runner, judges = build.judgeable_golds(original, connection, [case], steps=300_000)
            for expected in judges.values():
                judged += 1
                left = {sql for sql in left if runner.agrees(expected, sql, 10_000)}
        if not left or judged == DATABASES:
            break
    return wrong - left


def _drawn(
    original: Original, wishes: Sequence[GoldRequirements], draws: random.Random
) -> dict[str, list[Row]]:
    """Rows by table: some of the original's, or new ones, with values drawn anew."""
    source, found = original.source, dict[str, list[dict[str, Value]]]()
    read = {table for wish in wishes for table in wish.tables}
    for table in reversed(source.tables):
        if table in read:
            read |= {fold(link.parent) for link in source.links[table]}
    for table in [table for table in source.tables if table in read]:
        names = [fold(c.name) for c in original.schema[table].columns if not c.generated]
        query = f"SELECT {quoted_all(names)} FROM {quoted(table)} LIMIT 2000"
        own = original.connection.execute(query).fetchall() if draws.random() < COPIED else []
        own, few = draws.sample(own, min(20, len(own))), draws.choice((1, 2, 3, 4, 6, 10))
        pools: dict[str, list[Value]] = {}
        for name in names:
            domain = source.domains[table, name]
            near = [value for wish in wishes for value in wish.constants.get((table, name), ())]
            values = draws.sample(domain.values, min(few, len(domain.values)))
            values += draws.sample(near, min(len(near), draws.choice((0, 1, 2, few))))
            values += [v for value in values[-1:] for v in domain.neighbours(value)]
            pools[name] = values + [None] * (domain.has_nulls or not values)
        found[table] = []
        for _ in range(draws.choice((1, 2, 3, 5, 8, 12, 20, 30))):
            row = dict(zip(names, draws.choice(own), strict=True)) if own else {}
            for name, pool in pools.items():
                if name not in row or draws.random() < REDRAWN:
                    row[name] = draws.choice(pool)
            for link in source.links[table]:
                if parents := found.get(fold(link.parent)):
                    parent = draws.choice(parents)
                    pairs = zip(link.columns, link.parent_columns, strict=True)
                    row |= {fold(c): parent[fold(t)] for c, t in pairs}
            found[table].append(row)
    return {table: [tuple(row.values()) for row in rows] for table, rows in found.items()}


def flaws(path: Path, suite: Suite, original: Original) -> Counter[str]:
    """Counts added values: days that do not exist, runs of letters of no text, first NULLs."""
    found = Counter[str]()
    with closing(SuiteRunners(suite, path)) as judge:
        for (table, name), own in original.source.domains.items():
            query = f"SELECT DISTINCT {quoted(name)} FROM {quoted(table)}"
            known, *made = ({*one.connection.execute(query)} for one in judge.runners.values())
            for (value,) in set[Row]().union(*made) - known if known else ():
                run = isinstance(value, str) and own.kind == "text" and own.is_odd(value)
                found["first NULLs"] += value is None
                found["days"] += value is not None and own.kind == "date" and not own.fits(value)
                found["runs"] += run
    return +found
