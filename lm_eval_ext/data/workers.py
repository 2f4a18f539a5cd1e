"""A handful of threads for many small jobs; an interruption does not wait for them."""

import queue
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

Job = TypeVar("Job")

_GRACE_S = 1.0
"""How long an interrupted program lets running jobs come to their end."""


def in_threads(
    jobs: Sequence[Job], work: Callable[[Job], None], threads: int
) -> Generator[tuple[Job, Exception | None], None, None]:
    """Does jobs in threads; yields each that ended and the exception that it raised, if any.

    Closing the iterator lets no further job start and waits for those that run. When it is
    interrupted it waits for a moment only: a silent server must not hold the program until
    its timeout, so the threads are daemons.

    Args:
        jobs: Started in this order.
        work: Is called with a job, in several threads at once.
        threads: How many at most.
    """
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Job, Exception | None]] = queue.SimpleQueue()
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                work(job)
            except Exception as error:  # noqa: BLE001 - handed to the main thread
                done.put((job, error))
            else:
                done.put((job, None))

    for job in jobs:
        waiting.put(job)
    running = [threading.Thread(target=run, daemon=True) for _ in range(min(threads, len(jobs)))]
    grace: float | None = None
    try:
        for thread in running:
            thread.start()
        for _ in jobs:
            yield done.get()
    except KeyboardInterrupt:
        grace = _GRACE_S
        raise
    finally:
        stop.set()
        for thread in running:
            if thread.ident is not None:
                thread.join(grace)
