"""Running one query after another on guarded connections, inside a worker process."""

import sqlite3
import time
from collections import OrderedDict

from lm_eval_ext.sql.policy import CONNECTIONS, Limits, open_guarded
from lm_eval_ext.sql.values import SHOWN, Failure, Row, Rows
from lm_eval_ext.text import one_line

_CHECK_EVERY = 4_000
"""Instructions of SQLite's virtual machine between two looks at the clock (some 200 us)."""


class _TooLargeError(Exception):
    """The result is over a limit."""


class Engine:
    """Runs queries; no query can raise, change a file or run on past its limits.

    Args:
        limits: What each query may use.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connections: OrderedDict[str, sqlite3.Connection] = OrderedDict()
        self._deadline = 0.0
        self._bytes_left = 0

    def run(self, path: str, sql: str) -> Rows | Failure:
        """Runs exactly one statement that must give rows, be it none; the text is run as given.

        Args:
            path: The database file.
            sql: What a model, or a benchmark, wrote.

        Returns:
            The result, or why there is none.
        """
        self._deadline = time.process_time() + self._limits.timeout_s
        self._bytes_left = self._limits.max_result_bytes
        try:
            size = len(sql.encode("utf-8"))  # raises for lone surrogates
            if size > self._limits.max_sql_bytes:
                raise _TooLargeError(
                    f"the query's text is over {self._limits.max_sql_bytes:,} bytes"
                )
            return self._run(self._connection(path), sql)
        # Python 3.10 meets a second statement with sqlite3.Warning, which is no sqlite3.Error,
        # and a NUL character with ValueError; text that is no Unicode is a ValueError, too.
        except (
            _TooLargeError, MemoryError, sqlite3.Error, sqlite3.Warning, ValueError, OverflowError
        ) as error:  # fmt: skip
            return self._failure(error)

    def _failure(self, error: Exception) -> Failure:
        if isinstance(error, MemoryError):
            self.close()  # gives back what the page caches hold
            return Failure("too_large", "out of memory")
        if isinstance(error, _TooLargeError | sqlite3.DataError):  # DataError: SQLite's TOOBIG
            return Failure("too_large", one_line(str(error), limit=SHOWN))
        late = isinstance(error, sqlite3.OperationalError) and self._is_late()
        if late:
            return Failure("timeout", f"stopped after {self._limits.timeout_s:g} s")
        return Failure("error", one_line(str(error), limit=SHOWN))

    def close(self) -> None:
        """Closes all connections; the engine can go on."""
        while self._connections:
            self._connections.popitem()[1].close()

    def _run(self, connection: sqlite3.Connection, sql: str) -> Rows:
        cursor = connection.cursor()
        try:
            cursor.execute(sql)
            if cursor.description is None:
                # Empty, only comments, or a statement without a result, such as REINDEX.
                raise ValueError("not a query: it has no result, not even an empty one")
            rows: list[Row] = []
            # Row by row, so that one that is all large blobs is counted before the next comes.
            for row in cursor:
                rows.append(row)
                if len(rows) > self._limits.max_rows:
                    raise _TooLargeError(f"the result has over {self._limits.max_rows:,} rows")
                if bytes in map(type, row):
                    for value in row:
                        if type(value) is bytes:
                            self._spend(len(value))
            return Rows(tuple(column[0] for column in cursor.description), rows)
        finally:
            cursor.close()

    def _connection(self, path: str) -> sqlite3.Connection:
        if (connection := self._connections.get(path)) is not None:
            self._connections.move_to_end(path)
            return connection
        if len(self._connections) >= CONNECTIONS:
            self._connections.popitem(last=False)[1].close()
        connection = open_guarded(path, self._limits)
        connection.text_factory = self._text
        connection.set_progress_handler(self._is_late, _CHECK_EVERY)
        self._connections[path] = connection
        return connection

    def _is_late(self) -> bool:
        return time.process_time() > self._deadline

    def _text(self, raw: bytes) -> str:
        self._spend(len(raw))
        return raw.decode("utf-8", "surrogateescape")  # the reason: values.Value

    def _spend(self, size: int) -> None:
        if size > self._limits.max_value_bytes:  # SQLite sees to it itself from Python 3.11 on
            raise _TooLargeError(f"a value has over {self._limits.max_value_bytes:,} bytes")
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise _TooLargeError(f"the result has over {self._limits.max_result_bytes:,} bytes")
