"""The parent's handle of one worker process."""

import contextlib
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Literal

from lm_eval_ext.sql.messages import Note, Outcome, QueryJob, ScoreJob
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import Failure, FailureKind
from lm_eval_ext.sql.worker import EXIT_OUT_OF_MEMORY

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
