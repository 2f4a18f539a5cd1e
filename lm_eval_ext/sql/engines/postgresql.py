"""PostgreSQL, as a role that may only read.

The walls, from the outside in. A role that could do more than read is refused, with the statements
that make a better one (:mod:`.postgresql_sessions`). A query is run as ``DECLARE ... CURSOR FOR
<query>`` by the extended protocol in a READ ONLY transaction: so it is one statement, and a SELECT.
It may name no function that is volatile (they sleep, lock, signal, set, send), runs with its
owner's rights or is written in an untrusted language. Rows come through the cursor until a limit is
passed. When time is up the query is cancelled from a second connection, then its server process is
terminated; the server has the same limit of time, and notices by itself that a killed worker is
gone. After each query the transaction is rolled back and the session reset, after a failure closed.
"""

import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg

from lm_eval_ext.sql.engines.base import Alarm, Engine, decimal_number, moment, number
from lm_eval_ext.sql.engines.postgresql_sessions import (
    LostError,
    ServerError,
    Session,
    ask,
    check,
    connect,
    parameters,
)
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import SHOWN, Exact, Failure, Row, Rows, Value
from lm_eval_ext.text import one_line

_FIRST, _MOST, _BATCH_BYTES = 20, 500, 1 << 20
"""Rows that are fetched first, and at most, and the bytes that are aimed at."""

_AGAIN_S = 5.0
"""Seconds in which a server that was there before must take a new connection."""

_TOO_LARGE = ("53100", "53200", "53400", "54")
"""Disk full, out of memory, a configured limit, a program's limit."""


class PostgreSQLEngine(Engine):
    """Addresses are URLs; one connection is open, to the database that was asked last."""

    errors = (psycopg.Error, ServerError, LostError)

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._address = ""
        self._session: Session | None = None
        self._alarm = Alarm()
        self._patience_s = 0.0

    def close(self) -> None:
        """Closes the connection; a later query opens a new one."""
        session, self._session = self._session, None
        if session is not None:
            session.connection.close()

    def _run(self, address: str, sql: str) -> Rows:
        self._alarm.rang = False
        if address != self._address:
            self.close()
            self._address, self._patience_s = address, 0.0
        try:
            return self._attempt(address, sql)
        except LostError:
            if self._alarm.rang:
                raise
        # The server ended the connection: another query may be to blame, or a restart.
        self.close()
        return self._attempt(address, sql)

    def _attempt(self, address: str, sql: str) -> Rows:
        if self._session is None:
            self._session = connect(address, self.limits, self._patience_s)
            self._patience_s = min(_AGAIN_S, self.limits.timeout_s)  # it was there: a restart
        session = self._session
        check(sql, session)
        late = self._alarm.after(
            self.limits.timeout_s, time.monotonic, lambda times: self._stop(session, times)
        )
        try:
            with late:
                rows = self._fetch(session.connection.pgconn, sql)
            for command in (b"ROLLBACK", b"DISCARD ALL"):  # also frees advisory locks
                ask(session.connection.pgconn, command)
        except BaseException:
            self.close()
            raise
        return rows

    def _fetch(self, server: Any, sql: str) -> Rows:
        ask(server, b"BEGIN READ ONLY")
        ask(server, b"DECLARE lm_eval_ext NO SCROLL CURSOR FOR " + sql.encode("utf-8"))
        rows: list[Row] = []
        batch = _FIRST
        while True:
            found = ask(server, b"FETCH FORWARD %d FROM lm_eval_ext" % batch)
            self._check_columns(found.nfields)
            self._collect(rows, self._rows(found))
            if found.ntuples < batch:
                names = (found.fname(at).decode("utf-8", "replace") for at in range(found.nfields))
                return Rows(tuple(names), rows)
            average = (self.limits.max_result_bytes - self._bytes_left) // len(rows)
            batch = max(1, min(_MOST, _BATCH_BYTES // (average + 1)))

    def _rows(self, found: Any) -> Iterator[Row]:
        # The modifier of a declared numeric(p, s) is above 0.
        kinds = [(found.ftype(at), found.fmod(at) > 0) for at in range(found.nfields)]
        for row in range(found.ntuples):
            yield tuple(
                self._cell(found.get_value(row, at), kind, declared=declared)
                for at, (kind, declared) in enumerate(kinds)
            )

    def _cell(self, raw: bytes | None, kind: int, *, declared: bool) -> Value:
        if raw is None:
            return None
        self._spend(len(raw))
        return plain(raw, kind, declared=declared)

    def _failure(self, error: Exception) -> Failure:
        if self._alarm.rang:
            return self._late()
        if isinstance(error, LostError):
            return Failure("error", f"the query ended its connection: {error}")
        state = getattr(error, "state", "")
        message = one_line(str(error), limit=SHOWN)
        if state == "57014":  # cancelled by the server's own limit
            return self._late()
        if state == "55P03":
            return Failure("unavailable", f"{self._address}: locked by another session ({message})")
        kind = "too_large" if state.startswith(_TOO_LARGE) else "error"
        return Failure(kind, message)  # type: ignore[arg-type]

    def _stop(self, session: Session, times: int) -> None:
        """Cancels the query; if it goes on, terminates the server's process."""
        try:
            if times == 0:
                session.connection.cancel_safe(timeout=2.0)
            elif times % 4 == 0:
                with psycopg.connect(**parameters(self._address, self.limits)) as second:
                    pid = session.connection.info.backend_pid
                    second.execute("SELECT pg_terminate_backend(%s)", [pid])
        except psycopg.Error:
            return  # the server's own limit of time remains


_BOOL, _BYTEA, _FLOATS, _NUMERIC = 16, 17, (700, 701), 1700
_WHOLE = (20, 21, 23, 26)  # bigint, smallint, integer, oid
_MOMENTS = (1114, 1184)
_MOST_DIGITS = 300
_QUOTIENT_PLACES, _QUOTIENT_DIGITS = 8, 16


def plain(raw: bytes, kind: int, *, declared: bool = False) -> Value:  # noqa: PLR0911 (a table)
    """A value of PostgreSQL as results are compared (docs/sql.md, "Values").

    Args:
        raw: The server's text.
        kind: The type's number.
        declared: Whether the type has a precision and scale.
    """
    if kind in _WHOLE:
        return int(raw)
    text = raw.decode("utf-8", "surrogateescape")
    if kind == _BOOL:
        return int(text == "t")
    if kind in _FLOATS:
        return number(float(text))
    if kind == _NUMERIC:
        return _numeric(text, declared=declared)
    if kind == _BYTEA:
        return bytes.fromhex(text[2:])
    if kind in _MOMENTS:
        return moment(text.removesuffix("+00"))
    return text


def _numeric(text: str, *, declared: bool) -> Value:
    """A numeric: of more digits than a float has, its text; a quotient as a float.

    PostgreSQL cuts off quotients after 16 significant digits or more, at a place that depends on
    how they are written: ``100.0 / 3`` is not ``1.0 / 3 * 100``.
    """
    head, _, tail = text.lstrip("-").partition(".")
    if not head.isdecimal():  # NaN, Infinity
        return number(float(text))
    if len(head) > _MOST_DIGITS:
        return text
    found = decimal_number(Decimal(text))
    quotient = len(tail) >= _QUOTIENT_PLACES and len((head + tail).lstrip("0")) >= _QUOTIENT_DIGITS
    return float(found) if quotient and not declared and isinstance(found, Exact) else found
