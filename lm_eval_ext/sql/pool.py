"""Worker processes that are given jobs, timed, killed and replaced.

This is the outer of two defences against hostile queries; :mod:`lm_eval_ext.sql.policy` is the
inner one.
"""

import contextlib
import functools
import importlib.util
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import weakref
import zlib
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import (
    OUT_OF_MEMORY,
    EngineName,
    Failure,
    Outcome,
    Place,
    QueryJob,
    ScoreJob,
    Verdict,
    WorkerMessage,
)
from lm_eval_ext.sql.worker import EXIT_OUT_OF_MEMORY, can_limit_memory, verdict_of

_log = get_logger(__name__)

START_S = 60.0
"""Seconds that a worker may take to start; it usually takes 0.1."""

_BOOT = """\
import signal, sys
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
sys.path += sys.argv[1:]
from lm_eval_ext.sql.worker import main
main()
"""
"""What a worker runs. The signals are for the parent, with which a worker ends: a terminal or a
scheduler sends them to every process of a job, and a worker's death would count as its query's."""


class Job:
    """A job of a pool.

    Attributes:
        work: What to do.
        outcome: What came of it; None until it is done.
        deaths: Workers that crashed at it.
    """

    __slots__ = ("deaths", "outcome", "work")

    def __init__(self, work: ScoreJob | QueryJob) -> None:
        self.work = work
        self.outcome: Outcome | None = None
        self.deaths = 0


Event = tuple["WorkerProcess", WorkerMessage | None]
"""A message of a worker; None: its pipe has been closed."""


class WorkerProcess:
    """A worker process.

    Args:
        limits: What each query may use.
        engine: The engine of its databases.
        events: The queue that takes its messages.

    Attributes:
        jobs: Its jobs, the one it is working on first.
        phase: Which query of that job it runs.
        ready: Whether it has started.
        fresh: Whether it has not finished any job.
    """

    def __init__(
        self, limits: Limits, engine: EngineName, events: "queue.SimpleQueue[Event]"
    ) -> None:
        self.jobs: deque[Job] = deque()
        self.phase: Literal["gold", "prediction"] = "prediction"
        self.ready = False
        self.fresh = True
        self._limits = limits
        self._since = time.monotonic()
        # Plain pipes instead of multiprocessing: see lm_eval_ext.sql.worker. A thread reads,
        # since waiting for a pipe with a time limit does not work on Windows.
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _BOOT,
                str(Path(__file__).parents[2]),
                *_driver_folders(engine),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Each thread's own arena would take 64 MB of the limited address space.
            env={**os.environ, "MALLOC_ARENA_MAX": "1"},
        )
        threading.Thread(target=self._listen, args=(events,), daemon=True).start()
        self._send((limits, engine))

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def deadline(self) -> float:
        """When to kill the process unless it sends a message (``time.monotonic``)."""
        if not self.ready:
            return self._since + START_S
        if self.jobs:
            return self._since + self._limits.wall_s
        return float("inf")

    def give(self, jobs: list[Job]) -> None:
        """Send jobs, done in order, to a worker that has none: so it reads while this writes."""
        if self.ready:
            self._since = time.monotonic()
        self.jobs.extend(jobs)
        self._send([job.work for job in jobs])

    def take(self, message: WorkerMessage) -> None:
        """Handle a message, and restart the clock of the oldest job."""
        if message.kind == "fault":
            raise RuntimeError(f"defect in an SQL worker process:\n{message.content}")
        self._since = time.monotonic()
        if message.kind == "ready":
            self.ready = True
        elif message.kind == "done" and not isinstance(message.content, str):
            self.jobs.popleft().outcome = message.content
            self.fresh = False
        elif message.kind in ("gold", "prediction"):
            self.phase = message.kind

    @property
    def exhausted(self) -> bool:
        """Whether the process has ended because its own memory did not suffice."""
        return self._process.poll() == EXIT_OUT_OF_MEMORY

    def kill(self) -> None:
        """End the process at once."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # a job that is not written yet
            if self._process.stdin:
                self._process.stdin.close()

    def cause_of_death(self, *, killed: bool) -> Failure:
        """Return the failure of the job during which the process ended, or was killed by us."""
        if killed:
            return Failure("timeout", f"killed after {self._limits.wall_s:g} s without an answer")
        code = self._process.wait()
        if code == EXIT_OUT_OF_MEMORY:
            return OUT_OF_MEMORY
        # Other than us, only the system's out-of-memory killer is expected to send SIGKILL.
        if hasattr(signal, "SIGKILL") and code == -signal.SIGKILL:
            return OUT_OF_MEMORY
        return Failure("error", f"the query crashed the database engine (status {code})")

    def _send(self, item: tuple[Limits, EngineName] | list[ScoreJob | QueryJob]) -> None:
        if self._process.stdin is None:
            raise RuntimeError("an SQL worker process has no stdin")
        # The process may have just died; that is handled as an event.
        with contextlib.suppress(OSError):
            pickle.dump(item, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()

    def _listen(self, events: "queue.SimpleQueue[Event]") -> None:
        source = self._process.stdout
        if source is None:
            return
        with source:
            # A killed process may leave half a message, which raises any of these.
            with contextlib.suppress(EOFError, pickle.UnpicklingError, OSError, ValueError):
                while True:
                    events.put((self, pickle.load(source)))
            events.put((self, None))


_BATCH = 8
"""Jobs sent to a worker at a time, so that it seldom waits for the parent."""

_SECOND_CHANCES = 1
"""How often a job is repeated whose worker died: the system's out-of-memory killer may have chosen
it because of another program, and queries before it may have left too little memory."""

_STARTS = 3
"""Workers in a row that may die before they are ready."""


_Lane = dict[Place, dict[str, deque[Job]]]
"""Queued jobs by database and gold; the first database is the one that is being worked on."""


class Pool:
    """Worker processes that are started when they are first needed; for one thread at a time.

    Args:
        workers: How many processes.
        limits: What each query may use.
    """

    def __init__(self, workers: int, limits: Limits) -> None:
        _warn_of_unlimited_memory()
        self._limits = limits
        self._workers: list[WorkerProcess | None] = [None for _ in range(workers)]
        self._lanes: list[_Lane] = [{} for _ in range(workers)]
        self._events = queue.SimpleQueue[Event]()
        self._failed_starts = 0
        self._deadly_golds: dict[tuple[Place, str], Verdict] = {}
        self._engine: EngineName | None = None
        # Runs at the interpreter's exit as well.
        self._finalizer = weakref.finalize(self, _kill_all, self._workers)

    def submit(self, job: Job) -> None:
        """Queue a job for :meth:`step`.

        Raises:
            OptionError: Its database has another engine than those of earlier jobs.
        """
        database = job.work.database
        if self._engine not in (None, database.engine):
            raise OptionError(
                f"{database}: a database of {database.engine} among those of {self._engine}; score "
                "them apart"
            )
        self._engine = database.engine
        # All jobs of a database go to one worker, one after the other, so that it is opened once
        # and its golds run once. CRC because hash() differs between processes.
        address = database.address.encode("utf-8", "surrogatepass")
        lane = zlib.crc32(address) % len(self._lanes)
        self._queued(lane, job).append(job)
        if self._workers[lane] is None:  # starts while the caller submits more
            self._feed()

    def step(self) -> None:
        """Wait for the next event: a job done, a worker dead, or a deadline passed."""
        self._feed()
        workers = [worker for worker in self._workers if worker is not None]
        if not any(worker.jobs for worker in workers):
            return
        deadline = min(worker.deadline for worker in workers)
        # In short periods, since Ctrl-C does not interrupt a wait on Windows.
        wait = min(max(deadline - time.monotonic(), 0.0), 0.5)
        try:
            worker, message = self._events.get(block=wait > 0, timeout=wait)
        except queue.Empty:
            # A worker is late only after all messages are handled: its own may be among them.
            self._kill_late()
            return
        if worker not in self._workers:  # sent before it was killed
            return
        if message is None:
            self._handle_dead_worker(worker, killed=False)
            return
        worker.take(message)
        if message.kind == "ready":
            self._failed_starts = 0

    def cancel(self, jobs: Iterable[Job]) -> None:
        """Drop jobs that have not been sent."""
        for job in jobs:
            job.outcome = job.outcome or Failure("error", "cancelled")

    def close(self) -> None:
        """Kill all workers; later jobs start new ones."""
        _kill_all(self._workers)
        for lane in self._lanes:
            lane.clear()

    def _queued(self, lane: int, job: Job) -> deque[Job]:
        """Return the queue of a job in a lane."""
        gold = ""
        if isinstance(job.work, ScoreJob):
            gold = job.work.gold
        return self._lanes[lane].setdefault(job.work.database, {}).setdefault(gold, deque())

    def _feed(self) -> None:
        """Send jobs to the workers that have none."""
        for lane, worker in enumerate(self._workers):
            if worker is not None and worker.jobs:
                continue
            batch = self._next_batch(lane)
            if not batch:
                continue
            if worker is None:
                engine = batch[0].work.database.engine
                new_worker = WorkerProcess(self._limits, engine, self._events)
                self._workers[lane] = new_worker
                new_worker.give(batch)
            else:
                worker.give(batch)

    def _next_batch(self, lane: int) -> list[Job]:
        """Return the next jobs of a worker."""
        batch: list[Job] = []
        while len(batch) < _BATCH:
            job = self._next_job(lane)
            if job is None:
                break
            batch.append(job)
        return batch

    def _next_job(self, lane: int) -> Job | None:
        """Return the next job of a worker's lane, or of the longest lane's last gold."""
        while any(self._lanes):
            if self._lanes[lane]:
                job = _take_first(self._lanes[lane])
            else:
                job = _take_last(max(self._lanes, key=len))
            if job.outcome is None and isinstance(job.work, ScoreJob):
                job.outcome = self._deadly_golds.get((job.work.database, job.work.gold))
            if job.outcome is None:
                return job
        return None

    def _kill_late(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker is not None and worker.deadline <= now:
                worker.kill()
                self._handle_dead_worker(worker, killed=True)

    def _handle_dead_worker(self, worker: WorkerProcess, *, killed: bool) -> None:
        """Decide a dead worker's current job, and queue its other jobs again."""
        failure = worker.cause_of_death(killed=killed)
        worker.kill()
        lane = self._workers.index(worker)
        self._workers[lane] = None
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= _STARTS:
                raise RuntimeError(f"SQL worker processes do not start: {failure.message}")
        elif worker.jobs:
            if not killed:
                worker.jobs[0].deaths += 1
            decided = killed or (worker.fresh and worker.exhausted)
            if decided or worker.jobs[0].deaths > _SECOND_CHANCES:
                self._settle(worker.jobs.popleft(), failure, in_gold=worker.phase == "gold")
        for job in reversed(worker.jobs):
            self._queued(lane, job).appendleft(job)

    def _settle(self, job: Job, failure: Failure, *, in_gold: bool) -> None:
        if not isinstance(job.work, ScoreJob):
            job.outcome = failure
        elif in_gold:
            job.outcome = Verdict("gold_error", f"{failure.kind}: {failure.message}")
            self._deadly_golds[job.work.database, job.work.gold] = job.outcome
        else:
            job.outcome = verdict_of(failure)


@functools.cache
def _warn_of_unlimited_memory() -> None:
    """Say once that this system cannot limit a query's memory, if it cannot."""
    if not can_limit_memory():
        _log.warning(
            "queries of models run without a limit of the system on their memory, which only Linux "
            "has (this is %s); SQLite's own limit, and those on time and results, hold",
            sys.platform,
        )


def _take_first(lane: _Lane) -> Job:
    """Remove and return the oldest job of the first gold of the first database."""
    database = next(iter(lane))
    return _take(lane, database, next(iter(lane[database])))


def _take_last(lane: _Lane) -> Job:
    """Remove and return the oldest job of the last gold of the last database."""
    database = next(reversed(lane))
    return _take(lane, database, next(reversed(lane[database])))


def _take(lane: _Lane, database: Place, gold: str) -> Job:
    golds = lane[database]
    job = golds[gold].popleft()
    if not golds[gold]:
        del golds[gold]
    if not golds:
        del lane[database]
    return job


def _driver_folders(engine: EngineName) -> list[str]:
    """Return the folder of the engine's driver: a worker starts without any, and needs this one."""
    driver = DIALECTS[engine].driver
    if not driver:
        return []
    spec = importlib.util.find_spec(driver)
    if spec is None or spec.origin is None:
        return []
    return [str(Path(spec.origin).parents[1])]


def _kill_all(workers: list[WorkerProcess | None]) -> None:
    for lane, worker in enumerate(workers):
        if worker is not None:
            worker.kill()
            workers[lane] = None
