"""The SQL functions that a query may call, and those that we add to SQLite's own."""

import math
import re
import sqlite3
from typing import Final

from lm_eval_ext.sql.values import Value

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
