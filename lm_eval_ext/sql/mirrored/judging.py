"""Gold queries of an engine with their near misses and rewrites, run on that engine.

They are made of the gold's form for SQLite and written back. A gold takes part only if both of its
translations give its own result on the original rows.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from lm_eval_ext.sql.compare import among
from lm_eval_ext.sql.distill.report import Broken, GoldReport, Report, Tie
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner
from lm_eval_ext.sql.engines.base import moment
from lm_eval_ext.sql.executor import Executor
from lm_eval_ext.sql.mirrored.dialect import from_sqlite, to_sqlite
from lm_eval_ext.sql.mirrored.reading import Mirror
from lm_eval_ext.sql.mutants import near_misses
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.policy import Limits, open_guarded
from lm_eval_ext.sql.proofs import equivalent
from lm_eval_ext.sql.rewrites import Facts, rewrites
from lm_eval_ext.sql.values import QueryError, Row, Status, Value

ORIGINAL, COPY = "original", "copy"
"""Ids under which the executor of this module finds the two databases."""


@dataclass(frozen=True)
class Said:
    """A gold query, and the same for SQLite."""

    gold: str
    sqlite: str


def translated(
    executor: Executor, mirror: Mirror, golds: Iterable[str]
) -> tuple[list[Said], list[GoldReport]]:
    """The golds with their forms for SQLite; apart, those that have none, or do not run.

    Args:
        executor: Knows the original as :data:`ORIGINAL`.
        mirror: Of the original.
        golds: In the engine's dialect.
    """
    said: list[Said] = []
    failed: list[GoldReport] = []
    with closing(open_guarded(str(mirror.path), Limits())) as connection:
        runner = Runner(connection)
        for gold in sorted(set(golds)):
            rows = -1
            try:
                expected = executor.query(ORIGINAL, gold).rows
                rows = len(expected)
                text = to_sqlite(gold, mirror.place.engine, mirror.schema)
                if not same_rows(expected, runner.rows(text)):
                    raise UnparsedQuery("has another result in SQLite")
                back = from_sqlite(text, mirror.place.engine, mirror.schema)
                if not same_rows(expected, executor.query(ORIGINAL, back).rows):
                    raise UnparsedQuery("has another result once it is written back from SQLite")
                said.append(Said(gold, text))
            except (QueryError, UnparsedQuery, NoResultError) as error:
                failed.append(GoldReport(gold, rows, -1, 0, 0, (), None, str(error)))
    return said, failed


def same_rows(expected: Sequence[Row], rows: Sequence[Row]) -> bool:
    """Whether results are equal in any order, floats by rounding, moments in any spelling."""
    return len(expected) == len(rows) and among(
        [tuple(map(_shown, row)) for row in expected], [tuple(map(_shown, row)) for row in rows]
    )


def _shown(value: Value) -> Value:
    return moment(value) if isinstance(value, str) and value[4:5] == "-" else value


def judge(
    executor: Executor, mirror: Mirror, said: Sequence[Said], searched: Report,
    semantics: str = "reference",
) -> list[GoldReport]:  # fmt: skip
    """Reports on golds by what the engine itself says of the copy.

    Near misses and rewrites that do not run there are left out: a model that wrote them would get
    an error. So are rewrites that the original rows already tell from the gold, since what order
    rows come in without ORDER BY is each engine's own affair.

    Args:
        executor: Knows both databases.
        mirror: Of the original.
        said: The golds.
        searched: The report of the search, for its proofs, on their forms for SQLite.
        semantics: When results count as equal.
    """
    known = {gold.gold: gold for gold in searched.golds}
    with closing(open_guarded(str(mirror.path), Limits())) as connection:
        facts = Facts(mirror.schema, Runner(connection).rows, NoResultError)

        def status(database: str, gold: str, other: str) -> Status:
            return executor.score_one(database, gold, other, semantics=semantics).status

        return [_judged(executor, mirror, one, known[one.sqlite], facts, status) for one in said]


def _judged(  # noqa: PLR0917
    executor: Executor, mirror: Mirror, said: Said, searched: GoldReport, facts: Facts,
    status: Callable[[str, str, str], Status],
) -> GoldReport:  # fmt: skip
    if searched.error is not None:
        return replace(searched, gold=said.gold)
    before = executor.query(ORIGINAL, said.gold).rows
    try:
        after = len(executor.query(COPY, said.gold).rows)
    except QueryError as error:
        return GoldReport(said.gold, len(before), -1, 0, 0, (), None, f"on the copy: {error}")
    proven = {tie.near_miss.sql: tie.equivalent for tie in searched.ties}
    ties, ran, late = [], 0, 0
    for miss in near_misses(said.sqlite, mirror.schema):
        if (text := _back(mirror, miss.sql)) is None:
            continue
        found = status(COPY, said.gold, text)
        ran += found in ("correct", "wrong")
        late += found in ("prediction_timeout", "prediction_too_large")
        if found == "correct":
            why = proven.get(miss.sql) or equivalent(said.sqlite, miss, mirror.schema)
            ties.append(Tie(said.gold, replace(miss, sql=text), why))
    kinds: Counter[str] = Counter()
    broken = []
    for one in rewrites(said.sqlite, mirror.schema, facts):
        text = _back(mirror, one.sql)
        if text is None or status(ORIGINAL, said.gold, text) != "correct":
            continue
        kinds[one.kind] += 1
        if status(COPY, said.gold, text) == "wrong":
            broken.append(Broken(one.kind, text, one.text))
    return GoldReport(
        said.gold, len(before), after, ran, late, tuple(ties),
        searched.empty if not after and searched.empty else (None if after else "not filled"),
        None, dict(sorted(kinds.items())), tuple(broken),
        searched.cut_ties, searched.new_cut_ties,
    )  # fmt: skip


def _back(mirror: Mirror, sql: str) -> str | None:
    try:
        return from_sqlite(sql, mirror.place.engine, mirror.schema)
    except UnparsedQuery:
        return None
