"""The SQL functions that a query may call, and those that we add to SQLite's own.

What a query may do: the limits, the authorizer, and the connection that enforces both.

The first of two walls. This one stands inside the worker process and stops a query politely,
so that the worker goes on; the second (:mod:`lm_eval_ext.sql.pool`) kills the worker.
"""

import contextlib
import math
import re
import sqlite3
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql.values import Value, quoted

_CORE = """
    abs changes char coalesce concat concat_ws format glob hex ifnull if iif instr
    last_insert_rowid length like likelihood likely lower ltrim max min nullif octet_length
    printf quote random randomblob replace round rtrim sign soundex sqlite_compileoption_get
    sqlite_compileoption_used sqlite_source_id sqlite_version substr substring subtype
    total_changes trim typeof unhex unicode unistr unistr_quote unlikely upper zeroblob
"""
_DATE = """
    current_date current_time current_timestamp date datetime julianday strftime time timediff
    unixepoch
"""
_AGGREGATE_AND_WINDOW = """
    avg count group_concat median percentile percentile_cont percentile_disc string_agg sum
    total cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank
    rank row_number
"""
_MATHS = """
    acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10
    log2 mod pi pow power radians sin sinh sqrt tan tanh trunc
"""
_JSON = """
    -> ->> json json_array json_array_insert json_array_length json_error_position json_extract
    json_group_array json_group_object json_insert json_object json_patch json_pretty
    json_quote json_remove json_replace json_set json_type json_valid
"""
_FULL_TEXT = "bm25 highlight match matchinfo offsets snippet"
_OURS = "stdev"

ALLOWED_FUNCTIONS: Final = frozenset(
    " ".join((_CORE, _DATE, _AGGREGATE_AND_WINDOW, _MATHS, _JSON, _FULL_TEXT, _OURS)).split()
)
"""SQLite's documented functions, in lower case, but those that reach beyond the query:
load_extension, fts3_tokenizer, readfile, writefile, edit, sqlite_log, fsdir and their like."""


class Stdev:
    """``stdev(x)``: the sample standard deviation, NULL for fewer than two values.

    Divides by n - 1 and passes over NULLs. The golds of MAGNIFICo's ``outlier_range`` need it
    (fact sheet, "The authors' evaluator"); SQLite has none. Welford's way, as stable as two
    passes. Texts and blobs count as the number they begin with, else 0, as in SQLite's sum().
    """

    def __init__(self) -> None:
        self._count, self._mean, self._squares = 0, 0.0, 0.0

    def step(self, value: Value) -> None:
        """Takes one value."""
        if value is None:
            return
        x = _number(value)
        self._count += 1
        delta = x - self._mean
        self._mean += delta / self._count
        self._squares += delta * (x - self._mean)

    def finalize(self) -> float | None:
        """Returns the result; NULL where it is no number (infinite values)."""
        if self._count < 2:  # noqa: PLR2004 (the definition)
            return None
        result = math.sqrt(max(self._squares, 0.0) / (self._count - 1))
        return None if math.isnan(result) else result


def register(connection: sqlite3.Connection) -> None:
    """Adds our functions to a connection. Golds of MAGNIFICo need no other than stdev."""
    connection.create_aggregate("stdev", 1, Stdev)  # type: ignore[arg-type]


_PREFIX = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


def _number(value: int | float | str | bytes) -> float:
    if isinstance(value, bytes):
        value = value.decode("ascii", errors="replace")
    if isinstance(value, str):
        found = _PREFIX.match(value)
        return float(found[1]) if found else 0.0
    return float(value)


_MIB = 1 << 20

CONNECTIONS = 32
"""Databases that a worker holds open: opening one and reading its schema costs more than most
queries. Their page caches together have half of SQLite's memory at most (4 MB each)."""


@dataclass(frozen=True)
class Limits:
    """What one query may use. Golds have the same limits as predictions.

    Attributes:
        timeout_s: Seconds of processor time, so that a busy machine does not change verdicts.
            Where a query cannot be stopped from inside, or waits, its worker is killed after
            :attr:`wall_s` seconds of real time.
        max_rows: Rows of the result.
        max_result_bytes: Bytes of all texts and blobs of the result together.
        max_value_bytes: Bytes of one text or blob, at any point of the computation.
        max_sql_bytes: Bytes of the query's text.
        max_columns: Columns of any result, subqueries' too.
        max_memory_bytes: Memory that a worker may add to what it starts with. SQLite itself
            gets half of it (``hard_heap_limit``, on every platform); the address space as a
            whole is limited where the system does that (Linux).
    """

    timeout_s: float = 10.0
    max_rows: int = 100_000
    max_result_bytes: int = 32_000_000
    max_value_bytes: int = 1_000_000
    max_sql_bytes: int = 200_000
    max_columns: int = 256
    max_memory_bytes: int = 512 * _MIB

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (value > 0 and math.isfinite(value)):
                raise OptionError(f"{field.name}={value}: must be a number above 0")
        if self.max_memory_bytes < 32 * _MIB:
            raise OptionError(
                f"max_memory_bytes={self.max_memory_bytes}: a worker needs {32 * _MIB} or more"
            )

    @property
    def wall_s(self) -> float:
        """Seconds of real time after which the parent kills the worker of a query.

        Twice the processor time, so that two processes can share one processor without a
        verdict changing, and a second for the way there and back.
        """
        return 2 * self.timeout_s + 1.0


def open_guarded(path: str, limits: Limits) -> sqlite3.Connection:
    """Opens a database so that no statement can change it or anything else.

    The file is opened read-only and immutable: SQLite takes no locks, makes no journal and
    never creates a missing file. (An immutable file must not change while it is open.)

    Args:
        path: The database file.
        limits: Those of them that SQLite itself can enforce are set here; the time, the rows
            and the result's bytes are :class:`~lm_eval_ext.sql.worker.Engine`'s.

    Raises:
        sqlite3.Error: The file is missing, unreadable or no database.
    """
    # as_uri quotes whatever would end the path or begin a parameter: "?", "#", "%".
    connection = sqlite3.connect(
        f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1",
        uri=True,
        isolation_level=None,  # no implicit BEGIN
        cached_statements=4,
    )
    try:
        _prepare(connection, limits)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, limits: Limits) -> None:
    """Sets what predictions must not set, and locks the door behind it."""
    heap = limits.max_memory_bytes // 2
    for pragma in (
        f"hard_heap_limit={heap}",
        f"cache_size=-{heap // 2 // CONNECTIONS // 1024}",  # KiB
        "temp_store=MEMORY",  # a big sort counts as memory instead of filling the disk
        "query_only=ON",
        "trusted_schema=OFF",
        "cell_size_check=ON",
    ):
        connection.execute(f"PRAGMA {pragma}").close()
    _configure(connection)
    _open_virtual_tables(connection)
    register(connection)
    _set_limits(connection, limits)
    connection.set_authorizer(_authorize)


def _configure(connection: sqlite3.Connection) -> None:
    """Sets what only Python 3.12 and later lets a program set."""
    setconfig = getattr(connection, "setconfig", None)
    if setconfig is None:
        return
    for name, wanted in (
        ("SQLITE_DBCONFIG_DEFENSIVE", True),
        ("SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION", False),
        ("SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER", False),
        # Golds of Spider and MAGNIFICo write strings in double quotes. That is SQLite's
        # default, but a system's build may have turned it off.
        ("SQLITE_DBCONFIG_DQS_DML", True),
    ):
        option = getattr(sqlite3, name, None)
        if option is not None:
            setconfig(option, wanted)


def _open_virtual_tables(connection: sqlite3.Connection) -> None:
    """Touches the virtual tables that queries may read.

    SQLite asks the authorizer for the right to create a table when a virtual one is first
    used on a connection, which it must not get later. All others (``pragma_*``, ``dbstat``)
    stay closed. Reading sqlite_master also loads the schema under SQLite's own limits, and
    raises here if the file is no database.
    """
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
    ).fetchall()
    for query in (
        "json_each('[]') LIMIT 0",
        "json_tree('[]') LIMIT 0",
        *(f"{quoted(name)} LIMIT 0" for (name,) in found),
    ):
        # A build without JSON, or a table whose module is not at hand: no query can read it.
        with contextlib.suppress(sqlite3.Error):
            connection.execute(f"SELECT 1 FROM {query}").fetchall()


def _set_limits(connection: sqlite3.Connection, limits: Limits) -> None:
    setlimit = getattr(connection, "setlimit", None)
    if setlimit is None:  # Python 3.10; hard_heap_limit and the worker's other walls stay
        return
    for name, value in (
        ("SQLITE_LIMIT_LENGTH", limits.max_value_bytes),
        ("SQLITE_LIMIT_SQL_LENGTH", limits.max_sql_bytes),
        ("SQLITE_LIMIT_COLUMN", limits.max_columns),
        ("SQLITE_LIMIT_EXPR_DEPTH", 1_000),  # this and the next: SQLite's own defaults
        ("SQLITE_LIMIT_COMPOUND_SELECT", 500),
        ("SQLITE_LIMIT_VDBE_OP", 1_000_000),
        ("SQLITE_LIMIT_LIKE_PATTERN_LENGTH", 1_000),
        ("SQLITE_LIMIT_ATTACHED", 0),
        ("SQLITE_LIMIT_TRIGGER_DEPTH", 1),
        ("SQLITE_LIMIT_WORKER_THREADS", 0),
    ):
        setlimit(getattr(sqlite3, name), value)


def _authorize(
    action: int, first: str | None, second: str | None, database: str | None, inner: str | None
) -> int:
    """Allows reading and known functions; SQLite asks at compile time, for every part.

    An allow-list: a statement, or a function of a build that we have not seen, is denied
    until someone has thought about it. VACUUM is denied as the ATTACH that it makes.
    """
    del database, inner
    if action in _READING:
        return sqlite3.SQLITE_OK
    # FTS5 asks for this counter within each search; reading it is all that one can do.
    if action == sqlite3.SQLITE_PRAGMA and first == "data_version" and second is None:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second and second.lower() in ALLOWED_FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
