"""Scoring SQL in a data frame."""

import os
from typing import TYPE_CHECKING

from lm_eval_ext.errors import OptionError

if TYPE_CHECKING:
    from pandas import DataFrame


def score_sql(
    frame: "DataFrame",
    databases: str | os.PathLike[str],
    *,
    semantics: str = "reference",
    timeout_s: float | None = None,
    workers: int = 2,
) -> "DataFrame":
    """Executes predicted queries safely and compares their results with those of gold queries.

    Args:
        frame: With the columns ``db_id``, ``gold_sql`` and ``predicted_sql``; a missing
            prediction (None, NaN) counts as an empty one.
        databases: A folder of databases, ``<db_id>/<db_id>.sqlite`` or ``<db_id>.sqlite``, or one
            database by its path or URL (docs/sql.md).
        semantics: When two results are equal: ``reference``, ``strict`` or ``sets`` (docs/sql.md).
        timeout_s: Seconds of processor time per query; None: 10.
        workers: Processes that execute queries.

    Returns:
        The same rows with the column ``status``: ``correct``, ``wrong``, and so on. The signature
        of the comparison is in ``attrs["signature"]``.

    Raises:
        OptionError: A column is missing, or an argument is invalid.
        DataError: A database cannot be read or used.
    """
    from lm_eval_ext.sql import Example, Executor, Limits, databases_at, find_semantics
    from lm_eval_ext.sql.predictions import COLUMNS
    from lm_eval_ext.sql.scoring import engine_of

    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise OptionError(
            f"the frame has no column {', '.join(missing)}; needed are {', '.join(COLUMNS)}"
        )
    rule = find_semantics(semantics)
    limits = Limits() if timeout_s is None else Limits(timeout_s=timeout_s)
    needed = frame[list(COLUMNS)].astype(object)
    rows = needed.where(needed.notna(), "").itertuples(index=False)
    known = databases_at(os.fspath(databases))
    with Executor(known, workers=workers, limits=limits) as executor:
        engine = engine_of(executor, known, map(str, frame["db_id"]))
        asked = (Example(str(one), str(gold), str(predicted)) for one, gold, predicted in rows)
        statuses = [verdict.status for verdict in executor.score(asked, semantics=rule.name)]
    scored = frame.assign(status=statuses)
    signature = f"{rule.signature}|timeout:{limits.timeout_s:g}s"
    # Of SQLite, whose version is the machine's, sql-score says it.
    other = "" if engine.startswith("sqlite:") else f"|{engine}"
    scored.attrs["signature"] = signature + other
    return scored
