"""Reasons for which a text is no query that may be run, in the same words on SQLite and DuckDB.

PostgreSQL's server reads the text itself, and what it says of such a text is kept.

Worker processes import this module: standard library only.
"""

import re
from dataclasses import replace
from typing import Final

from lm_eval_ext.sql.values import Verdict

EMPTY: Final = "the query is empty"
NO_QUERY: Final = "no query was found in the answer"
NO_RESULT: Final = "not a query: it has no result, not even an empty one"
SEVERAL_STATEMENTS: Final = "several statements: only one SELECT is allowed"
NOT_AUTHORIZED: Final = "not authorized: only SELECT from tables"

_NO_SELECT = re.compile(
    r"(?:[\s;\ufeff]|--[^\n]*(?:\n|\Z)|/\*[^*]*(?:\*(?!/)[^*]*)*\*/)*"
    r"(?:EXPLAIN|PRAGMA|DESCRIBE|DESC|SUMMARIZE|SHOW)\b",
    re.IGNORECASE,
)


def is_no_select(sql: str) -> bool:
    """Return whether a text is a statement that has rows, but asks about a query or a table.

    SQLite's authorizer takes EXPLAIN for a query, and must allow ``PRAGMA data_version``, which
    full-text search reads. DuckDB's parser takes DESCRIBE, SUMMARIZE and SHOW for queries.
    """
    return _NO_SELECT.match(sql) is not None


def naming_a_missing_query(verdict: Verdict, query: str, answer: str) -> Verdict:
    """Return a verdict whose reason says that no query was found, if an answer has none.

    Args:
        verdict: The verdict on the query.
        query: The query that was read; "" if there was none.
        answer: The text that it was read from.
    """
    if verdict.status == "prediction_error" and not query.strip() and answer.strip():
        return replace(verdict, reason=NO_QUERY)
    return verdict
