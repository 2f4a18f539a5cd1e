"""Scoring predictions, one or many, and running queries on databases that are named by ids.

Ids come with the predictions and are not trusted.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeAlias

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.compare import find_semantics
from lm_eval_ext.sql.engines.base import CELLS_VERSION
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.engines.places import Databases, place_of
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.pool import Job, Pool
from lm_eval_ext.sql.values import (
    Failure,
    Place,
    Prediction,
    QueryError,
    QueryJob,
    Rows,
    ScoreJob,
    Verdict,
)

DEFAULT_WORKERS = 2
_MAX_WORKERS = 64
_LOOK_AHEAD = 5_000
"""Predictions read ahead of the next verdict; those of a database are scored one after another."""


_PredictionLike: TypeAlias = Prediction | tuple[str, str, str]


class DatabaseFinder(Protocol):
    """Finds databases by their ids, as :class:`~lm_eval_ext.sql.engines.places.Databases` does."""

    def find(self, db_id: str) -> Place | None:
        """Return where a database is; None if there is no such database."""


class Executor:
    """Scores SQL that models wrote, in worker processes.

    ::

        with Executor("databases", workers=2, limits=Limits(timeout_s=5)) as executor:
            for verdict in executor.score(examples, semantics="reference"):
                print(verdict.status, verdict.reason)

    Queries are run exactly as given, neither repaired nor parsed. Rows with the same database,
    gold and prediction are run once. The databases must not change during its lifetime. Workers
    start at the first query and end with :meth:`close`, the ``with`` statement or the program,
    even if that is killed. One thread at a time may use it; while :meth:`score` is running, other
    verdicts and queries may be requested.

    Args:
        databases: A folder of databases (:class:`~lm_eval_ext.sql.engines.places.Databases`),
            files by id, or what finds them by id; all of one engine. None: :meth:`query` works
            with places only.
        workers: How many processes, 1 to 64.
        limits: What each query may use; default: :class:`Limits`'s defaults.

    Raises:
        DataError: There is no such folder.
        OptionError: ``workers`` is out of range.
    """

    def __init__(
        self,
        databases: DatabaseFinder | Mapping[str, Path | Place] | Path | str | None = None,
        *,
        workers: int = DEFAULT_WORKERS,
        limits: Limits | None = None,
    ) -> None:
        if not 1 <= workers <= _MAX_WORKERS:
            raise OptionError(f"workers={workers}: must be from 1 to {_MAX_WORKERS}")
        self.limits = limits or Limits()
        if isinstance(databases, Path | str):
            databases = Databases(databases)
        self._addresses: dict[str, Place | None] = {}
        if isinstance(databases, Mapping):
            for db_id, database in databases.items():
                if isinstance(database, Path):
                    self._addresses[db_id] = place_of(database)
                else:
                    self._addresses[db_id] = database
            databases = None
        self.databases = databases
        self._pool = Pool(workers, self.limits)
        self._verdicts: dict[ScoreJob, Verdict] = {}
        self._unavailable: dict[Place, str] = {}
        """Why a database cannot be used any more; nothing more is tried there."""

    def score(
        self, examples: Iterable[_PredictionLike], *, semantics: str = "reference"
    ) -> Iterator[Verdict]:
        """Yield a verdict per prediction, in their order, while later ones are being computed.

        Args:
            examples: (db_id, gold query, predicted query); read as needed, some ahead.
            semantics: When results count as equal (:data:`~lm_eval_ext.sql.compare.SEMANTICS`).

        Raises:
            OptionError: The semantics is unknown; raised at the call.
            DataError: A database's file is in use or its name ambiguous; or the database cannot be
                used any more, such as one on a server that went away.
        """
        return self._score(iter(examples), find_semantics(semantics).name)

    def query(self, database: str | Path | Place, sql: str) -> Rows:
        """Return the rows of a query, run under the same limits and guards.

        Args:
            database: An id, the path of a file (a ``Path``), or a place.
            sql: Exactly one statement.

        Raises:
            DataError: There is no such database, or it cannot be used.
            QueryError: The query failed or went over a limit.
        """
        job = Job(QueryJob(self._require(database), sql[: self.limits.max_sql_bytes + 1]))
        self._pool.submit(job)
        while job.outcome is None:
            self._pool.step()
        if isinstance(job.outcome, Failure):
            if job.outcome.kind == "unavailable":
                raise DataError(job.outcome.message)
            raise QueryError(job.outcome, sql)
        if not isinstance(job.outcome, Rows):
            raise TypeError(f"a query's outcome is {job.outcome!r}")
        return job.outcome

    def _require(self, database: str | Path | Place) -> Place:
        """Return where a database is.

        Raises:
            DataError: There is no such database.
        """
        if isinstance(database, Place):
            return database
        if isinstance(database, str):
            address = self._find(database)
        elif database.is_file():
            address = place_of(database)
        else:
            address = None
        if address is not None:
            return address
        folder = ""
        if isinstance(self.databases, Databases):
            folder = f" in {self.databases.folder}"
        raise DataError(f"no database {str(database)!r}{folder}")

    def engine_at(self, database: Place) -> str:
        """Return what signatures say of a database's engine: its name and version.

        Raises:
            DataError: The database cannot be used.
        """
        dialect = DIALECTS[database.engine]
        ((version,),) = self.query(database, dialect.version_query).rows
        signature = f"{dialect.name}:{version!s}"
        if database.engine == "sqlite":
            return signature
        # Values of other engines become those of SQLite by rules that have a version.
        return f"{signature},values-v{CELLS_VERSION}"

    def close(self) -> None:
        """End the workers; the next query would start new ones."""
        self._pool.close()

    def __enter__(self) -> "Executor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _score(self, predictions: Iterator[_PredictionLike], semantics: str) -> Iterator[Verdict]:
        """Yield verdicts in order, while jobs of later predictions are running."""
        window: deque[Verdict | Job] = deque()
        running: dict[ScoreJob, Job] = {}
        try:
            while True:
                for prediction in islice(predictions, _LOOK_AHEAD - len(window)):
                    window.append(self._begin(Prediction(*prediction), semantics, running))
                if not window:
                    return
                verdict = self._finish(window[0], running)
                window.popleft()
                yield verdict
        finally:
            self._pool.cancel(running.values())

    def _begin(
        self, prediction: Prediction, semantics: str, running: dict[ScoreJob, Job]
    ) -> Verdict | Job:
        """Return the verdict on a prediction if it is known, else its job, which is submitted."""
        database = self._find(prediction.db_id)
        if database is None:
            return Verdict("database_missing", f"no database {prediction.db_id!r}")
        # A text over the limit is cut, and then refused.
        max_length = self.limits.max_sql_bytes + 1
        gold, predicted = prediction.gold[:max_length], prediction.predicted[:max_length]
        work = ScoreJob(database, gold, predicted, semantics)
        if work in self._verdicts:
            return self._verdicts[work]
        if database in self._unavailable:
            raise DataError(self._unavailable[database])
        if work not in running:
            running[work] = Job(work)
            self._pool.submit(running[work])
        return running[work]

    def _finish(self, pending: Verdict | Job, running: dict[ScoreJob, Job]) -> Verdict:
        """Return a verdict, waiting for its job if it is not known yet."""
        if isinstance(pending, Verdict):
            return pending
        while pending.outcome is None:
            self._pool.step()
        work, outcome = pending.work, pending.outcome
        if isinstance(outcome, Failure):
            self._unavailable[work.database] = outcome.message
            raise DataError(outcome.message)
        if not isinstance(outcome, Verdict) or not isinstance(work, ScoreJob):
            raise TypeError(f"a score's outcome is {outcome!r}")
        running.pop(work, None)
        self._verdicts[work] = outcome
        return outcome

    def _find(self, db_id: str) -> Place | None:
        """Return where a database is; None if there is no such database."""
        if db_id not in self._addresses:
            address = None
            if self.databases is not None:
                address = self.databases.find(db_id)
            self._addresses[db_id] = address
        return self._addresses[db_id]
