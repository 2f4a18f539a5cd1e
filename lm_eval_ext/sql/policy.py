"""What a query may do: its functions and limits, the authorizer, and the guarded connection.

This is the inner of two defences: it stops a query inside the worker process, which goes on. The
outer one (:mod:`lm_eval_ext.sql.pool`) kills the worker.
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
"""SQLite's documented functions, in lower case, without those that affect more than the query:
load_extension, fts3_tokenizer, readfile, writefile, edit, sqlite_log, fsdir and similar ones."""


_MIN_VALUES = 2
"""Values from which a sample standard deviation is defined."""


class Stdev:
    """The aggregate ``stdev(x)``: the sample standard deviation; NULL for fewer than two values.

    Divides by n - 1 and ignores NULLs. MAGNIFICo's golds for ``outlier_range`` call it, and
    SQLite has none. Welford's algorithm, as stable as two passes. Texts and blobs count as the
    number they begin with, else 0, as in SQLite's sum().
    """

    def __init__(self) -> None:
        self._count, self._mean, self._squares = 0, 0.0, 0.0

    def step(self, value: Value) -> None:
        """Add a value."""
        if value is None:
            return
        number = _number(value)
        self._count += 1
        delta = number - self._mean
        self._mean += delta / self._count
        self._squares += delta * (number - self._mean)

    def finalize(self) -> float | None:
        """Return the result; NULL if it is not a number (infinite values)."""
        if self._count < _MIN_VALUES:
            return None
        result = math.sqrt(max(self._squares, 0.0) / (self._count - 1))
        if math.isnan(result):
            return None
        return result


def register(connection: sqlite3.Connection) -> None:
    """Add stdev to a connection, the only function beyond SQLite's own that is offered."""
    connection.create_aggregate("stdev", 1, Stdev)  # type: ignore[arg-type]


_PREFIX = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


def _number(value: int | float | str | bytes) -> float:
    """Return the number that a text or blob begins with; 0 if there is none."""
    if isinstance(value, bytes):
        value = value.decode("ascii", errors="replace")
    if not isinstance(value, str):
        return float(value)
    prefix = _PREFIX.match(value)
    if prefix is None:
        return 0.0
    return float(prefix[1])


_MIB = 1 << 20

CONNECTIONS = 32
"""Databases that a worker keeps open: opening one and reading its schema takes longer than most
queries. Their page caches together get half of SQLite's memory at most (4 MB each)."""


REAL_SECONDS_PER_SECOND: Final = 2
"""How much longer than its processor time a query may take in real time, so that verdicts do not
change if two processes share a processor."""


@dataclass(frozen=True)
class Limits:
    """The limits of one query; golds have the same as predictions.

    Attributes:
        timeout_s: Seconds of processor time, so that a busy machine does not change verdicts.
            A query that does not stop is killed with its worker after :attr:`wall_s` seconds of
            real time.
        max_rows: Rows of the result.
        max_result_bytes: Bytes of all texts and blobs of the result together.
        max_value_bytes: Bytes of one text or blob, at any point of the computation.
        max_sql_bytes: Bytes of the query's text.
        max_columns: Columns of any result, including subqueries'.
        max_memory_bytes: Memory that a worker may allocate after its start. SQLite itself gets
            half of it (``hard_heap_limit``, on every platform); the whole address space is
            limited on Linux only.
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
            if not (isinstance(value, int | float) and 0 < value < math.inf):
                raise OptionError(f"{field.name}={value}: must be a number above 0")
        if self.max_memory_bytes < 32 * _MIB:
            raise OptionError(
                f"max_memory_bytes={self.max_memory_bytes}: a worker needs {32 * _MIB} or more"
            )

    @property
    def wall_s(self) -> float:
        """Seconds of real time after which the parent kills the worker of a query.

        :data:`REAL_SECONDS_PER_SECOND` times the processor time, and a second for communication:
        an engine that can notices by itself before that.
        """
        return REAL_SECONDS_PER_SECOND * self.timeout_s + 1.0


def open_guarded(path: str, limits: Limits) -> sqlite3.Connection:
    """Open a database so that no statement can change it or anything else.

    The file is opened read-only and immutable: SQLite takes no locks, writes no journal and
    never creates a missing file. It must not change while it is open.

    Args:
        path: The database file.
        limits: Set here as far as SQLite can enforce them;
            :class:`~lm_eval_ext.sql.engines.base.Engine` enforces time, rows and bytes of the
            result.

    Raises:
        sqlite3.Error: The file is missing, unreadable or not a database.
    """
    # as_uri escapes what would end the path or begin a parameter: "?", "#", "%".
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
    """Set what predictions must not change, then install the authorizer."""
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
    """Set options that are available from Python 3.12 on."""
    setconfig = getattr(connection, "setconfig", None)
    if setconfig is None:
        return
    for name, enabled in (
        ("SQLITE_DBCONFIG_DEFENSIVE", True),
        ("SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION", False),
        ("SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER", False),
        # Spider's and MAGNIFICo's golds have strings in double quotes. SQLite allows them by
        # default, but a system's build may not.
        ("SQLITE_DBCONFIG_DQS_DML", True),
    ):
        option = getattr(sqlite3, name, None)
        if option is not None:
            setconfig(option, enabled)


def _open_virtual_tables(connection: sqlite3.Connection) -> None:
    """Read from the virtual tables that queries may read.

    On the first use of a virtual table SQLite asks the authorizer for permission to create a
    table, which it does not get later. Others (``pragma_*``, ``dbstat``) stay unavailable.
    Reading sqlite_master also loads the schema under SQLite's default limits, and raises if the
    file is not a database.
    """
    virtual_tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
    ).fetchall()
    for query in (
        "json_each('[]') LIMIT 0",
        "json_tree('[]') LIMIT 0",
        *(f"{quoted(name)} LIMIT 0" for (name,) in virtual_tables),
    ):
        # A build without JSON, or a table whose module is unavailable: no query can read it.
        with contextlib.suppress(sqlite3.Error):
            connection.execute(f"SELECT 1 FROM {query}").fetchall()


def _set_limits(connection: sqlite3.Connection, limits: Limits) -> None:
    setlimit = getattr(connection, "setlimit", None)
    if setlimit is None:  # Python 3.10; hard_heap_limit and the worker's other limits apply
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
    action: int, argument: str | None, detail: str | None, database: str | None, inner: str | None
) -> int:
    """Allow reading and known functions; SQLite asks at compile time, for every part.

    An allow-list: unknown statements and functions are denied. VACUUM is denied because it
    attaches a database.
    """
    del database, inner
    if action in _READING:
        return sqlite3.SQLITE_OK
    # FTS5 reads this counter in each search; it cannot be written.
    if action == sqlite3.SQLITE_PRAGMA and argument == "data_version" and detail is None:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and detail and detail.lower() in ALLOWED_FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
