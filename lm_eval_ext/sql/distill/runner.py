"""Running queries within a number of steps, and holding results against a gold's."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lm_eval_ext.sql.values import Row
from lm_eval_ext.text import one_line

STEPS = 8_000_000
"""Instructions of SQLite's virtual machine that one query may take: some 0.3 s. Counted, not
timed, so that a slow machine builds the same rows."""

MAX_ROWS = 100_000
"""Rows that a gold's result may have, as for a prediction."""

_TICK = 10_000
_CHUNK = 50
_UNLIMITED = float("inf")


class NoResultError(Exception):
    """A query gave no result; ``slow`` if it ran over a limit."""

    def __init__(self, message: str, *, slow: bool = False) -> None:
        super().__init__(message)
        self.slow = slow


class Runner:
    """Runs queries on a connection.

    Attributes:
        work: Instructions spent so far, in units of 10,000.

    Args:
        connection: Where they run. Its progress handler and text factory are taken over.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.work = 0
        self._left: float = _UNLIMITED
        connection.set_progress_handler(self._tick, _TICK)
        # As in lm_eval_ext.sql.worker; the reason: values.Value.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")

    def rows(self, sql: str, *, steps: int = STEPS) -> list[Row]:
        """Returns a query's rows.

        Raises:
            NoResultError: It fails, or takes more than its steps or rows.
        """
        with self._run(sql, steps) as cursor:
            found: list[Row] = cursor.fetchmany(MAX_ROWS + 1)
        if len(found) > MAX_ROWS:
            raise NoResultError(f"over {MAX_ROWS:,} rows", slow=True)
        return found

    def same(self, expected: list[Row], sql: str, *, steps: int = STEPS) -> bool:
        """Whether a query's result is the expected one under ``reference`` semantics.

        The same answer as :class:`lm_eval_ext.sql.compare.ReferenceExpected`, given at the first
        row that differs: a near miss without its join condition may have millions of rows.

        Raises:
            NoResultError: The query fails, or takes more than its steps before it differs.
        """
        at = 0
        with self._run(sql, steps) as cursor:
            while rows := cursor.fetchmany(_CHUNK):
                part = expected[at : at + len(rows)]
                if rows != part and not _agree(part, rows):
                    return False
                at += len(rows)
        return at == len(expected)

    @contextmanager
    def _run(self, sql: str, steps: int) -> Iterator[sqlite3.Cursor]:
        self._left = steps // _TICK
        cursor = self.connection.cursor()
        try:
            cursor.execute(sql)
            if cursor.description is None:
                raise NoResultError("not a query: it has no result, not even an empty one")
            yield cursor
        except (
            sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError
        ) as error:  # fmt: skip
            message = one_line(str(error) or "out of memory", limit=200)
            raise NoResultError(message, slow=self._left < 0) from None
        finally:
            cursor.close()
            self._left = _UNLIMITED  # the connection has other work than queries, too

    def _tick(self) -> bool:
        self._left -= 1
        self.work += 1
        return self._left < 0


def _agree(expected: Sequence[Row], rows: Sequence[Row]) -> bool:
    if len(expected) != len(rows):
        return False
    return all(
        gold == row or set(gold) == set(row) for gold, row in zip(expected, rows, strict=True)
    )
