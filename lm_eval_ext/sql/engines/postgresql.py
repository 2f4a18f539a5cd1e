"""PostgreSQL, as a role that may only read.

The walls, from the outside in. A role that could do more than read is refused, with the statements
that make a better one (:func:`_refuse`). A query is run as ``DECLARE ... CURSOR FOR <query>`` by
the extended protocol in a READ ONLY transaction: so it is one statement, and a SELECT. It may name
no function that is volatile (they sleep, lock, signal, set, send), runs with its owner's rights or
is written in an untrusted language. Rows come through the cursor until a limit is passed. When time
is up the query is cancelled from a second connection, then its server process is terminated; the
server has the same limit of time, and notices by itself that a killed worker is gone. After each
query the transaction is rolled back and the session reset, after a failure closed.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus

from lm_eval_ext.sql.engines.base import Alarm, Engine, UnavailableError, moment, number, whole
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import SHOWN, Failure, Row, Rows, Value
from lm_eval_ext.text import one_line

_FIRST, _MOST, _BATCH_BYTES = 20, 500, 1 << 20
"""Rows that are fetched first, and at most, and the bytes that are aimed at."""

_CONNECT_S = 10
_AGAIN_S = 5.0
"""Seconds in which a server that has just ended a connection must take a new one."""

_TRUSTED: Final = frozenset(
    [
        "bernoulli",
        "clock_timestamp",
        "gen_random_uuid",
        "random",
        "random_normal",
        "system",
        "timeofday",
        "uuidv4",
        "uuidv7",
    ]
)
"""PostgreSQL's own volatile functions that change nothing (two are methods of TABLESAMPLE)."""

_GRANTS = (
    "CREATE ROLE reader LOGIN PASSWORD '...'; GRANT CONNECT ON DATABASE {database} TO reader; "
    "GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"
)

_PROBLEM = """
WITH me AS (SELECT * FROM pg_roles WHERE rolname IN (session_user, current_user))
SELECT coalesce(
  (SELECT 'is a superuser' FROM me WHERE rolsuper LIMIT 1),
  (SELECT 'may create roles, databases or replicas' FROM me
   WHERE rolcreaterole OR rolcreatedb OR rolreplication LIMIT 1),
  (SELECT 'is a member of ' || one.rolname FROM pg_roles one, me
   WHERE (one.rolsuper OR one.rolname ~ '^pg_') AND pg_has_role(me.oid, one.oid, 'MEMBER')
   ORDER BY one.rolname LIMIT 1),
  (SELECT 'may create schemas in the database' FROM me
   WHERE has_database_privilege(me.oid, current_database(), 'CREATE') LIMIT 1),
  (SELECT format('may change %s.%s', n.nspname, c.relname)
   FROM me, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_'
     AND n.nspname <> 'information_schema'
     AND has_table_privilege(me.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
   ORDER BY 1 LIMIT 1),
  (SELECT format('may create tables in the schema %s', n.nspname) FROM me, pg_namespace n
   WHERE n.nspname !~ '^pg_' AND has_schema_privilege(me.oid, n.oid, 'CREATE')
     AND NOT EXISTS (SELECT FROM aclexplode(n.nspacl) one
                     WHERE one.grantee = 0 AND one.privilege_type = 'CREATE')
   ORDER BY 1 LIMIT 1))
"""
"""What is wrong with the role, or NULL. Until version 14 everybody may create in ``public``; that
is let pass, since the transaction is read-only."""

_UNTRUSTED = """
SELECT DISTINCT p.proname, n.nspname = 'pg_catalog'
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
WHERE p.provolatile = 'v' OR p.prosecdef
   OR NOT (l.lanpltrusted OR l.lanname IN ('internal', 'c'))
"""

_TOO_LARGE = ("53100", "53200", "53400", "54")
"""Disk full, out of memory, a configured limit, a program's limit."""


class _ServerError(Exception):
    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state


class _LostError(Exception):
    """The connection has ended."""


@dataclass
class _Session:
    """A connection, and the functions that no query may name.

    Attributes:
        connection: Never used for anything but raw commands.
        refused: PostgreSQL's own functions, in lower case.
        refused_own: Functions of the database's owner, found only where they are called.
    """

    connection: Any
    refused: frozenset[str]
    refused_own: re.Pattern[str] | None


class PostgreSQLEngine(Engine):
    """Addresses are URLs; one connection is open, to the database that was asked last."""

    errors = (psycopg.Error, _ServerError, _LostError)

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._address = ""
        self._session: _Session | None = None
        self._rang = False

    def close(self) -> None:
        """Closes the connection; a later query opens a new one."""
        session, self._session = self._session, None
        if session is not None:
            session.connection.close()

    def _run(self, address: str, sql: str) -> Rows:
        self._rang = False
        if address != self._address:
            self.close()
            self._address = address
        fresh = self._session is None
        try:
            return self._attempt(address, sql)
        except _LostError:
            if self._rang:
                raise
        # The server ended the connection: another query may be to blame, or a restart.
        self.close()
        return self._attempt(address, sql, patience_s=0.0 if fresh else _AGAIN_S)

    def _attempt(self, address: str, sql: str, *, patience_s: float = 0.0) -> Rows:
        if self._session is None:
            self._session = self._connect(address, time.monotonic() + patience_s)
        session = self._session
        _check(sql, session)
        alarm = Alarm(
            self.limits.timeout_s, time.monotonic, lambda times: self._stop(session, times)
        )
        try:
            with alarm:
                rows = self._fetch(session.connection.pgconn, sql)
            for command in (b"ROLLBACK", b"DISCARD ALL"):  # also frees advisory locks
                _ask(session.connection.pgconn, command)
        except BaseException:
            self._rang = alarm.rang
            self.close()
            raise
        return rows

    def _fetch(self, server: Any, sql: str) -> Rows:
        _ask(server, b"BEGIN READ ONLY")
        _ask(server, b"DECLARE lm_eval_ext NO SCROLL CURSOR FOR " + sql.encode("utf-8"))
        rows: list[Row] = []
        batch = _FIRST
        while True:
            found = _ask(server, b"FETCH FORWARD %d FROM lm_eval_ext" % batch)
            self._check_columns(found.nfields)
            self._collect(rows, self._rows(found))
            if found.ntuples < batch:
                names = (found.fname(at).decode("utf-8", "replace") for at in range(found.nfields))
                return Rows(tuple(names), rows)
            average = (self.limits.max_result_bytes - self._bytes_left) // len(rows)
            batch = max(1, min(_MOST, _BATCH_BYTES // (average + 1)))

    def _rows(self, found: Any) -> Iterator[Row]:
        kinds = [found.ftype(at) for at in range(found.nfields)]
        for row in range(found.ntuples):
            yield tuple(self._cell(found.get_value(row, at), kind) for at, kind in enumerate(kinds))

    def _cell(self, raw: bytes | None, kind: int) -> Value:
        if raw is None:
            return None
        self._spend(len(raw))
        return plain(raw, kind)

    def _failure(self, error: Exception) -> Failure:
        if self._rang:
            return self._late()
        if isinstance(error, _LostError):
            return Failure("error", f"the query ended its connection: {error}")
        state = getattr(error, "state", "")
        message = one_line(str(error), limit=SHOWN)
        if state == "57014":  # cancelled by the server's own limit
            return self._late()
        if state == "55P03":
            return Failure("unavailable", f"{self._address}: locked by another session ({message})")
        kind = "too_large" if state.startswith(_TOO_LARGE) else "error"
        return Failure(kind, message)  # type: ignore[arg-type]

    def _stop(self, session: _Session, times: int) -> None:
        """Cancels the query; if it goes on, terminates the server's process."""
        try:
            if times == 0:
                session.connection.cancel_safe(timeout=2.0)
            elif times % 4 == 0:
                with psycopg.connect(**_parameters(self._address, self.limits)) as second:
                    pid = session.connection.info.backend_pid
                    second.execute("SELECT pg_terminate_backend(%s)", [pid])
        except psycopg.Error:
            return  # the server's own limit of time remains

    def _connect(self, address: str, until: float) -> _Session:
        while True:
            try:
                connection = psycopg.connect(
                    **_parameters(address, self.limits), autocommit=True, prepare_threshold=None
                )
                break
            except psycopg.Error as error:
                if time.monotonic() < until:
                    time.sleep(0.2)
                    continue
                raise UnavailableError(f"{address}: {_advice(str(error))}") from None
        try:
            server = connection.pgconn
            _refuse(server, address)
            found = _ask(server, _UNTRUSTED.encode())
            names = [(_text(found, at, 0), _text(found, at, 1)) for at in range(found.ntuples)]
        except BaseException:
            connection.close()
            raise
        own = "|".join(re.escape(name) for name, builtin in names if builtin != "t")
        return _Session(
            connection,
            frozenset(name.lower() for name, builtin in names if builtin == "t") - _TRUSTED,
            # Where a call begins: "f(", "f /*", "x.f".
            re.compile(rf'\b({own})\b"?\s*(?:\(|--|/\*)|\.\s*"?({own})\b', re.I) if own else None,
        )


def _parameters(address: str, limits: Limits) -> dict[str, Any]:
    """How to connect. Limits are set as the session's defaults, to which DISCARD ALL returns."""
    milliseconds = round(1000 * limits.timeout_s)
    settings = {
        "default_transaction_read_only": "on",
        "statement_timeout": milliseconds,
        "lock_timeout": milliseconds // 2,  # before the query itself is late
        "idle_in_transaction_session_timeout": 10 * milliseconds,
        "idle_session_timeout": "1h",
        "client_connection_check_interval": "500ms",  # a killed worker's query ends
        "max_parallel_workers_per_gather": 0,
        "jit": "off",
        "work_mem": "16MB",
        "client_min_messages": "error",
        "synchronize_seqscans": "off",  # LIMIT without ORDER BY gives the same rows again
        "cursor_tuple_fraction": 1,
        "standard_conforming_strings": "on",
        "TimeZone": "UTC",
        "DateStyle": "ISO",
        "IntervalStyle": "postgres",
        "bytea_output": "hex",
        "extra_float_digits": 1,
    }
    wanted: dict[str, Any] = dict(conninfo_to_dict(address))
    ours = " ".join(f"-c {name}={value}" for name, value in settings.items())
    wanted["options"] = f"{wanted.get('options') or ''} {ours}".strip()
    wanted.setdefault("connect_timeout", _CONNECT_S)
    return {**wanted, "application_name": "lm-eval-ext", "client_encoding": "utf8"}


def _ask(server: Any, command: bytes) -> Any:
    """The result of one command, by the extended protocol, which refuses several."""
    result = server.exec_params(command, None)
    if result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        return result
    state = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
    said = result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    message = said.decode("utf-8", "replace")
    if server.status != psycopg.pq.ConnStatus.OK or state.startswith("57P"):
        raise _LostError(message)
    if not state:  # of the driver's own: no memory for the rows
        raise MemoryError(message)
    raise _ServerError(state, message)


def _text(found: Any, row: int, column: int) -> str:
    return (found.get_value(row, column) or b"").decode("utf-8", "replace")


def _refuse(server: Any, address: str) -> None:
    """Raises UnavailableError if the role may do more than read."""
    role = server.user.decode("utf-8", "replace")
    if problem := _text(_ask(server, _PROBLEM.encode()), 0, 0):
        grants = _GRANTS.format(database=server.db.decode("utf-8", "replace"))
        raise UnavailableError(
            f"{address}: the role {role} {problem}, which is refused for queries that a model "
            f"wrote; use one that may only read: {grants}"
        )


def _advice(message: str) -> str:
    """What to do about a connection that failed."""
    said = one_line(message.removeprefix("connection failed: "), limit=SHOWN)
    if "password" in said:
        return f"{said}; set PGPASSWORD, or write the password to ~/.pgpass"
    if "unrecognized configuration parameter" in said:
        return f"{said}; PostgreSQL 14 or later is needed"
    return said


def _check(sql: str, session: _Session) -> None:
    r"""Raises ValueError if a query names a function that is not trusted.

    Strings and comments are searched as well: they cannot be told apart from the rest by anything
    simpler than PostgreSQL itself, and no honest one holds such a name. What spells a name
    otherwise (``U&"\0070g_sleep"``) is refused whole.
    """
    words = {word.lower() for word in re.findall(r"[^\W\d][\w$]*", sql)}
    named = sorted(words & session.refused)
    if not named and session.refused_own and (own := session.refused_own.search(sql)):
        named = [own[1] or own[2]]
    if named:
        raise ValueError(
            f"the function {named[0]} is not allowed: it is volatile, runs with its owner's rights "
            "or is in an untrusted language"
        )
    if re.search(r'\bU&"', sql, re.IGNORECASE):
        raise ValueError('names written as U&"..." are not allowed')


_BOOL, _BYTEA, _FLOATS, _NUMERIC = 16, 17, (700, 701), 1700
_WHOLE = (20, 21, 23, 26)  # bigint, smallint, integer, oid
_MOMENTS = (1114, 1184)
_MOST_DIGITS = 300


def plain(raw: bytes, kind: int) -> Value:  # noqa: PLR0911 (a table of types)
    """A value of PostgreSQL as results are compared (docs/engines.md, "Values").

    Args:
        raw: The server's text.
        kind: The type's number.
    """
    if kind in _WHOLE:
        return int(raw)
    text = raw.decode("utf-8", "surrogateescape")
    if kind == _BOOL:
        return int(text == "t")
    if kind in _FLOATS:
        return number(float(text))
    if kind == _NUMERIC:
        return _decimal(text)
    if kind == _BYTEA:
        return bytes.fromhex(text[2:])
    if kind in _MOMENTS:
        return moment(text.removesuffix("+00"))
    return text


def _decimal(text: str) -> Value:
    """A numeric: an integer if it is one; of more digits than a float has, its text."""
    head, _, tail = text.partition(".")
    if len(head) > _MOST_DIGITS:
        return text
    integral = head.lstrip("-").isdecimal() and not tail.strip("0")
    return whole(int(head)) if integral else number(float(text))
