"""The program of a worker process: reads jobs from stdin, runs queries, writes messages to stdout.

The parent starts it as ``python -I -S``, so that it loads only the standard library and this
package's light modules, in about 60 ms. A worker of multiprocessing would import the parent's
main program, with lm_eval and torch, and would start again and again in a script without a main
guard.
"""

import gc
import os
import pickle
import sys
import threading
import time
import traceback
from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lm_eval_ext.sql.compare import Expected, Gold, Semantics, find_semantics
from lm_eval_ext.sql.engines.base import Engine
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import (
    OUT_OF_MEMORY,
    Failure,
    Outcome,
    Place,
    QueryJob,
    Rows,
    ScoreJob,
    Status,
    Verdict,
    WorkerMessage,
)

EXIT_OUT_OF_MEMORY = 77
"""Exit status of a worker that ran out of memory. It never goes on, since the memory that is left
depends on earlier queries: the parent has a fresh worker decide."""

_MEMORY_FILE = Path("/proc/self/statm")
"""The size of this process's memory in pages, on Linux."""

_MAX_GOLDS = 512
"""Gold results that a worker keeps."""

_MAX_GOLD_CELLS = 200_000
"""Cells of these results: about 20 MB at most, so that queries have enough memory."""

_STATUS_OF: dict[str, Status] = {
    "error": "prediction_error",
    "timeout": "prediction_timeout",
    "too_large": "prediction_too_large",
}


def main() -> None:
    """Run jobs until the parent closes stdin or dies."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    source = sys.stdin.buffer
    # Output of a stray print must not mix with the messages.
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    limits, engine_name = pickle.load(source)
    # Before the limit of memory, which is on top of what the driver needs.
    engine = DIALECTS[engine_name].engine(limits)
    _limit_process(limits)
    # Rows are plain values: looking through thousands of them for cycles costs time for nothing.
    gc.set_threshold(100_000)
    worker = Worker(engine, sink)
    worker.send(WorkerMessage("ready"))
    try:
        while True:
            for job in pickle.load(source):
                worker.send(WorkerMessage("done", worker.do(job)))
    except MemoryError:
        os._exit(EXIT_OUT_OF_MEMORY)
    except (BrokenPipeError, EOFError, pickle.UnpicklingError):
        os._exit(0)
    except BaseException:  # noqa: BLE001 (the parent reports any error)
        worker.send(WorkerMessage("fault", traceback.format_exc()))
        os._exit(1)


class _GoldKey(NamedTuple):
    """Everything that the expected result of a gold depends on.

    Attributes:
        database: The database it was run on.
        gold: The gold query.
        semantics: The name of the rule of comparison.
    """

    database: Place
    gold: str
    semantics: str


class _KeptGold(NamedTuple):
    """The expected result of a gold, or why it has none, with the number of its cells."""

    expected: Expected | Failure
    cells: int


class Worker:
    """Does jobs; keeps connections open, and the results of golds.

    Args:
        engine: Runs the queries.
        sink: The pipe for messages to the parent.
    """

    def __init__(self, engine: Engine, sink: BinaryIO) -> None:
        self._engine = engine
        self._sink = sink
        self._golds = OrderedDict[_GoldKey, _KeptGold]()
        self._cells = 0

    def send(self, message: WorkerMessage) -> None:
        """Send a message at once: the next query may kill this process."""
        pickle.dump(message, self._sink, protocol=pickle.HIGHEST_PROTOCOL)
        self._sink.flush()

    def do(self, job: ScoreJob | QueryJob) -> Outcome:
        """Return the outcome of a job.

        Raises:
            MemoryError: The process ran out of memory.
        """
        if isinstance(job, ScoreJob):
            return self._score(job)
        return self._run(job.database, job.sql)

    def _run(self, database: Place, sql: str) -> Rows | Failure:
        result = self._engine.run(database.address, sql)
        if result is OUT_OF_MEMORY:
            raise MemoryError
        return result

    def _score(self, job: ScoreJob) -> Verdict | Failure:
        expected = self._expected(job)
        if isinstance(expected, Failure):
            if expected.kind == "unavailable":
                return expected
            return Verdict("gold_error", f"{expected.kind}: {expected.message}")
        semantics = find_semantics(job.semantics)
        result = self._run(job.database, self._rewritten(semantics, job.predicted))
        if isinstance(result, Failure):
            if result.kind == "unavailable":
                return result
            return verdict_of(result)
        if expected.matches(result):
            return Verdict("correct")
        return Verdict("wrong", _reason(expected, result))

    def _expected(self, job: ScoreJob) -> Expected | Failure:
        key = _GoldKey(job.database, job.gold, job.semantics)
        if key in self._golds:
            self._golds.move_to_end(key)
            return self._golds[key].expected
        self.send(WorkerMessage("gold"))
        semantics = find_semantics(job.semantics)
        gold_sql = self._rewritten(semantics, job.gold)
        result = self._run(job.database, gold_sql)
        if isinstance(result, Rows):
            gold = Gold(gold_sql, result, lambda sql: self._run(job.database, sql))
            cells = len(result.rows) * len(result.columns)
            kept_gold = _KeptGold(semantics.prepare(gold), cells)
        else:
            kept_gold = _KeptGold(result, 0)
        self._keep(key, kept_gold)
        self.send(WorkerMessage("prediction"))
        return kept_gold.expected

    def _rewritten(self, semantics: Semantics, sql: str) -> str:
        """Return the text to run; one over the limit, which is cut, stays as it is and fails."""
        if len(sql) > self._engine.limits.max_sql_bytes:
            return sql
        return semantics.rewrite(sql)

    def _keep(self, key: _GoldKey, gold: _KeptGold) -> None:
        """Keep a gold for later jobs, unless it is large, and drop the oldest ones."""
        unavailable = isinstance(gold.expected, Failure) and gold.expected.kind == "unavailable"
        if gold.cells > _MAX_GOLD_CELLS // 4 or unavailable:
            return
        self._golds[key] = gold
        self._cells += gold.cells
        while len(self._golds) > _MAX_GOLDS or self._cells > _MAX_GOLD_CELLS:
            _, dropped_gold = self._golds.popitem(last=False)
            self._cells -= dropped_gold.cells


def _reason(expected: Expected, result: Rows) -> str:
    """Return how a wrong result differs; "" if there is too little memory to find out."""
    try:
        return expected.difference(result).as_text()
    except MemoryError:
        return ""


def verdict_of(failure: Failure) -> Verdict:
    """Return the verdict on a prediction that gave no result."""
    return Verdict(_STATUS_OF[failure.kind], failure.message)


def _end_with_parent(parent: int) -> None:
    """End the process when the parent has ended, even during a query.

    All drivers release the interpreter's lock, so this thread keeps running. On Windows the
    parent's id stays, and the process ends after its current job.
    """
    while os.getppid() == parent:
        time.sleep(0.25)
    os._exit(0)


def can_limit_memory() -> bool:
    """Return whether the system can limit the memory of a process as we need it, as Linux can."""
    return find_spec("resource") is not None and _pages_in_use() is not None


def _pages_in_use() -> int | None:
    """Return the pages of this process's address space; None where the system does not say."""
    try:
        return int(_MEMORY_FILE.read_text().split()[0])
    except (OSError, ValueError):
        return None


def _limit_process(limits: Limits) -> None:
    """Set the system's limits, where available: memory, no file writes, no core dump."""
    try:
        import resource
    except ImportError:  # Windows: only hard_heap_limit and the limits on results apply
        return

    def limit(resource_name: int, value: int) -> None:
        _, hard_limit = resource.getrlimit(resource_name)
        if hard_limit != resource.RLIM_INFINITY:
            value = min(value, hard_limit)
        resource.setrlimit(resource_name, (value, value))

    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, 0)  # pipes are not files
    pages = _pages_in_use()
    if pages is None:
        return  # on other systems the address space says nothing about the memory in use
    limit(resource.RLIMIT_AS, pages * resource.getpagesize() + limits.max_memory_bytes)
