"""PostgreSQL, as a role that may only read.

The walls, from the outside in:

- A role that could do more than read is refused, with the statements that make a better one
  (:mod:`.postgresql_sessions`).
- A query is run as ``DECLARE ... CURSOR FOR <query>`` by the extended protocol in a READ ONLY
  transaction: so it is one statement, and a SELECT.
- It may call no function that is not trusted (:mod:`.postgresql_trust`).
- Rows come through the cursor until a limit is passed.
- When time is up, the query is cancelled from a second connection, then its server process is
  terminated. The server has the same limit of time, and notices by itself that a killed worker is
  gone.
- After each query the transaction is rolled back and the session reset; after a failure it is
  closed.

How much memory a server process takes can only be limited where the server runs (docs/sql.md).
"""

import time
from collections.abc import Iterator
from typing import Any, Final

import psycopg

from lm_eval_ext.sql.engines.base import Alarm, Engine, message_of
from lm_eval_ext.sql.engines.postgresql_sessions import (
    LostError,
    ServerError,
    Session,
    connect,
    parameters,
    run_command,
)
from lm_eval_ext.sql.engines.postgresql_values import read_value
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.reasons import NOT_AUTHORIZED
from lm_eval_ext.sql.values import Failure, FailureKind, Row, Rows, Value

_FIRST_BATCH: Final = 20
_MAX_BATCH: Final = 500
_BATCH_BYTES: Final = 1 << 20
"""Rows that are fetched first and at most, and the bytes that a batch should have."""

_RESTART_S: Final = 5.0
"""Seconds in which a server that was there before must take a new connection."""

_CANCEL_S: Final = 2.0
_RINGS_BEFORE_TERMINATION: Final = 4

_CANCELLED: Final = "57014"
_LOCKED: Final = "55P03"
_WRITES: Final = "25006"
_TOO_LARGE: Final = ("53100", "53200", "53400", "54")
"""Disk full, out of memory, a configured limit, a program's limit."""


class PostgreSQLEngine(Engine):
    """Runs queries on servers, whose URLs are the addresses.

    One connection is open, to the database of the latest query.
    """

    driver_errors = (psycopg.Error, ServerError, LostError)

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._address = ""
        self._session: Session | None = None
        self._alarm = Alarm()
        self._retry_seconds = 0.0

    def close(self) -> None:
        """Close the connection; a later query opens a new one."""
        session = self._session
        self._session = None
        if session is not None:
            session.connection.close()

    def _run(self, address: str, sql: str) -> Rows:
        self._alarm.has_rung = False
        if address != self._address:
            self.close()
            self._address = address
            self._retry_seconds = 0.0
        try:
            return self._attempt(address, sql)
        except LostError:
            if self._alarm.has_rung:
                raise
        # The server ended the connection: another query may be to blame, or a restart.
        self.close()
        return self._attempt(address, sql)

    def _attempt(self, address: str, sql: str) -> Rows:
        if self._session is None:
            self._session = connect(address, self.limits, self._retry_seconds)
            # It was there: if it is not any more, it may be restarting.
            self._retry_seconds = min(_RESTART_S, self.limits.timeout_s)
        session = self._session
        session.refused.check(sql)
        deadline = self._alarm.after(
            self.limits.timeout_s,
            time.monotonic,
            lambda ring_count: self._stop(session, ring_count),
        )
        server = session.connection.pgconn
        try:
            with deadline:
                rows = self._fetch(server, sql)
            run_command(server, b"ROLLBACK")
            run_command(server, b"DISCARD ALL")  # also frees advisory locks
        except BaseException:
            self.close()
            raise
        return rows

    def _fetch(self, server: Any, sql: str) -> Rows:
        run_command(server, b"BEGIN READ ONLY")
        run_command(server, b"DECLARE lm_eval_ext NO SCROLL CURSOR FOR " + sql.encode("utf-8"))
        rows: list[Row] = []
        batch = _FIRST_BATCH
        while True:
            result = run_command(server, b"FETCH FORWARD %d FROM lm_eval_ext" % batch)
            self._check_columns(result.nfields)
            self._collect_rows(rows, self._rows(result))
            if result.ntuples < batch:
                columns = range(result.nfields)
                names = [result.fname(column).decode("utf-8", "replace") for column in columns]
                return Rows(tuple(names), rows)
            bytes_per_row = (self.limits.max_result_bytes - self._bytes_left) // len(rows)
            batch = max(1, min(_MAX_BATCH, _BATCH_BYTES // (bytes_per_row + 1)))

    def _rows(self, result: Any) -> Iterator[Row]:
        columns = range(result.nfields)
        types = [result.ftype(column) for column in columns]
        # The modifier of a declared numeric(p, s) is above 0.
        declared = [result.fmod(column) > 0 for column in columns]
        for row in range(result.ntuples):
            yield tuple(
                self._cell(result.get_value(row, column), types[column], declared=declared[column])
                for column in columns
            )

    def _cell(self, raw: bytes | None, type_oid: int, *, declared: bool) -> Value:
        if raw is None:
            return None
        self._count_bytes(len(raw))
        return read_value(raw, type_oid, declared=declared)

    def _failure(self, error: Exception) -> Failure:
        if self._alarm.has_rung:
            return self._timeout()
        if isinstance(error, LostError):
            return Failure("error", f"the query ended its connection: {error}")
        state = error.state if isinstance(error, ServerError) else ""
        message = message_of(error)
        if state == _CANCELLED:  # by the server's own limit
            return self._timeout()
        if state == _WRITES:
            return Failure("error", NOT_AUTHORIZED)
        if state == _LOCKED:
            return Failure("unavailable", f"{self._address}: locked by another session ({message})")
        failure_kind: FailureKind = "too_large" if state.startswith(_TOO_LARGE) else "error"
        return Failure(failure_kind, message)

    def _stop(self, session: Session, ring_count: int) -> None:
        """Cancel the query; if it goes on, terminate the server's process."""
        try:
            if ring_count == 0:
                session.connection.cancel_safe(timeout=_CANCEL_S)
            elif ring_count % _RINGS_BEFORE_TERMINATION == 0:
                with psycopg.connect(**parameters(self._address, self.limits)) as second_connection:
                    pid = session.connection.info.backend_pid
                    second_connection.execute("SELECT pg_terminate_backend(%s)", [pid])
        except psycopg.Error:
            return  # the server's own limit of time remains
