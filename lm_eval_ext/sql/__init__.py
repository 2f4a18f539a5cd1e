"""Executing SQL that a language model wrote, and comparing its result with a gold query's.

Knows no benchmark. The layers, from the inside out: :mod:`.policy` and :mod:`.functions` say
what a query may do, :mod:`.engine` runs one, :mod:`.compare` holds results against each other,
:mod:`.worker` does both in a process of its own, :mod:`.process` and :mod:`.pool` start, time,
kill and replace such processes, and :mod:`.executor` is what callers use.
"""

from lm_eval_ext.sql.compare import SEMANTICS, Semantics, find_semantics
from lm_eval_ext.sql.executor import DEFAULT_WORKERS, Databases, Executor, NamedDatabases
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.scoring import Summary, score_file
from lm_eval_ext.sql.values import (
    NOT_SCORABLE,
    STATUSES,
    Example,
    Failure,
    QueryError,
    Row,
    Rows,
    Status,
    Value,
    Verdict,
)

__all__ = [
    "DEFAULT_WORKERS",
    "NOT_SCORABLE",
    "SEMANTICS",
    "STATUSES",
    "Databases",
    "Example",
    "Executor",
    "Failure",
    "Limits",
    "NamedDatabases",
    "QueryError",
    "Row",
    "Rows",
    "Semantics",
    "Status",
    "Summary",
    "Value",
    "Verdict",
    "find_semantics",
    "score_file",
]
