"""SQLite, by the standard library's driver; its guards are in :mod:`lm_eval_ext.sql.policy`."""

import sqlite3
import time
from collections import OrderedDict

from lm_eval_ext.sql.engines.base import Engine, failure_of
from lm_eval_ext.sql.policy import CONNECTIONS, Limits, open_guarded
from lm_eval_ext.sql.reasons import NO_RESULT, NOT_AUTHORIZED, SEVERAL_STATEMENTS, is_no_select
from lm_eval_ext.sql.values import Failure, Row, Rows

_CHECK_EVERY = 4_000
"""Instructions of SQLite's virtual machine between two checks of the time (about 200 us)."""

_REASONS = {
    "not authorized": NOT_AUTHORIZED,
    "authorization denied": NOT_AUTHORIZED,  # of VACUUM
    "You can only execute one statement at a time.": SEVERAL_STATEMENTS,
}
"""What the driver says of a text that is no query, and what is said instead."""


class SQLiteEngine(Engine):
    """Runs queries on SQLite files, whose paths are the addresses.

    Up to :data:`~lm_eval_ext.sql.policy.CONNECTIONS` files stay open.
    """

    # Python 3.10 raises sqlite3.Warning, which is not an sqlite3.Error, for a second statement.
    driver_errors = (sqlite3.Error, sqlite3.Warning)

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._connections = OrderedDict[str, sqlite3.Connection]()
        self._deadline = 0.0

    def close(self) -> None:
        """Close all connections; later queries open new ones."""
        while self._connections:
            _, connection = self._connections.popitem()
            connection.close()

    def _run(self, address: str, sql: str) -> Rows:
        if is_no_select(sql):
            raise ValueError(NOT_AUTHORIZED)
        self._deadline = time.process_time() + self.limits.timeout_s
        cursor = self._connection(address).cursor()
        try:
            cursor.execute(sql)
            if cursor.description is None:
                # Only comments, or a statement without a result, such as REINDEX.
                raise ValueError(NO_RESULT)
            rows: list[Row] = []
            self._collect_rows(rows, map(self._count_blobs, cursor))
            return Rows(tuple(column[0] for column in cursor.description), rows)
        finally:
            cursor.close()

    def _failure(self, error: Exception) -> Failure:
        if isinstance(error, sqlite3.DataError):  # SQLite's TOOBIG
            return failure_of("too_large", error)
        if isinstance(error, sqlite3.OperationalError) and self._is_late():
            return self._timeout()
        reason = _REASONS.get(str(error))
        if reason is not None:
            return Failure("error", reason)
        return failure_of("error", error)

    def _connection(self, path: str) -> sqlite3.Connection:
        connection = self._connections.get(path)
        if connection is not None:
            self._connections.move_to_end(path)
            return connection
        if len(self._connections) >= CONNECTIONS:
            _, oldest = self._connections.popitem(last=False)
            oldest.close()
        connection = open_guarded(path, self.limits)
        connection.text_factory = self._decode
        connection.set_progress_handler(self._is_late, _CHECK_EVERY)
        self._connections[path] = connection
        return connection

    def _is_late(self) -> bool:
        return time.process_time() > self._deadline

    def _decode(self, raw: bytes) -> str:
        self._count_bytes(len(raw))
        return raw.decode("utf-8", "surrogateescape")  # the reason: values.Value

    def _count_blobs(self, row: Row) -> Row:
        """Return the row after its blobs are counted; texts are counted where they are decoded."""
        if bytes in map(type, row):
            for value in row:
                if type(value) is bytes:
                    self._count_bytes(len(value))
        return row
