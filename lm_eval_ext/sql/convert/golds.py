"""Gold queries that are translated, and kept only if they give SQLite's result.

A translation can be wrong in silence. So it is run on each part of the converted database, the
original rows and the populated ones, and its result is compared with that of the gold on SQLite by
the semantics ``strict``: as multisets, in order where the gold has one, floats up to rounding.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from lm_eval_ext.sql.compare import Gold, find_semantics
from lm_eval_ext.sql.convert.columns import Type
from lm_eval_ext.sql.convert.drafts import plan
from lm_eval_ext.sql.convert.naming import Names
from lm_eval_ext.sql.convert.outcomes import REASONS, Translated
from lm_eval_ext.sql.convert.translate import translate
from lm_eval_ext.sql.engines.base import moment
from lm_eval_ext.sql.executor import Executor
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.values import EngineName, Failure, Place, QueryError, Rows, Value

_ERRORS: Final = (
    ("bare_column", "must appear in the GROUP BY clause"),
    ("distinct_order", "for SELECT DISTINCT, ORDER BY"),
    (
        "types",
        "operator does not exist|Cannot compare values|Conversion Error|invalid input syntax"
        "|No function matches|function .* does not exist|types .* cannot be matched"
        "|out of range|must be type|Cannot mix values|could not convert|Type Mismatch",
    ),
)
"""What engines say, by reason."""


class Checker:
    """Translates and tries the golds of databases, one after the other.

    Args:
        engine: Where to.
        sqlite: Runs the golds.
        other: Runs their translations.

    Attributes:
        timed_out: Whether a query took too long so far, which it need not do again.
    """

    def __init__(self, engine: EngineName, sqlite: Executor, other: Executor) -> None:
        self._engine, self._sqlite, self._other = engine, sqlite, other
        self._reserved: frozenset[str] | None = None
        self.timed_out = False

    def check(
        self, golds: Iterable[str], originals: Mapping[str, Path], converted: Mapping[str, Place]
    ) -> list[Translated]:
        """Translates the golds of one database.

        Args:
            golds: In SQLite's dialect.
            originals: Its SQLite files by part; together they decided about the types.
            converted: The same parts, converted.

        Raises:
            DataError: A database cannot be used.
        """
        names = self.names(originals, next(iter(converted.values())))
        return [self._check(gold, names, originals, converted) for gold in golds]

    def names(self, originals: Mapping[str, Path], place: Place) -> Names:
        """What one database is called and typed on both sides; ``place`` is any on the engine."""
        if self._reserved is None:
            self._reserved = frozenset(self._words(place))
        planned = plan(list(originals.values()), self._engine)
        return Names(planned.schema, planned.types, self._engine, self._reserved)

    def _words(self, place: Place) -> Iterable[str]:
        """The words that cannot be names unless they are quoted."""
        if self._engine == "duckdb":
            import duckdb

            with duckdb.connect() as database:
                found = database.execute(
                    "SELECT keyword_name FROM duckdb_keywords() "
                    "WHERE keyword_category <> 'unreserved'"
                ).fetchall()
        else:
            found = self._other.query(
                place, "SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'"
            ).rows
        return (str(word).casefold() for (word,) in found)

    def _check(
        self,
        gold: str,
        names: Names,
        originals: Mapping[str, Path],
        converted: Mapping[str, Place],
    ) -> Translated:
        try:
            sql = translate(gold, names)
        except UnparsedQuery as error:
            return Translated(gold, "", "not_read", str(error))
        for part, path in originals.items():
            try:
                right = self._equal(gold, path, sql, converted[part])
            except _GoldFailsError as error:
                return Translated(gold, sql, "gold_fails", str(error))
            except QueryError as error:
                return Translated(gold, sql, _reason(error.failure), error.failure.message)
            if not right:
                exact = translate(gold, names, nulls="sqlite")
                try:
                    ordered = exact != sql and self._equal(gold, path, exact, converted[part])
                except (_GoldFailsError, QueryError):
                    ordered = False
                cut = re.search(r"\blimit\b[^)]*\)", gold, re.IGNORECASE)
                reason = "null_order" if ordered else "inner_limit" if cut else f"differs_{part}"
                return Translated(gold, sql, reason, REASONS[reason])
        return Translated(gold, sql)

    def _equal(self, gold: str, path: Path, sql: str, place: Place) -> bool:
        def ask(executor: Executor, place: Path | Place, query: str) -> Rows:
            try:
                return executor.query(place, query)
            except QueryError as error:
                self.timed_out |= error.failure.kind == "timeout"
                raise

        def run(query: str) -> Rows | Failure:
            try:
                found = ask(self._sqlite, path, query)
            except QueryError as error:
                return error.failure
            return Rows(found.columns, [tuple(map(cell, row)) for row in found.rows])

        expected = run(gold)
        if isinstance(expected, Failure):
            raise _GoldFailsError(expected.message)
        prepared = find_semantics("strict").prepare(Gold(gold, expected, run))
        return prepared.matches(ask(self._other, place, sql))


class _GoldFailsError(Exception):
    """The gold query does not run on SQLite."""


def cell(value: Value) -> Value:
    """A value of SQLite as the converted one is compared: a text may be a timestamp there."""
    if isinstance(value, str) and Type("timestamp").holds([value]):
        return moment(value)
    return value


def _reason(failure: Failure) -> str:
    said = failure.message
    return next((reason for reason, pattern in _ERRORS if re.search(pattern, said)), "does_not_run")
