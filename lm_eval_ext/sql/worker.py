"""The program of a worker process: reads jobs from stdin, runs queries, writes messages to stdout.

The parent starts it as ``python -I -S``, so that it loads only the standard library and this
package's light modules, in about 60 ms. A worker of multiprocessing would import the parent's
main program, with lm_eval and torch, and would start again and again in a script without a main
guard.
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
    Outcome,
    QueryJob,
    Row,
    Rows,
    ScoreJob,
    Status,
    Verdict,
    WorkerMessage,
)
from lm_eval_ext.text import one_line

_CHECK_EVERY = 4_000
"""Instructions of SQLite's virtual machine between two checks of the time (about 200 us)."""


class _TooLargeError(Exception):
    """The result is over a limit."""


class Engine:
    """Runs queries; no query can raise, change a file or exceed its limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connections: OrderedDict[str, sqlite3.Connection] = OrderedDict()
        self._deadline = 0.0
        self._bytes_left = 0

    def run(self, path: str, sql: str) -> Rows | Failure:
        """Runs exactly one statement, as it is written; it must have a result, if an empty one."""
        self._deadline = time.process_time() + self._limits.timeout_s
        self._bytes_left = self._limits.max_result_bytes
        try:
            size = len(sql.encode("utf-8"))  # raises for lone surrogates
            if size > self._limits.max_sql_bytes:
                raise _TooLargeError(
                    f"the query's text is over {self._limits.max_sql_bytes:,} bytes"
                )
            return self._run(self._connection(path), sql)
        # Python 3.10 raises sqlite3.Warning, which is not an sqlite3.Error, for a second statement;
        # NUL characters and text that is not Unicode raise ValueError.
        except (
            _TooLargeError, MemoryError, sqlite3.Error, sqlite3.Warning, ValueError, OverflowError
        ) as error:  # fmt: skip
            return self._failure(error)

    def _failure(self, error: Exception) -> Failure:
        if isinstance(error, MemoryError):
            self.close()  # frees the page caches
            return Failure("too_large", "out of memory")
        if isinstance(error, _TooLargeError | sqlite3.DataError):  # DataError: SQLite's TOOBIG
            return Failure("too_large", one_line(str(error), limit=SHOWN))
        late = isinstance(error, sqlite3.OperationalError) and self._is_late()
        if late:
            return Failure("timeout", f"stopped after {self._limits.timeout_s:g} s")
        return Failure("error", one_line(str(error), limit=SHOWN))

    def close(self) -> None:
        """Closes all connections; later queries open new ones."""
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
            # Row by row, so that large blobs are counted before the next row is read.
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
        if size > self._limits.max_value_bytes:  # from Python 3.11 on SQLite checks it itself
            raise _TooLargeError(f"a value has over {self._limits.max_value_bytes:,} bytes")
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise _TooLargeError(f"the result has over {self._limits.max_result_bytes:,} bytes")


EXIT_OUT_OF_MEMORY = 77
"""Exit status of a worker that ran out of memory and could not report it."""

_GOLDS, _GOLD_CELLS = 512, 200_000
"""Gold results kept: about 20 MB at most, so that queries have enough memory."""

_STATUS_OF: dict[str, Status] = {
    "error": "prediction_error",
    "timeout": "prediction_timeout",
    "too_large": "prediction_too_large",
}


def main() -> None:
    """Runs jobs until the parent closes stdin or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    source = sys.stdin.buffer
    # Output of a stray print must not mix with the messages.
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    limits: Limits = pickle.load(source)
    jobs: queue.SimpleQueue[ScoreJob | QueryJob] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(source, jobs), daemon=True).start()
    _limit_process(limits)
    worker = Worker(limits, sink)
    worker.send(WorkerMessage("ready"))
    try:
        while True:
            worker.send(WorkerMessage("done", worker.do(jobs.get())))
    except MemoryError:
        os._exit(EXIT_OUT_OF_MEMORY)
    except BrokenPipeError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 (the parent reports any error)
        worker.send(WorkerMessage("fault", traceback.format_exc()))
        os._exit(1)


class Worker:
    """Does jobs; keeps connections open, and the results of golds."""

    def __init__(self, limits: Limits, sink: BinaryIO) -> None:
        self._engine = Engine(limits)
        self._sink = sink
        self._golds: OrderedDict[tuple[str, str, str], tuple[int, Expected | Failure]]
        self._golds = OrderedDict()
        self._cells = 0

    def send(self, message: WorkerMessage) -> None:
        """Sends a message at once: the next query may kill this process."""
        pickle.dump(message, self._sink, protocol=pickle.HIGHEST_PROTOCOL)
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
        self.send(WorkerMessage("gold"))
        result = self._engine.run(job.path, job.gold)
        expected: Expected | Failure
        if isinstance(result, Rows):
            gold = Gold(job.gold, result, lambda sql: self._engine.run(job.path, sql))
            expected = find_semantics(job.semantics).prepare(gold)
            cells = len(result.rows) * len(result.columns)
        else:
            expected, cells = result, 0
        self._keep(key, cells, expected)
        self.send(WorkerMessage("prediction"))
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
    """Queues jobs, and ends the process when the parent has ended, even during a query.

    SQLite releases the interpreter's lock, so this thread keeps running.
    """
    try:
        while True:
            jobs.put(pickle.load(source))
    except MemoryError:
        os._exit(EXIT_OUT_OF_MEMORY)
    except BaseException:  # noqa: BLE001 (end of file, or half a job: the parent has ended)
        os._exit(0)


def _limit_process(limits: Limits) -> None:
    """Sets the system's limits, where available: memory, no file writes, no core dump."""
    try:
        import resource
    except ImportError:  # Windows: only hard_heap_limit and the limits on results apply
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
        return  # on other systems the address space says nothing about the memory in use
    limit(resource.RLIMIT_AS, pages * resource.getpagesize() + limits.max_memory_bytes)
