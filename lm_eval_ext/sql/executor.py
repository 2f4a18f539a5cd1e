"""Scoring predictions, one or many, and running queries on databases that are named by ids.

Ids come with the predictions and are not trusted.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

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
_MOST_WORKERS = 64
_LOOK_AHEAD = 5_000
"""Predictions read ahead of the next verdict; those of a database are scored one after another."""


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
        if not 1 <= workers <= _MOST_WORKERS:
            raise OptionError(f"workers={workers}: must be from 1 to {_MOST_WORKERS}")
        self.limits = limits or Limits()
        if isinstance(databases, Path | str):
            databases = Databases(databases)
        self._places: dict[str, Place | None] = {}
        if isinstance(databases, Mapping):
            for db_id, found in databases.items():
                self._places[db_id] = place_of(found) if isinstance(found, Path) else found
            databases = None
        self.databases = databases
        self._pool = Pool(workers, self.limits)
        self._known: dict[ScoreJob, Verdict] = {}
        self._gone: dict[Place, str] = {}

    def score(
        self, examples: Iterable[Prediction | tuple[str, str, str]], *, semantics: str = "reference"
    ) -> Iterator[Verdict]:
        """Yields a verdict per example, in their order, while later ones are being computed.

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
        """Returns the rows of a query, run under the same limits and guards.

        Args:
            database: An id, the path of a file (a ``Path``), or a place.
            sql: Exactly one statement.

        Raises:
            DataError: There is no such database, or it cannot be used.
            QueryError: The query failed or went over a limit.
        """
        if isinstance(database, Place):
            place: Place | None = database
        elif isinstance(database, Path):
            place = place_of(database) if database.is_file() else None
        else:
            place = self._find(database)
        if place is None:
            where = f" in {self.databases.folder}" if isinstance(self.databases, Databases) else ""
            raise DataError(f"no database {str(database)!r}{where}")
        job = Job(QueryJob(place, sql[: self.limits.max_sql_bytes + 1]))
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

    def engine_at(self, place: Place) -> str:
        """What signatures say of a database's engine: its name and version.

        Raises:
            DataError: The database cannot be used.
        """
        dialect = DIALECTS[place.engine]
        ((version,),) = self.query(place, dialect.version).rows
        rules = "" if place.engine == "sqlite" else f",values-v{CELLS_VERSION}"
        return f"{dialect.name}:{version!s}{rules}"

    def close(self) -> None:
        """Ends the workers; the next query would start new ones."""
        self._pool.close()

    def __enter__(self) -> "Executor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _score(self, examples: Iterator[Any], semantics: str) -> Iterator[Verdict]:
        window: deque[Verdict | Job] = deque()
        running: dict[ScoreJob, Job] = {}
        try:
            while True:
                while len(window) < _LOOK_AHEAD and (example := next(examples, None)) is not None:
                    window.append(self._begin(Prediction(*example), semantics, running))
                if not window:
                    return
                first = window[0]
                if isinstance(first, Job):
                    while first.outcome is None:
                        self._pool.step()
                    first = self._end(first, running)
                window.popleft()
                yield first
        finally:
            self._pool.cancel(running.values())

    def _begin(
        self, example: Prediction, semantics: str, running: dict[ScoreJob, Job]
    ) -> Verdict | Job:
        place = self._find(example.db_id)
        if place is None:
            return Verdict("database_missing", f"no database {example.db_id!r}")
        # A text over the limit is cut, and then refused.
        most = self.limits.max_sql_bytes + 1
        work = ScoreJob(place, example.gold[:most], example.predicted[:most], semantics)
        if work in self._known:
            return self._known[work]
        if place in self._gone:
            raise DataError(self._gone[place])
        if work not in running:
            running[work] = Job(work)
            self._pool.submit(running[work])
        return running[work]

    def _end(self, job: Job, running: dict[ScoreJob, Job]) -> Verdict:
        if isinstance(job.outcome, Failure):
            self._gone[job.work.place] = job.outcome.message  # nothing more is tried there
            raise DataError(job.outcome.message)
        if not isinstance(job.outcome, Verdict) or not isinstance(job.work, ScoreJob):
            raise TypeError(f"a score's outcome is {job.outcome!r}")
        running.pop(job.work, None)
        self._known[job.work] = job.outcome
        return job.outcome

    def _find(self, db_id: str) -> Place | None:
        if db_id not in self._places:
            self._places[db_id] = self.databases.find(db_id) if self.databases else None
        return self._places[db_id]
