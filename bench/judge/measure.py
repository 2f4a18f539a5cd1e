"""Runs all cases of a gold on every database that judges it, and looks at added values."""

import hashlib
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from bench.judge.draw import bag, distinguished, same_rows
from bench.judge.neighbours import Span, borrowed, neighbours
from bench.judge.query import Answer, Facts, Query, answer, connect, normal
from bench.judge.rewrites import rewrites
from bench.judge.slips import slips
from lm_eval_ext.sql.compare import Expected, Gold, find_semantics
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.values import Failure, Rows, Value, quoted

ORIGINAL = "original"
V2 = "v2"
COPY = "copy"

WRONG = ("mutant", "neighbour", "slip")
"""Families of wrong queries; ``rewrite`` and ``rewrite, other order`` are right ones."""

Gate = Callable[[str, Facts], Set[str]]
"""The right rewrites of a gold that the package itself tries, by :func:`.query.normal`."""

Mutants = Callable[[str, Facts], Iterator[tuple[str, str, bool]]]
"""The package's mutants of a gold: kind, text, whether it is proven equivalent."""


@dataclass(frozen=True)
class Database:
    """A database beside the original.

    Attributes:
        path: The file.
        made: Whether the comparison is that of databases that we made.
    """

    path: Path
    made: bool = True


@dataclass
class Databases:
    """The databases of one id: the original and, by label, those that judge beside it."""

    original: Path
    others: dict[str, Database] = field(default_factory=dict)
    judging: Mapping[str, tuple[str, ...]] | None = None
    """By :func:`gold_key`: labels that may judge a gold; None: all."""

    def labels(self, gold: str) -> list[str]:
        """The labels that judge a gold, the original first."""
        mine = None if self.judging is None else self.judging.get(gold_key(gold), ())
        return [ORIGINAL] + [n for n in self.others if n == V2 or mine is None or n in mine]


def gold_key(gold: str) -> str:
    """What suites name a gold by."""
    return hashlib.sha256(gold.encode()).hexdigest()[:16]


@dataclass
class Case:
    """A query of a family and where it is judged wrong.

    Attributes:
        wrong_on: Labels of databases on which its result differs from the gold's.
        judged_on: Labels of databases that judge the gold.
        proven: Whether the package proves it equivalent (mutants).
        differs: Whether any database distinguishes it, random ones included.
    """

    db_id: str
    gold: str
    family: str
    kind: str
    sql: str
    wrong_on: list[str]
    judged_on: list[str]
    proven: bool = False
    differs: bool = True

    def wrong(self, labels: Callable[[str], bool]) -> bool:
        """Whether a judge that asks these databases calls it wrong."""
        return any(labels(label) for label in self.wrong_on)


def cases(
    db_id: str,
    databases: Databases,
    golds: Sequence[str],
    chosen: Sequence[str],
    *,
    mutants: Mutants,
    gate: Gate,
) -> Iterator[list[Case]]:
    """Yields the cases of each chosen gold of a database.

    Args:
        db_id: Its id.
        databases: Its files.
        golds: All golds, from which neighbours take spans.
        chosen: Those to examine.
        mutants: Of the package.
        gate: Of the package; its rewrites are left out of ours.
    """
    facts = Facts(databases.original)
    opened = {label: connect(one.path) for label, one in databases.others.items()}
    opened[ORIGINAL] = facts.connection
    pool = borrowed([q for gold in golds if (q := readable(gold, facts)) is not None])
    for gold in chosen:
        query = readable(gold, facts)
        if query is None:
            yield []
        else:
            judges = Judges(query, databases, opened)
            wrong = [*_wrong(db_id, query, judges, pool, mutants)]
            right = _right(db_id, query, judges, gate(gold, facts))
            yield [*wrong, *right]


def readable(gold: str, facts: Facts) -> Query | None:
    """A gold that runs and can be parsed."""
    if answer(facts.connection, gold) is None:
        return None
    try:
        return Query(gold, facts)
    except UnparsedQuery:
        return None


class Judges:
    """A gold's results on all databases that judge it."""

    def __init__(
        self, query: Query, databases: Databases, opened: Mapping[str, sqlite3.Connection]
    ) -> None:
        self.gold, self.opened = query.gold, opened
        self.expected: dict[str, Expected] = {}
        for label in databases.labels(query.gold):
            made = label != ORIGINAL and databases.others[label].made
            if (expected := prepare(query.gold, opened[label], made=made)) is not None:
                self.expected[label] = expected

    def wrong_on(self, sql: str, labels: Iterable[str]) -> list[str]:
        """The labels on which a query's result differs from the gold's."""
        return [
            label
            for label in labels
            if (got := answer(self.opened[label], sql)) is None
            or not self.expected[label].matches(Rows(got.columns, got.rows))
        ]


def _wrong(
    db_id: str, query: Query, judges: Judges, pool: Sequence[Span], mutants: Mutants
) -> list[Case]:
    """The cases of wrong queries; random databases try those that nothing else distinguishes."""
    original, labels = query.facts.connection, list(judges.expected)
    texts = [
        ("mutant", kind, sql, proven)
        for kind, sql, proven in mutants(query.gold, query.facts)
        if answer(original, sql) is not None
    ]
    texts += [("neighbour", *one, False) for one in neighbours(query, pool)]
    texts += [("slip", *one, False) for one in slips(query)]
    found = [
        Case(db_id, query.gold, family, kind, sql, judges.wrong_on(sql, labels), labels, proven)
        for family, kind, sql, proven in texts
    ]
    missed = [case for case in found if not case.wrong_on and not case.proven]
    differing = distinguished(query, [case.sql for case in missed])
    for case in missed:
        case.differs = case.sql in differing
    return found


def _right(db_id: str, query: Query, judges: Judges, known: Set[str]) -> Iterator[Case]:
    """The cases of rewrites that are right on the original."""
    original, labels = query.facts.connection, list(judges.expected)
    expected = answer(original, query.gold)
    for kind, sql in rewrites(query):
        got = answer(original, sql)
        if expected is None or got is None or normal(sql) in known:
            continue
        family, on = "rewrite", labels
        if not same_rows(expected, got):
            if query.ordered() or bag(expected) != bag(got):
                continue
            family = "rewrite, other order"
            on = [label for label in labels if label not in (ORIGINAL, V2)]
        yield Case(db_id, query.gold, family, kind, sql, judges.wrong_on(sql, on), on)


def prepare(gold: str, connection: sqlite3.Connection, *, made: bool) -> Expected | None:
    """A gold's result for comparison, None if it does not run there."""

    def run(sql: str) -> Rows | Failure:
        got: Answer | None = answer(connection, sql)
        return Failure("error", "") if got is None else Rows(got.columns, got.rows)

    result = run(gold)
    semantics = find_semantics("reference")
    if made:
        semantics = find_semantics(getattr(semantics, "made", None) or "reference")
    return None if isinstance(result, Failure) else semantics.prepare(Gold(gold, result, run))


# Added values.

_FORMATS = (
    (r"\d{4}-\d{1,2}-\d{1,2}", "%Y-%m-%d"),
    (r"\d{4}-\d{1,2}-\d{1,2} \d{1,2}:\d{1,2}:\d{1,2}", "%Y-%m-%d %H:%M:%S"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%m/%d/%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%d/%m/%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{1,2}", "%m/%d/%Y %H:%M"),
    (r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{1,2}:\d{1,2}", "%m/%d/%Y %H:%M:%S"),
    (r"\d{1,2}-[A-Za-z]{3}-\d{2}", "%d-%b-%y"),
    (r"\d{1,2}-[A-Za-z]{3}-\d{4}", "%d-%b-%Y"),
    (r"\d{1,2} [A-Za-z]+ \d{4}", "%d %B %Y"),
    (r"[A-Za-z]+ \d{1,2}, \d{4}", "%B %d, %Y"),
    (r"\d{1,2}:\d{2}:\d{2}", "%H:%M:%S"),
)

_RUN = re.compile(r"([^\W\d_])\1\1", re.IGNORECASE)


def flaws(original: Path, made: Sequence[Path]) -> Counter[str]:
    """Counts cells that made databases have and must not have, and lists them by column.

    Keys: ``dates``, ``runs``, ``first NULLs``, ``fractions`` (in columns of whole numbers), and
    ``kind: table.column value`` for each.
    """
    found: Counter[str] = Counter()
    facts = Facts(original)
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(connect(path))) for path in made]
        for table in facts.schema:
            for column in () if facts.schema[table].view else facts.columns(table):
                name = quoted(column.column)
                query = f"SELECT {name}, COUNT(*) FROM {quoted(column.table)} GROUP BY {name}"
                before = {row[0] for row in facts.connection.execute(query)}
                for there in opened:
                    after = {v: n for v, n in there.execute(query) if v not in before}
                    for kind, value in _flaws(before - {None}, after, has_null=None in before):
                        found[kind] += 1 if value is None else after[value]
                        found[f"{kind}: {column.table}.{column.column} {value!r:.60}"] += 1
    facts.connection.close()
    return found


def _flaws(
    before: set[Value], added: Iterable[Value], *, has_null: bool
) -> Iterator[tuple[str, Value]]:
    if not before:
        return
    texts = [value for value in before if isinstance(value, str)]
    formats = [f for f in _FORMATS if any(_parses(text, *f) for text in texts)]
    dated = sum(any(_parses(text, *f) for f in formats) for text in texts)
    whole = all(isinstance(value, int) for value in before)
    for value in added:
        if value is None and not has_null:
            yield "first NULLs", value
        elif isinstance(value, str):
            if dated * 2 > len(before) and not any(_parses(value, *f) for f in formats):
                yield "dates", value
            if _RUN.search(value) and not any(_RUN.search(text) for text in texts):
                yield "runs", value
        elif isinstance(value, float) and whole:
            yield "fractions", value


def _parses(text: str, pattern: str, written: str) -> bool:
    if not re.fullmatch(pattern, text):
        return False
    try:
        datetime.strptime(text, written)
    except ValueError:
        return False
    return True
