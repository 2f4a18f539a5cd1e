"""Running one query after another on guarded connections, inside a worker process.

What runs inside a worker process: jobs come in on stdin, notes go out on stdout.

The parent starts it as ``python -I -S``: only the standard library and this package's own
light modules are loaded, neither the user's ``__main__`` nor site-packages. That takes some
60 ms where a worker of multiprocessing's, which imports the parent's main program again, would
load lm_eval and torch first, and would start over and over in a script without a main guard.
"""

import os
import pickle
import queue
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections import OrderedDict
from pathlib import Path
from typing import BinaryIO

from lm_eval_ext.sql.compare import Expected, Gold, find_semantics
from lm_eval_ext.sql.policy import CONNECTIONS, Limits, open_guarded
from lm_eval_ext.sql.values import (
    SHOWN,
    Failure,
    Note,
    Outcome,
    QueryJob,
    Row,
    Rows,
    ScoreJob,
    Status,
    Verdict,
)
from lm_eval_ext.text import one_line

_CHECK_EVERY = 4_000
"""Instructions of SQLite's virtual machine between two looks at the clock (some 200 us)."""


class _TooLargeError(Exception):
    """The result is over a limit."""


class Engine:
    """Runs queries; no query can raise, change a file or run on past its limits.

    Args:
        limits: What each query may use.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connections: OrderedDict[str, sqlite3.Connection] = OrderedDict()
        self._deadline = 0.0
        self._bytes_left = 0

    def run(self, path: str, sql: str) -> Rows | Failure:
        """Runs exactly one statement that must give rows, be it none; the text is run as given.

        Args:
            path: The database file.
            sql: What a model, or a benchmark, wrote.

        Returns:
            The result, or why there is none.
        """
        self._deadline = time.process_time() + self._limits.timeout_s
        self._bytes_left = self._limits.max_result_bytes
        try:
            size = len(sql.encode("utf-8"))  # raises for lone surrogates
            if size > self._limits.max_sql_bytes:
                raise _TooLargeError(
                    f"the query's text is over {self._limits.max_sql_bytes:,} bytes"
                )
            return self._run(self._connection(path), sql)
        # Python 3.10 meets a second statement with sqlite3.Warning, which is no sqlite3.Error,
        # and a NUL character with ValueError; text that is no Unicode is a ValueError, too.
        except (
            _TooLargeError, MemoryError, sqlite3.Error, sqlite3.Warning, ValueError, OverflowError
        ) as error:  # fmt: skip
            return self._failure(error)

    def _failure(self, error: Exception) -> Failure:
        if isinstance(error, MemoryError):
            self.close()  # gives back what the page caches hold
            return Failure("too_large", "out of memory")
        if isinstance(error, _TooLargeError | sqlite3.DataError):  # DataError: SQLite's TOOBIG
            return Failure("too_large", one_line(str(error), limit=SHOWN))
        late = isinstance(error, sqlite3.OperationalError) and self._is_late()
        if late:
            return Failure("timeout", f"stopped after {self._limits.timeout_s:g} s")
        return Failure("error", one_line(str(error), limit=SHOWN))

    def close(self) -> None:
        """Closes all connections; the engine can go on."""
        while self._connections:
            self._connections.popitem()[1].close()

    def _run(self, connection: sqlite3.Connection, sql: str) -> Rows:
        cursor = connection.cursor()
        try:
            cursor.execute(sql)
            if cursor.description is None:
                # Empty, only comments, or a statement without a result, such as REINDEX.
                raise ValueError("not a query: it has no result, not even an empty one")
            rows: list[Row] = []
            # Row by row, so that one that is all large blobs is counted before the next comes.
            for row in cursor:
                rows.append(row)
                if len(rows) > self._limits.max_rows:
                    raise _TooLargeError(f"the result has over {self._limits.max_rows:,} rows")
                if bytes in map(type, row):
                    for value in row:
                        if type(value) is bytes:
                            self._spend(len(value))
            return Rows(tuple(column[0] for column in cursor.description), rows)
        finally:
            cursor.close()

    def _connection(self, path: str) -> sqlite3.Connection:
        if (connection := self._connections.get(path)) is not None:
            self._connections.move_to_end(path)
            return connection
        if len(self._connections) >= CONNECTIONS:
            self._connections.popitem(last=False)[1].close()
        connection = open_guarded(path, self._limits)
        connection.text_factory = self._text
        connection.set_progress_handler(self._is_late, _CHECK_EVERY)
        self._connections[path] = connection
        return connection

    def _is_late(self) -> bool:
        return time.process_time() > self._deadline

    def _text(self, raw: bytes) -> str:
        self._spend(len(raw))
        return raw.decode("utf-8", "surrogateescape")  # the reason: values.Value

    def _spend(self, size: int) -> None:
        if size > self._limits.max_value_bytes:  # SQLite sees to it itself from Python 3.11 on
            raise _TooLargeError(f"a value has over {self._limits.max_value_bytes:,} bytes")
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise _TooLargeError(f"the result has over {self._limits.max_result_bytes:,} bytes")


EXIT_OUT_OF_MEMORY = 77
"""Exit status of a worker that ran out of memory where it could not say so."""

_GOLDS, _GOLD_CELLS = 512, 200_000
"""Gold results kept; in all some 20 MB at most, so that they do not eat a query's memory."""

_STATUS_OF: dict[str, Status] = {
    "error": "prediction_error",
    "timeout": "prediction_timeout",
    "too_large": "prediction_too_large",
}


def main() -> None:
    """Runs jobs until the parent closes stdin or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    source = sys.stdin.buffer
    # A stray print must not end up between the notes.
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    limits: Limits = pickle.load(source)
    jobs: queue.SimpleQueue[ScoreJob | QueryJob] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(source, jobs), daemon=True).start()
    _limit_process(limits)
    worker = Worker(limits, sink)
    worker.tell(Note("ready"))
    try:
        while True:
            worker.tell(Note("done", worker.do(jobs.get())))
    except MemoryError:
        os._exit(EXIT_OUT_OF_MEMORY)
    except BrokenPipeError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 (whatever it is, the parent must learn of it)
        worker.tell(Note("fault", traceback.format_exc()))
        os._exit(1)


class Worker:
    """Does the jobs; holds open connections and the results of golds."""

    def __init__(self, limits: Limits, sink: BinaryIO) -> None:
        self._engine = Engine(limits)
        self._sink = sink
        self._golds: OrderedDict[tuple[str, str, str], tuple[int, Expected | Failure]]
        self._golds = OrderedDict()
        self._cells = 0

    def tell(self, note: Note) -> None:
        """Sends a note now: if the next thing kills us, the parent must have it."""
        pickle.dump(note, self._sink, protocol=pickle.HIGHEST_PROTOCOL)
        self._sink.flush()

    def do(self, job: ScoreJob | QueryJob) -> Outcome:
        """Returns the outcome of a job."""
        try:
            return self._score(job) if isinstance(job, ScoreJob) else self._engine.run(*job)
        except MemoryError:
            self._engine.close()
            self._golds.clear()
            self._cells = 0
            failure = Failure("too_large", "out of memory")
            return verdict_of(failure) if isinstance(job, ScoreJob) else failure

    def _score(self, job: ScoreJob) -> Verdict:
        expected = self._expected(job)
        if isinstance(expected, Failure):
            return Verdict("gold_error", f"{expected.kind}: {expected.message}")
        result = self._engine.run(job.path, job.predicted)
        if isinstance(result, Failure):
            return verdict_of(result)
        return Verdict("correct" if expected.matches(result) else "wrong")

    def _expected(self, job: ScoreJob) -> Expected | Failure:
        key = (job.path, job.gold, job.semantics)
        if key in self._golds:
            self._golds.move_to_end(key)
            return self._golds[key][1]
        self.tell(Note("gold"))
        result = self._engine.run(job.path, job.gold)
        expected: Expected | Failure
        if isinstance(result, Rows):
            gold = Gold(job.gold, result, lambda sql: self._engine.run(job.path, sql))
            expected = find_semantics(job.semantics).prepare(gold)
            cells = len(result.rows) * len(result.columns)
        else:
            expected, cells = result, 0
        self._keep(key, cells, expected)
        self.tell(Note("prediction"))
        return expected

    def _keep(self, key: tuple[str, str, str], cells: int, expected: Expected | Failure) -> None:
        if cells > _GOLD_CELLS // 4:
            return
        self._golds[key] = (cells, expected)
        self._cells += cells
        while len(self._golds) > _GOLDS or self._cells > _GOLD_CELLS:
            self._cells -= self._golds.popitem(last=False)[1][0]


def verdict_of(failure: Failure) -> Verdict:
    """Returns the verdict on a prediction that gave no result."""
    return Verdict(_STATUS_OF[failure.kind], failure.message)


def _read(source: BinaryIO, jobs: "queue.SimpleQueue[ScoreJob | QueryJob]") -> None:
    """Passes jobs on, and ends the process when the parent is gone, even amid a query.

    SQLite runs without the interpreter's lock, so this thread is never shut out.
    """
    try:
        while True:
            jobs.put(pickle.load(source))
    except MemoryError:
        os._exit(EXIT_OUT_OF_MEMORY)
    except BaseException:  # noqa: BLE001 (end of file, or half a job: no parent any more)
        os._exit(0)


def _limit_process(limits: Limits) -> None:
    """Sets the system's own limits where there are any: memory, no file writes, no core dump."""
    try:
        import resource
    except ImportError:  # Windows: hard_heap_limit and the limits on results hold alone
        return

    def limit(which: int, value: int) -> None:
        _, hard = resource.getrlimit(which)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))

    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, 0)  # pipes are not files
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):
        return  # elsewhere the address space has no relation to the memory in use
    limit(resource.RLIMIT_AS, pages * resource.getpagesize() + limits.max_memory_bytes)
