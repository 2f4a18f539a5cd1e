"""All cases of a database's golds, and what random databases say of those that are missed."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from bench.judge.families import Beside
from lm_eval_ext.sql.suite import Judge, Original, Suite, build
from lm_eval_ext.sql.suite.reading import Wish, read_wish
from lm_eval_ext.sql.values import Value, quoted, quoted_all

DATABASES, TRIES = 50, 200
"""Random databases on which a gold may be judged, and how many are drawn for them at most."""

COPIED, REDRAWN = 0.5, 0.4
"""How often rows start as the original's, and a value of those is drawn anew."""


@dataclass(frozen=True)
class Case:
    """A query beside a gold.

    Attributes:
        wrong_on: Databases on which its result differs from the gold's; "" is the original.
        differs: Whether any database distinguishes it, random ones included.
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
        return (self.family == "rewrite") == (not asked.isdisjoint(self.wrong_on))


def cases(
    db_id: str, path: Path, suite: Suite, golds: Sequence[str], chosen: Sequence[str]
) -> Iterator[Case]:
    """Yields the cases of chosen golds; neighbours take conditions from all golds."""
    original = Original(path, golds)
    beside = Beside(original)
    with closing(original.connection), closing(Judge(suite, path)) as judge:
        for case in [case for case in original.cases() if case.gold in chosen]:
            expected = {
                name: judge.runners[name].expected(case.gold, "sets" if name else "reference")
                for name in ("", *suite.judging(case.gold))
            }
            wrong = build.mutants_of(case.gold, original.schema)
            texts = [("mutant", m.kind, m.sql) for m in wrong if beside.runs(m.sql)]
            known = {m.sql for m in wrong}
            texts += [("neighbour", *one) for one in beside.neighbours(case.gold, known)]
            texts += [("rewrite", *one) for one in beside.rewrites(case.gold)]
            found = []
            for text in texts:
                agrees = {n: e and judge.runners[n].agrees(e, text[2]) for n, e in expected.items()}
                found.append(Case(db_id, case.gold, *text, [n for n in agrees if not agrees[n]]))
            missed = {c.sql for c in found if c.family != "rewrite" and not c.wrong_on}
            same = missed - distinguished(original, case, missed)
            for one in found:
                if one.family != "rewrite" or "" not in one.wrong_on:
                    yield replace(one, differs=one.sql not in same)


def distinguished(original: Original, case: build.Case, wrong: set[str]) -> set[str]:
    """Returns the queries that differ from a gold on a random database that may judge it.

    Like the judge's own it holds what the original promises: constraints, a column's kind of
    values, constants of these queries and their neighbours. Right rewrites decide nothing here.
    """
    left, judged, draws = set(wrong), 0, random.Random(case.gold)
    case = replace(case, checks=replace(case.checks, void=False, rewrites=[]))
    known = original.schema, original.source.domains
    wishes = [read_wish(sql, *known) for sql in (case.gold, *sorted(wrong))]
    for _ in range(TRIES if left else 0):
        with closing(original.filled(_drawn(original, wishes, draws))) as connection:
            runner, judges = original.judges(connection, [case], steps=300_000)
            for expected in judges.values():
                judged += 1
                left = {sql for sql in left if runner.agrees(expected, sql, 10_000)}
        if not left or judged == DATABASES:
            break
    return wrong - left


def _drawn(
    original: Original, wishes: Sequence[Wish], draws: random.Random
) -> dict[str, list[tuple[Value, ...]]]:
    """Rows by table: some of the original's, or new ones, with values drawn anew."""
    source, found = original.source, dict[str, list[dict[str, Value]]]()
    read = {table for wish in wishes for table in wish.tables}
    for table in reversed(source.tables):
        if table in read:
            read |= {link.parent.casefold() for link in source.links[table]}
    for table in [table for table in source.tables if table in read]:
        names = [c.name.casefold() for c in original.schema[table].columns if not c.generated]
        query = f"SELECT {quoted_all(names)} FROM {quoted(table)} LIMIT 2000"
        own = original.connection.execute(query).fetchall() if draws.random() < COPIED else []
        own, few = draws.sample(own, min(20, len(own))), draws.choice((1, 2, 3, 4, 6, 10))
        pools: dict[str, list[Value]] = {}
        for name in names:
            domain = source.domains[table, name]
            near = [value for wish in wishes for value in wish.near.get((table, name), ())]
            values = draws.sample(domain.own, min(few, len(domain.own)))
            values += draws.sample(near, min(len(near), draws.choice((0, 1, 2, few))))
            values += [v for value in values[-1:] for v in domain.beside(value)]
            pools[name] = values + [None] * (domain.nulls or not values)
        found[table] = []
        for _ in range(draws.choice((1, 2, 3, 5, 8, 12, 20, 30))):
            row = dict(zip(names, draws.choice(own), strict=True)) if own else {}
            for name, pool in pools.items():
                if name not in row or draws.random() < REDRAWN:
                    row[name] = draws.choice(pool)
            for link in source.links[table]:
                if parents := found.get(link.parent.casefold()):
                    parent = draws.choice(parents)
                    pairs = zip(link.columns, link.parent_columns, strict=True)
                    row |= {c.casefold(): parent[t.casefold()] for c, t in pairs}
            found[table].append(row)
    return {table: [tuple(row.values()) for row in rows] for table, rows in found.items()}


def flaws(path: Path, suite: Suite) -> Counter[str]:
    """Counts added values: days that do not exist, runs of letters of no text, first NULLs."""
    found, original = Counter[str](), Original(path, [])
    with closing(original.connection), closing(Judge(suite, path)) as judge:
        for (table, name), own in original.source.domains.items():
            query = f"SELECT DISTINCT {quoted(name)} FROM {quoted(table)}"
            runners = judge.runners.values()
            known, *made = ({v for (v,) in one.connection.execute(query)} for one in runners)
            for value in set[Value]().union(*made) - known if known else ():
                no_day = own.kind == "date" and not own.fits(value)
                run = isinstance(value, str) and own.kind == "text" and own.odd(value)
                kind = "first NULLs" if value is None else "days" if no_day else "runs"
                found[kind] += value is None or no_day or run
    return +found
