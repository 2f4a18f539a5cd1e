"""Connections to PostgreSQL: their settings, their commands, and the roles that are refused."""

import time
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus

from lm_eval_ext.sql.engines.base import UnavailableError
from lm_eval_ext.sql.engines.postgresql_trust import (
    FUNCTIONS,
    INDIRECT_CALL,
    ROLE_PROBLEM,
    RefusedFunctions,
)
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import SHOWN
from lm_eval_ext.text import one_line

_CONNECT_S: Final = 10
_RETRY_S: Final = 0.2

GRANTS: Final = (
    "CREATE ROLE reader LOGIN PASSWORD '...'; GRANT CONNECT ON DATABASE {database} TO reader; "
    "GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"
)
"""The statements that make a role that may only read."""


class ServerError(Exception):
    """The server refused a command.

    Attributes:
        state: The code of the reason (SQLSTATE).
    """

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state


class LostError(Exception):
    """The connection has ended."""


@dataclass(frozen=True)
class Session:
    """A connection, and the functions that no query may call.

    Attributes:
        connection: A connection of psycopg, only used for raw commands.
        refused: The functions.
    """

    connection: Any
    refused: RefusedFunctions


def connect(address: str, limits: Limits, retry_seconds: float) -> Session:
    """Connect as a role that may only read.

    Args:
        address: A URL.
        limits: What a query may use; the server enforces the time as well.
        retry_seconds: For how many seconds to try again.

    Raises:
        UnavailableError: There is no connection, the role may do more than read, or the database
            lets queries call a function that is not trusted without its name.
    """
    connection = _connection(address, limits, retry_seconds)
    try:
        server = connection.pgconn
        _refuse_role(server, address)
        _refuse_indirect_calls(server, address)
        functions = run_command(server, FUNCTIONS.encode())
        rows = []
        for row in _row_numbers(functions):
            rows.append((_cell_text(functions, row, 0), _cell_text(functions, row, 1)))
        return Session(connection, RefusedFunctions.from_rows(rows))
    except BaseException:
        connection.close()
        raise


def _connection(address: str, limits: Limits, retry_seconds: float) -> Any:
    deadline = time.monotonic() + retry_seconds
    while True:
        try:
            return psycopg.connect(**parameters(address, limits), autocommit=True)
        except psycopg.Error as error:
            if time.monotonic() >= deadline:
                raise UnavailableError(f"{address}: {_advice(str(error))}") from None
            time.sleep(_RETRY_S)


def parameters(address: str, limits: Limits) -> dict[str, Any]:
    """Return how to connect. Settings are the session's defaults, to which DISCARD ALL returns."""
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
    arguments: dict[str, Any] = dict(conninfo_to_dict(address))
    options = [f"-c {name}={value}" for name, value in settings.items()]
    if arguments.get("options"):
        options.insert(0, arguments["options"])
    arguments["options"] = " ".join(options)
    arguments.setdefault("connect_timeout", _CONNECT_S)
    arguments["application_name"] = "lm-eval-ext"
    arguments["client_encoding"] = "utf8"
    return arguments


def run_command(server: Any, command: bytes) -> Any:
    """Run one command and return its result.

    The extended protocol refuses several.

    Args:
        server: The connection of libpq.
        command: The text, in UTF-8.

    Raises:
        ServerError: The server refused the command.
        LostError: The connection has ended.
        MemoryError: The rows do not fit into this process.
    """
    result = server.exec_params(command, None)
    if result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        return result
    state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
    raw_message = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    message = raw_message.decode("utf-8", "replace")
    if server.status != ConnStatus.OK or state.startswith("57P"):
        raise LostError(message)
    if not state:  # the driver's own error: no memory for the rows
        raise MemoryError(message)
    raise ServerError(state, message)


def _row_numbers(result: Any) -> range:
    return range(result.ntuples)


def _cell_text(result: Any, row: int, column: int) -> str:
    return (result.get_value(row, column) or b"").decode("utf-8", "replace")


def _refuse_role(server: Any, address: str) -> None:
    """Raise UnavailableError if the role may do more than read."""
    problem = _cell_text(run_command(server, ROLE_PROBLEM.encode()), 0, 0)
    if not problem:
        return
    role = server.user.decode("utf-8", "replace")
    grants = GRANTS.format(database=server.db.decode("utf-8", "replace"))
    raise UnavailableError(
        f"{address}: the role {role} {problem}, which is refused for queries that a model "
        f"wrote; use one that may only read: {grants}"
    )


def _refuse_indirect_calls(server: Any, address: str) -> None:
    """Raise UnavailableError if an operator or a cast calls a function that is not trusted."""
    result = run_command(server, INDIRECT_CALL.encode())
    if not result.ntuples:
        return
    caller, function = _cell_text(result, 0, 0), _cell_text(result, 0, 1)
    raise UnavailableError(
        f"{address}: {caller} calls the function {function}, which is volatile, runs with its "
        "owner's rights or is in an untrusted language; a query could call it so without its name. "
        f"Declare it STABLE, or REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC"
    )


def _advice(message: str) -> str:
    """Return what to do about a connection that failed."""
    reason = one_line(message.removeprefix("connection failed: "), limit=SHOWN)
    if "password" in reason:
        return f"{reason}; set PGPASSWORD, or write the password to ~/.pgpass"
    if "too many" in reason or "connection slots" in reason:
        return f"{reason}; each worker needs one: lower --workers"
    if "unrecognized configuration parameter" in reason:
        return f"{reason}; PostgreSQL 14 or later is needed"
    return reason
