"""Scoring predictions, one or many, and running queries on databases that are named by ids.

Ids come with the predictions and are not trusted.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.compare import find_semantics
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.pool import Job, Pool
from lm_eval_ext.sql.values import Example, Failure, QueryError, QueryJob, Rows, ScoreJob, Verdict

SUFFIXES = (".sqlite", ".sqlite3", ".db")


class NamedDatabases:
    """SQLite files anywhere, by id; ids are case-sensitive."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = dict(paths)

    def find(self, db_id: str) -> Path | None:
        """Returns a database's file; None if there is none with that id."""
        return self._paths.get(db_id)


class Databases:
    """The SQLite files of a folder: ``<id>/<id>.sqlite`` or ``<id>.sqlite``.

    The endings .sqlite3 and .db are accepted too. Ids ignore case, since Spider's folder names
    differ in case from the ids; of two files that differ in case only, the one that matches
    exactly is used. The folder is listed once and ids are looked up in that list, so that no id
    leads out of the folder.

    Args:
        folder: Where the databases lie.

    Raises:
        DataError: There is no such folder, or it cannot be read.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._found: dict[str, list[Path]] = defaultdict(list)
        try:
            for entry in sorted(self.folder.iterdir()):
                self._add(entry)
        except OSError as error:
            raise DataError(
                f"cannot read the folder of databases {self.folder}: {error.strerror}. It must "
                "hold <db_id>/<db_id>.sqlite or <db_id>.sqlite for each database."
            ) from error

    def find(self, db_id: str) -> Path | None:
        """Returns a database's file; None if there is none.

        Raises:
            DataError: Two files differ from the id and from each other only in case, or the
                file has a write-ahead log, whose rows a read-only open would not see.
        """
        found = self._found.get(db_id.casefold(), [])
        path = next((path for path in found if path.stem == db_id), found[0] if found else None)
        if path is None:
            return None
        if len({p.stem for p in found}) > 1 and path.stem != db_id:
            names = " and ".join(sorted({p.stem for p in found}))
            raise DataError(f"database {db_id!r}: {self.folder} has both {names}; rename one")
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise DataError(
                f"{path} has unmerged changes in {log.name}; close the program that writes it, "
                f'or run: sqlite3 {path.name} "PRAGMA wal_checkpoint(TRUNCATE)"'
            )
        return path

    def __len__(self) -> int:
        return len(self._found)

    def _add(self, entry: Path) -> None:
        for suffix in SUFFIXES:
            if entry.suffix == suffix and entry.is_file():
                self._found[entry.stem.casefold()].append(entry)
        if entry.is_dir():
            inside = [path for path in sorted(entry.iterdir()) if path.suffix in SUFFIXES]
            for path in sorted(inside, key=lambda path: SUFFIXES.index(path.suffix)):
                if path.stem.casefold() == entry.name.casefold() and path.is_file():
                    self._found[entry.name.casefold()].insert(0, path)
                    break


DEFAULT_WORKERS = 2
_MOST_WORKERS = 64
_LOOK_AHEAD = 1_000
"""Examples read ahead of the next verdict."""

_REMEMBERED = 100_000
"""Verdicts kept for identical rows."""


class Executor:
    """Scores SQL that models wrote, in worker processes.

    ::

        with Executor("databases", workers=2, limits=Limits(timeout_s=5)) as executor:
            for verdict in executor.score(examples, semantics="reference"):
                print(verdict.status, verdict.detail)

    Queries are run exactly as given, neither repaired nor parsed. Rows with the same database,
    gold and prediction are run once. The databases must not change during its lifetime. Workers
    start at the first query and end with :meth:`close`, the ``with`` statement or the program,
    even if that is killed. One thread at a time may use it; while :meth:`score` is running, other
    verdicts and queries may be requested.

    Args:
        databases: A folder of SQLite files (:class:`~lm_eval_ext.sql.executor.Databases`), or
            files by id; None: :meth:`query` works with paths only.
        workers: How many processes, 1 to 64.
        limits: What each query may use; default: :class:`Limits`'s defaults.

    Raises:
        DataError: There is no such folder.
        OptionError: ``workers`` is out of range.
    """

    def __init__(
        self,
        databases: Databases | NamedDatabases | Path | str | None = None,
        *,
        workers: int = DEFAULT_WORKERS,
        limits: Limits | None = None,
    ) -> None:
        if not 1 <= workers <= _MOST_WORKERS:
            raise OptionError(f"workers={workers}: must be from 1 to {_MOST_WORKERS}")
        self.limits = limits or Limits()
        self.databases = Databases(databases) if isinstance(databases, Path | str) else databases
        self._pool = Pool(workers, self.limits)
        self._known: OrderedDict[ScoreJob, Verdict] = OrderedDict()
        self._paths: dict[str, Path | None] = {}

    def score(
        self, examples: Iterable[Example | tuple[str, str, str]], *, semantics: str = "reference"
    ) -> Iterator[Verdict]:
        """Yields a verdict per example, in their order, while later ones are being computed.

        Args:
            examples: (db_id, gold query, predicted query); read as needed, some ahead.
            semantics: When results count as equal (:data:`~lm_eval_ext.sql.compare.SEMANTICS`).

        Raises:
            OptionError: The semantics is unknown; raised at the call.
            DataError: A database's file is in use or its name ambiguous.
        """
        return self._score(iter(examples), find_semantics(semantics).name)

    def score_one(
        self, db_id: str, gold: str, predicted: str, *, semantics: str = "reference"
    ) -> Verdict:
        """Returns the verdict on one example.

        Raises:
            OptionError: The semantics is unknown.
            DataError: The database's file is in use or its name ambiguous.
        """
        return next(self.score([(db_id, gold, predicted)], semantics=semantics))

    def query(self, database: str | Path, sql: str) -> Rows:
        """Returns the rows of a query, run under the same limits and guards.

        Args:
            database: An id, or the path of a file (a ``Path``).
            sql: Exactly one statement.

        Raises:
            DataError: There is no such database.
            QueryError: The query failed or went over a limit.
        """
        path = database if isinstance(database, Path) else self._find(database)
        if path is None or not path.is_file():
            where = f" in {self.databases.folder}" if isinstance(self.databases, Databases) else ""
            raise DataError(f"no database {str(database)!r}{where}")
        job = Job(QueryJob(str(path), sql[: self.limits.max_sql_bytes + 1]))
        self._pool.submit(job)
        while job.outcome is None:
            self._pool.step()
        if isinstance(job.outcome, Failure):
            raise QueryError(job.outcome, sql)
        if not isinstance(job.outcome, Rows):
            raise TypeError(f"a query's outcome is {job.outcome!r}")
        return job.outcome

    def close(self) -> None:
        """Ends the workers; the next query would start new ones."""
        self._pool.close()

    def __enter__(self) -> "Executor":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _score(self, examples: Iterator[Any], semantics: str) -> Iterator[Verdict]:
        window: deque[Verdict | Job] = deque()
        running: dict[ScoreJob, Job] = {}
        try:
            while True:
                while len(window) < _LOOK_AHEAD and (example := next(examples, None)) is not None:
                    window.append(self._begin(Example(*example), semantics, running))
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
            self._pool.cancel(set(running.values()))

    def _begin(
        self, example: Example, semantics: str, running: dict[ScoreJob, Job]
    ) -> Verdict | Job:
        path = self._find(example.db_id)
        if path is None:
            return Verdict("database_missing", f"no database {example.db_id!r}")
        # A text over the limit is cut, and then refused.
        most = self.limits.max_sql_bytes + 1
        work = ScoreJob(str(path), example.gold[:most], example.predicted[:most], semantics)
        if work in self._known:
            return self._known[work]
        if work not in running:
            running[work] = Job(work)
            self._pool.submit(running[work])
        return running[work]

    def _end(self, job: Job, running: dict[ScoreJob, Job]) -> Verdict:
        if not isinstance(job.outcome, Verdict) or not isinstance(job.work, ScoreJob):
            raise TypeError(f"a score's outcome is {job.outcome!r}")
        running.pop(job.work, None)
        self._known[job.work] = job.outcome
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return job.outcome

    def _find(self, db_id: str) -> Path | None:
        if db_id not in self._paths:
            self._paths[db_id] = self.databases.find(db_id) if self.databases else None
        return self._paths[db_id]
