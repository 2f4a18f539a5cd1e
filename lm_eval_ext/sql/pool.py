"""The parent's handle of one worker process.

Worker processes that are fed, timed, killed and replaced: the wall around the workers.
"""

import contextlib
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
from pathlib import Path
from typing import Literal

from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import Failure, FailureKind, Note, Outcome, QueryJob, ScoreJob, Verdict
from lm_eval_ext.sql.worker import EXIT_OUT_OF_MEMORY, verdict_of

START_S = 60.0
"""Seconds that a worker may take to start; a healthy one takes a tenth of one."""

_BOOT = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import sys; "
    "sys.path.append(sys.argv[1]); from lm_eval_ext.sql.worker import main; main()"
)


class Job:
    """A job on its way; ``outcome`` is None until it is done.

    ``deaths`` counts the workers that died at it by themselves.
    """

    __slots__ = ("deaths", "outcome", "work")

    def __init__(self, work: ScoreJob | QueryJob) -> None:
        self.work = work
        self.outcome: Outcome | None = None
        self.deaths = 0


Event = tuple["WorkerProcess", Note | None]
"""A worker's note; None: its pipe has ended."""


class WorkerProcess:
    """A worker process: jobs go in, notes come out into a queue that the pool reads.

    Args:
        limits: What each query may use.
        events: Where notes go.
    """

    def __init__(self, limits: Limits, events: "queue.SimpleQueue[Event]") -> None:
        self.jobs: deque[Job] = deque()
        self.phase: Literal["gold", "prediction"] = "prediction"
        self.ready = False
        self._limits = limits
        self._since = time.monotonic()
        # A plain child and pipes instead of multiprocessing: see lm_eval_ext.sql.worker.
        # A thread reads, since pipes cannot be waited for with a time limit on Windows.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT, str(Path(__file__).parents[2])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        threading.Thread(target=self._listen, args=(events,), daemon=True).start()
        self._send(limits)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def deadline(self) -> float:
        """When the process is to be killed if it says nothing more (``time.monotonic``)."""
        if not self.ready:
            return self._since + START_S
        return self._since + self._limits.wall_s if self.jobs else float("inf")

    def give(self, job: Job) -> None:
        """Hands over a job; they are done in the order in which they come."""
        if not self.jobs and self.ready:
            self._since = time.monotonic()
        self.jobs.append(job)
        self._send(job.work)

    def take(self, note: Note) -> None:
        """Takes notice of a note; the clock of the oldest job starts anew."""
        if note.kind == "fault":
            raise RuntimeError(f"defect in an SQL worker process:\n{note.content}")
        self._since = time.monotonic()
        if note.kind == "ready":
            self.ready = True
        elif note.kind == "done":
            self.jobs.popleft().outcome = note.content
            self.phase = "prediction"
        elif note.kind in ("gold", "prediction"):
            self.phase = note.kind

    def kill(self) -> None:
        """Ends the process at once, whatever it does. It has nothing to lose."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # a job that was not written out yet
            if self._process.stdin:
                self._process.stdin.close()

    def cause_of_death(self, *, killed: bool) -> Failure:
        """Returns what to say of the job during which the process ended.

        Args:
            killed: Whether it was we who ended it.
        """
        if killed:
            return Failure("timeout", f"killed after {self._limits.wall_s:g} s without an answer")
        code = self._process.wait()
        # The system's out-of-memory killer sends SIGKILL, and so does nobody else but us.
        out_of_memory = code in (EXIT_OUT_OF_MEMORY, -getattr(signal, "SIGKILL", 0) or None)
        kind: FailureKind = "too_large" if out_of_memory else "error"
        what = "out of memory" if out_of_memory else f"the query crashed SQLite (status {code})"
        return Failure(kind, what)

    def _send(self, item: Limits | ScoreJob | QueryJob) -> None:
        if self._process.stdin is None:
            raise RuntimeError("an SQL worker process has no stdin")
        # A process that has just died: its end is an event, handled when it is read.
        with contextlib.suppress(OSError):
            pickle.dump(item, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()

    def _listen(self, events: "queue.SimpleQueue[Event]") -> None:
        source = self._process.stdout
        if source is None:
            return
        with source:
            # A process that is killed may leave half a note, which is any of these.
            with contextlib.suppress(EOFError, pickle.UnpicklingError, OSError, ValueError):
                while True:
                    events.put((self, pickle.load(source)))
            events.put((self, None))


_AHEAD = 4
"""Jobs a worker holds, so that it need not wait for the parent between two of them."""

_SECOND_CHANCES = 1
"""How often a job may run again whose worker died by itself: it may have died idle, or have
been picked by the system's out-of-memory killer for what another program used."""

_STARTS = 3
"""Workers in a row that may die before they are ready."""


class Pool:
    """A few worker processes, started when they are first needed.

    One thread at a time may use it.

    Args:
        workers: How many processes.
        limits: What each query may use.
    """

    def __init__(self, workers: int, limits: Limits) -> None:
        self._limits = limits
        self._workers: list[WorkerProcess | None] = [None] * workers
        self._lanes: list[deque[Job]] = [deque() for _ in range(workers)]
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._failed_starts = 0
        self._deadly_golds: dict[tuple[str, str], Verdict] = {}
        # Also runs at the interpreter's exit.
        self._finalizer = weakref.finalize(self, _kill_all, self._workers)

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that run now."""
        return [worker.pid for worker in self._workers if worker is not None]

    def submit(self, job: Job) -> None:
        """Takes a job; :meth:`step` does it."""
        # One database, one worker, while both are busy: it is opened once and its golds run
        # once. CRC because hash() differs from process to process.
        crc = zlib.crc32(job.work.path.encode("utf-8", "surrogatepass"))
        self._lanes[crc % len(self._lanes)].append(job)

    def step(self) -> None:
        """Waits until something happens: a job done, a worker dead, or one to be killed."""
        self._feed()
        if not any(worker.jobs for worker in self._workers if worker):
            return
        deadline = min(worker.deadline for worker in self._workers if worker)
        try:
            # Never long at once: on Windows, Ctrl-C does not end a wait.
            wait = min(max(deadline - time.monotonic(), 0.0), 0.5)
            worker, note = self._events.get(timeout=wait) if wait else self._events.get_nowait()
        except queue.Empty:
            # Only now, when all that was said has been heard, is silence silence.
            self._kill_late()
            return
        if worker not in self._workers:  # said before we killed it
            return
        if note is None:
            self._bury(worker, killed=False)
            return
        worker.take(note)
        if note.kind == "ready":
            self._failed_starts = 0

    def cancel(self, jobs: set[Job]) -> None:
        """Forgets jobs that have not been started."""
        for lane in self._lanes:
            kept = [job for job in lane if job not in jobs]
            lane.clear()
            lane.extend(kept)

    def close(self) -> None:
        """Kills all workers; the pool can go on with new ones."""
        _kill_all(self._workers)
        for lane in self._lanes:
            lane.clear()

    def _feed(self) -> None:
        for index, worker in enumerate(self._workers):
            while worker is None or len(worker.jobs) < _AHEAD:
                job = self._next(index)
                if job is None:
                    break
                if worker is None:
                    worker = WorkerProcess(self._limits, self._events)  # noqa: PLW2901
                    self._workers[index] = worker
                worker.give(job)

    def _next(self, index: int) -> Job | None:
        """Returns the next job of a worker's own lane, or else one of the longest other lane."""
        while lane := self._lanes[index] or max(self._lanes, key=len):
            job = lane.popleft()
            if not isinstance(job.work, ScoreJob):
                return job
            job.outcome = self._deadly_golds.get((job.work.path, job.work.gold))
            if job.outcome is None:
                return job
        return None

    def _kill_late(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker is not None and worker.deadline <= now:
                worker.kill()
                self._bury(worker, killed=True)

    def _bury(self, worker: WorkerProcess, *, killed: bool) -> None:
        """Settles the job that a dead worker was at, and hands its other jobs on."""
        failure = worker.cause_of_death(killed=killed)
        worker.kill()
        index = self._workers.index(worker)
        self._workers[index] = None
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= _STARTS:
                raise RuntimeError(f"SQL worker processes do not start: {failure.message}")
        elif worker.jobs:
            worker.jobs[0].deaths += not killed
            if killed or worker.jobs[0].deaths > _SECOND_CHANCES:
                self._settle(worker.jobs.popleft(), failure, in_gold=worker.phase == "gold")
        self._lanes[index].extendleft(reversed(worker.jobs))

    def _settle(self, job: Job, failure: Failure, *, in_gold: bool) -> None:
        if not isinstance(job.work, ScoreJob):
            job.outcome = failure
        elif in_gold:
            job.outcome = Verdict("gold_error", f"{failure.kind}: {failure.message}")
            self._deadly_golds[job.work.path, job.work.gold] = job.outcome
        else:
            job.outcome = verdict_of(failure)


def _kill_all(workers: list[WorkerProcess | None]) -> None:
    for index, worker in enumerate(workers):
        if worker is not None:
            worker.kill()
            workers[index] = None
