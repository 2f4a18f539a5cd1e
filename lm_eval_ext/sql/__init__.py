"""Executing SQL that a language model wrote, and comparing its result with a gold query's.

This package knows no benchmark. Callers use :class:`.judge.SqlJudge`, which judges predictions on
the original databases and on their test suites, or :class:`.executor.Executor`, which runs queries.

A verdict comes about in these layers, from the inside out:

- :mod:`.policy` limits what a query may do on SQLite.
- :mod:`.engines` runs queries on SQLite, DuckDB and PostgreSQL.
- :mod:`.compare` holds the rules by which results are equal. :mod:`.ordering` reads what order a
  gold asks for, :mod:`.matching` pairs rows whose floats differ by rounding, :mod:`.official` and
  :mod:`.permutation` follow Spider and BIRD, and :mod:`.difference` says how wrong results differ.
- :mod:`.worker` runs and compares in a process of its own.
- :mod:`.pool` starts, times, kills and replaces such processes.
- :mod:`.executor` finds databases and yields verdicts on one database.
- :mod:`.judge` goes through the databases of a suite.

:mod:`.mutants` lists wrong queries that are like a gold, and :mod:`.suite` builds databases that
distinguish them, both for SQLite; only these two need sqlglot.
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
