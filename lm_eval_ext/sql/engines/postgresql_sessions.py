"""Connections to PostgreSQL: the role that is refused, the settings, the functions not trusted."""

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus

from lm_eval_ext.sql.engines.base import UnavailableError
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import SHOWN
from lm_eval_ext.text import one_line

_CONNECT_S = 10

_TRUSTED: Final = {
    "bernoulli", "clock_timestamp", "gen_random_uuid", "random", "random_normal", "system",
    "timeofday", "uuidv4", "uuidv7",
}  # fmt: skip
"""PostgreSQL's own volatile functions that change nothing (two are methods of TABLESAMPLE)."""

_FIRST_OWN = 16384
"""PostgreSQL's own objects have lower numbers."""

_LONGEST_NAME = 63
"""Bytes, after which the server cuts a name off."""

GRANTS = (
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
     AND (has_table_privilege(me.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
          OR has_any_column_privilege(me.oid, c.oid, 'INSERT, UPDATE'))
   ORDER BY 1 LIMIT 1),
  (SELECT format('may create tables in the schema %s', n.nspname) FROM me, pg_namespace n
   WHERE n.nspname !~ '^pg_' AND has_schema_privilege(me.oid, n.oid, 'CREATE')
     AND NOT EXISTS (SELECT FROM aclexplode(n.nspacl) one
                     WHERE one.grantee = 0 AND one.privilege_type = 'CREATE')
   ORDER BY 1 LIMIT 1))
"""
"""What is wrong with the role, or NULL. Until version 14 everybody may create in ``public``; that
is let pass, since the transaction is read-only."""

_UNTRUSTED = f"""
WITH RECURSIVE untrusted AS (
  SELECT p.oid, p.proname, p.pronargs > 0 AND EXISTS (
    SELECT FROM pg_type t WHERE t.oid = p.proargtypes[0] AND t.typtype IN ('c', 'p')) AS of_row,
    p.pronamespace = 'pg_catalog'::regnamespace AS builtin
  FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
  WHERE p.provolatile = 'v' OR p.prosecdef
     OR NOT (l.lanpltrusted OR l.lanname IN ('internal', 'c'))
), ways AS (
  SELECT o.oid, o.oprname::text AS sign, u.proname, ARRAY[o.oprleft, o.oprright] AS types
  FROM pg_operator o JOIN untrusted u ON u.oid = o.oprcode
  WHERE o.oid >= {_FIRST_OWN} AND has_function_privilege(u.oid, 'EXECUTE')
  UNION ALL
  SELECT c.oid, CASE c.castcontext WHEN 'i' THEN '' ELSE '::' || t.typname END, u.proname,
         ARRAY[c.castsource, c.casttarget]
  FROM pg_cast c JOIN untrusted u ON u.oid = c.castfunc JOIN pg_type t ON t.oid = c.casttarget
  WHERE c.oid >= {_FIRST_OWN} AND has_function_privilege(u.oid, 'EXECUTE')
), carriers AS (
  SELECT w.oid, t.oid AS type FROM ways w JOIN pg_type t ON t.oid = ANY (w.types)
  WHERE t.oid >= {_FIRST_OWN}
  UNION
  SELECT c.oid, t.oid FROM carriers c JOIN pg_type t
  ON c.type IN (t.typelem, t.typbasetype) OR EXISTS (
    SELECT FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.atttypid = c.type)
)
SELECT DISTINCT CASE WHEN builtin THEN 'builtin' WHEN of_row THEN 'field' ELSE 'call' END,
  proname::text, '', '[]'
FROM untrusted WHERE builtin OR has_function_privilege(oid, 'EXECUTE')
UNION
SELECT 'call', p.proname, '', '[]' FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid
WHERE p.oid >= {_FIRST_OWN} AND EXISTS (SELECT FROM untrusted u WHERE u.oid IN (
  a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn,
  a.aggminvtransfn, a.aggmfinalfn))
UNION
SELECT 'way', w.proname, w.sign, (
  SELECT coalesce(json_agg(name), '[]') FROM carriers c, LATERAL (
    SELECT t.typname AS name FROM pg_type t WHERE t.oid = c.type
    UNION SELECT p.proname FROM pg_proc p WHERE p.prorettype = c.type) named
  WHERE c.oid = w.oid)::text
FROM ways w
"""
"""Functions that are not trusted, and how a query reaches them: by name (``field``: also as a field
of a row), by an aggregate that they are a part of, or by another way: an operator's sign,
``::type`` for a cast, or nothing for an implicit one. Such a way starts from a value of its
operands' types: if these are the owner's, a query must name a type, table or function that has such
values."""


class ServerError(Exception):
    """The server refused a command; ``state`` is the code (SQLSTATE)."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state


class LostError(Exception):
    """The connection has ended."""


@dataclass(frozen=True)
class Way:
    """How a function that is not trusted is reached other than by its name.

    Attributes:
        function: Its name.
        sign: An operator, ``::type`` for a cast, or nothing for what happens by itself.
        carriers: Finds the names that a query must name for it; None: it need not name any.
    """

    function: str
    sign: str
    carriers: re.Pattern[str] | None


@dataclass
class Session:
    """A connection, and the functions that no query may reach.

    Attributes:
        connection: Never used for anything but raw commands.
        refused: PostgreSQL's own functions, in lower case.
        refused_own: Functions and aggregates of the database's owner, where they are called.
        ways: To functions, without their names.
    """

    connection: Any
    refused: frozenset[str]
    refused_own: re.Pattern[str]
    ways: list[Way]


def connect(address: str, limits: Limits, patience_s: float) -> Session:
    """Connects as a role that may only read.

    Args:
        address: A URL.
        limits: Set as the session's.
        patience_s: How long to try again.

    Raises:
        UnavailableError: There is no connection, or the role may do more.
    """
    until = time.monotonic() + patience_s
    while True:
        try:
            connection = psycopg.connect(**parameters(address, limits), autocommit=True)
            break
        except psycopg.Error as error:
            if time.monotonic() >= until:
                raise UnavailableError(f"{address}: {_advice(str(error))}") from None
            time.sleep(0.2)
    try:
        server = connection.pgconn
        _refuse(server, address)
        found = ask(server, _UNTRUSTED.encode())
        rows = [[_text(found, row, at) for at in range(4)] for row in range(found.ntuples)]
    except BaseException:
        connection.close()
        raise
    builtin, fields, others = (
        [name for kind, name, *_ in rows if kind == wanted]
        for wanted in ("builtin", "field", "call")
    )
    gap = r"(?:\s|--[^\n]*|/\*.*?\*/|\*/)*"
    return Session(
        connection,
        frozenset(name.lower() for name in builtin) - _TRUSTED,
        re.compile(
            rf"{_any(fields + others)}\s*(?:\(|--|/\*)|\.{gap}\"?{_any(fields)}",
            re.IGNORECASE | re.DOTALL,
        ),
        [
            Way(name, sign, re.compile(_any(names), re.IGNORECASE) if names else None)
            for kind, name, sign, carriers in rows
            if kind == "way"
            for names in [json.loads(carriers)]
        ],
    )


def _any(names: Iterable[str]) -> str:
    """A pattern for any of these names, with or without quotes, or for nothing."""
    spelled = []
    for name in names:
        cut = len(name.encode()) >= _LONGEST_NAME
        end = r"(?:[\w$]*|(?:[^\"]|\"\")*\")" if cut else r"(?![\w$])\"?"
        spelled.append(re.escape(name.replace('"', '""')) + end)
    return rf"(?<!\w)(?:{'|'.join(spelled)})" if spelled else r"(?!)"


def parameters(address: str, limits: Limits) -> dict[str, Any]:
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


def ask(server: Any, command: bytes) -> Any:
    """The result of one command, by the extended protocol, which refuses several."""
    result = server.exec_params(command, None)
    if result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        return result
    state = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
    said = result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    message = said.decode("utf-8", "replace")
    if server.status != psycopg.pq.ConnStatus.OK or state.startswith("57P"):
        raise LostError(message)
    if not state:  # of the driver's own: no memory for the rows
        raise MemoryError(message)
    raise ServerError(state, message)


def _text(found: Any, row: int, column: int) -> str:
    return (found.get_value(row, column) or b"").decode("utf-8", "replace")


def _refuse(server: Any, address: str) -> None:
    """Raises UnavailableError if the role may do more than read."""
    role = server.user.decode("utf-8", "replace")
    if problem := _text(ask(server, _PROBLEM.encode()), 0, 0):
        grants = GRANTS.format(database=server.db.decode("utf-8", "replace"))
        raise UnavailableError(
            f"{address}: the role {role} {problem}, which is refused for queries that a model "
            f"wrote; use one that may only read: {grants}"
        )


def _advice(message: str) -> str:
    """What to do about a connection that failed."""
    said = one_line(message.removeprefix("connection failed: "), limit=SHOWN)
    if "password" in said:
        return f"{said}; set PGPASSWORD, or write the password to ~/.pgpass"
    if "too many" in said or "connection slots" in said:
        return f"{said}; each worker needs one: lower --workers"
    if "unrecognized configuration parameter" in said:
        return f"{said}; PostgreSQL 14 or later is needed"
    return said


_COMMENT = re.compile(r"--|/\*|\*/")
_SIGNS = re.compile(r"[-+*/<>=~!@#%^&|`?]+")
_WITHOUT_SIGN = frozenset({"=", "<>", "<", "<=", ">", ">=", "~~", "!~~", "~~*", "!~~*", "~"})
"""Operators that IN, DISTINCT, ORDER BY, BETWEEN, LIKE and others use."""


def check(sql: str, session: Session) -> None:
    r"""Raises ValueError if a query reaches a function that is not trusted.

    Strings and comments are searched as well: they cannot be told apart from the rest by anything
    simpler than PostgreSQL itself, and no honest one holds such a name. What spells a name
    otherwise (``U&"\0070g_sleep"``) is refused whole.
    """
    words = {word.lower() for word in re.findall(r"[^\W\d]\w*", sql)}
    named = sorted(words & session.refused)
    if not named and (own := session.refused_own.search(sql)):
        named = [own[0].strip('.\t\r\n "(-/*')]
    if not named:
        named = [way.function for way in session.ways if _goes(sql, way)]
    if named:
        raise ValueError(
            f"the function {named[0]} is not allowed: it is volatile, runs with its owner's rights "
            "or is in an untrusted language"
        )
    if re.search(r'\bU&"', sql, re.IGNORECASE):
        raise ValueError('names written as U&"..." are not allowed')


def _goes(sql: str, way: Way) -> bool:
    if way.carriers is not None and not way.carriers.search(sql):
        return False
    if way.sign.startswith("::"):
        called = rf'\b{re.escape(way.sign[2:])}"?\s*(?:\(|--|/\*)'
        return re.search(rf"::|\bCAST\b|{called}", sql, re.IGNORECASE) is not None
    return way.sign in {"", *_WITHOUT_SIGN} or any(
        way.sign in (run if _COMMENT.search(run) else _operators(run))
        for run in _SIGNS.findall(sql)
    )


def _operators(run: str) -> Iterator[str]:
    """The operators that PostgreSQL reads in adjacent signs: a last + or - is one of its own."""
    while run:
        one = run if re.search(r"[~!@#%^&|`?]", run) else run.rstrip("+-") or run[0]
        yield one
        run = run[len(one) :]
