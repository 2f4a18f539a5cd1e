"""All cases of a gold on every database that judges it, and a look at added values."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.judge.draw import distinguished
from bench.judge.query import Facts, Query, normal
from bench.judge.right import rewrites
from bench.judge.wrong import borrowed, neighbours
from lm_eval_ext.sql.compare import Expected
from lm_eval_ext.sql.mutants import mutants
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.schema import schema_of
from lm_eval_ext.sql.suite import Judge, Suite
from lm_eval_ext.sql.suite.checks import Runner, checks
from lm_eval_ext.sql.values import Value, quoted

ORIGINAL = "original"

WRONG = ("mutant", "neighbour")
"""Families of wrong queries; ``rewrite`` are right ones."""


@dataclass(frozen=True)
class Case:
    """A query of a family and where it is judged wrong.

    Attributes:
        wrong_on: Names of databases on which its result differs from the gold's.
        judged_on: Names of databases that judge the gold.
        differs: Whether any database distinguishes it, random ones included.
    """

    db_id: str
    gold: str
    family: str
    kind: str
    sql: str
    wrong_on: Sequence[str]
    judged_on: Sequence[str]
    differs: bool = True


def cases(
    db_id: str, original: Path, suite: Suite, golds: Sequence[str], chosen: Sequence[str]
) -> Iterator[Case]:
    """Yields the cases of chosen golds; neighbours take conditions from all golds."""
    facts = Facts(original)
    queries = {gold: query for gold in golds if (query := _readable(gold, facts)) is not None}
    pool = borrowed(list(queries.values()))
    with closing(Judge(suite, original)) as judge:
        for gold in chosen:
            if gold not in queries:
                continue
            query, names = queries[gold], ["", *suite.judging(gold)]
            expected = {
                name or ORIGINAL: (judge.runners[name], result)
                for name in names
                if (result := judge.runners[name].expected(gold, "sets" if name else "reference"))
            }
            own = checks(gold, facts.schema, facts.runner)
            known = {normal(sql) for sql in own.rewrites} if own else set()
            texts = [
                ("mutant", one.kind, one.sql)
                for one in mutants(gold, facts.schema)
                if facts.answer(one.sql)
            ]
            texts += [("neighbour", *one) for one in neighbours(query, pool)]
            texts += [("rewrite", *one) for one in rewrites(query) if normal(one.sql) not in known]
            found = [(*text, _wrong_on(text[2], expected)) for text in texts]
            missed = [sql for family, _, sql, wrong in found if family in WRONG and not wrong]
            differing = distinguished(query, missed)
            for family, kind, sql, wrong in found:
                if family in WRONG or ORIGINAL not in wrong:
                    differs = bool(wrong) or sql in differing
                    yield Case(db_id, gold, family, kind, sql, wrong, [*expected], differs)


def _readable(gold: str, facts: Facts) -> Query | None:
    try:
        return Query(gold, facts) if facts.answer(gold) is not None else None
    except UnparsedQuery:
        return None


def _wrong_on(sql: str, expected: dict[str, tuple[Runner, Expected]]) -> list[str]:
    return [name for name, (runner, gold) in expected.items() if not runner.agrees(gold, sql)]


_FORMATS = (
    (r"\d{4}-\d{1,2}-\d{1,2}", "%Y-%m-%d"),
    (r"\d{4}-\d{1,2}-\d{1,2} \d{1,2}:\d{1,2}:\d{1,2}", "%Y-%m-%d %H:%M:%S"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%m/%d/%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{1,2}", "%m/%d/%Y %H:%M"),
    (r"\d{1,2}-[A-Za-z]{3}-\d{2}", "%d-%b-%y"),
    (r"[A-Za-z]+ \d{1,2}, \d{4}", "%B %d, %Y"),
    (r"\d{1,2}:\d{2}:\d{2}", "%H:%M:%S"),
)

_RUN = re.compile(r"([^\W\d_])\1\1", re.IGNORECASE)


def flaws(original: Path, made: Sequence[Path]) -> Counter[str]:
    """Counts cells that made databases have and must not have.

    Keys: ``dates`` (that do not exist), ``runs`` (of three letters), ``first NULLs``, and
    ``fractions`` (in columns of whole numbers).
    """
    found: Counter[str] = Counter()
    with closing(sqlite3.connect(original)) as first:
        first.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        schema = schema_of(first)
        names = [(t.name, c.name) for t in schema.values() if not t.view for c in t.columns]
        queries = [f"SELECT {quoted(c)}, COUNT(*) FROM {quoted(t)} GROUP BY 1" for t, c in names]
        before = [{value for value, _ in first.execute(query)} for query in queries]
    for path in made:
        with closing(sqlite3.connect(path)) as there:
            there.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            for query, known in zip(queries, before, strict=True):
                after = {v: n for v, n in there.execute(query) if v not in known}
                for kind, value in _flaws(known, after) if known else ():
                    found[kind] += after[value]
    return found


def _flaws(known: set[Value], added: Iterable[Value]) -> Iterator[tuple[str, Value]]:
    texts = [value for value in known if isinstance(value, str)]
    formats = [f for f in _FORMATS if any(_parses(text, *f) for text in texts)]
    dated = 2 * sum(any(_parses(text, *f) for f in formats) for text in texts) > len(known)
    runs = any(map(_RUN.search, texts))
    for value in added:
        if value is None:
            yield "first NULLs", value
        elif isinstance(value, str):
            if dated and not any(_parses(value, *f) for f in formats):
                yield "dates", value
            if not runs and _RUN.search(value):
                yield "runs", value
        elif isinstance(value, float) and all(isinstance(v, int | None) for v in known):
            yield "fractions", value


def _parses(text: str, pattern: str, written: str) -> bool:
    try:
        return bool(re.fullmatch(pattern, text) and datetime.strptime(text, written))
    except ValueError:
        return False
