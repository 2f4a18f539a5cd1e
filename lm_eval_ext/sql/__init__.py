"""Executing SQL that a language model wrote, and comparing its result with a gold query's.

Knows no benchmark. The layers, from the inside out: :mod:`.policy` limits what a query may do on
SQLite, :mod:`.engines` runs queries on SQLite, DuckDB and PostgreSQL, :mod:`.compare` compares
results, :mod:`.worker` does both in a process of its own, :mod:`.pool` starts, times, kills and
replaces such processes, and :mod:`.executor` is the interface for callers. :mod:`.mutants`
lists wrong queries that are like a gold, :mod:`.suite` builds databases that distinguish them;
both for SQLite. Only these two need sqlglot.
"""

from lm_eval_ext.sql.compare import SEMANTICS, Semantics, find_semantics
from lm_eval_ext.sql.difference import Difference
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.engines.places import (
    Databases,
    OneDatabase,
    databases_at,
    place_of,
    sqlite_path,
)
from lm_eval_ext.sql.executor import Executor
from lm_eval_ext.sql.judge import Explanation, SqlJudge
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import (
    Example,
    Place,
    Prediction,
    QueryError,
    Rows,
    Status,
    Verdict,
)

__all__ = [
    "DIALECTS",
    "SEMANTICS",
    "Databases",
    "Difference",
    "Example",
    "Executor",
    "Explanation",
    "Limits",
    "OneDatabase",
    "Place",
    "Prediction",
    "QueryError",
    "Rows",
    "Semantics",
    "SqlJudge",
    "Status",
    "Verdict",
    "databases_at",
    "find_semantics",
    "place_of",
    "sqlite_path",
]
