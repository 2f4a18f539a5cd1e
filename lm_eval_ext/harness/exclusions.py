"""What is left out of a task's data: logged at once, or collected where several models load it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lm_eval_ext.log import get_logger

_log = get_logger(__name__)

_collected: ContextVar[dict[str, set[str]] | None] = ContextVar("_collected", default=None)
"""The notes so far, each with the tasks that it is about; None while they are logged at once."""

_task: ContextVar[str] = ContextVar("_task", default="")
"""The task that is being loaded, if it is known."""


def report_exclusion(note: str) -> None:
    """Log which documents are left out of a task, or let the caller that collects notes do it."""
    notes = _collected.get()
    if notes is None:
        _log.warning("%s", note)
    elif _task.get():
        notes.setdefault(note, set()).add(_task.get())
    else:
        notes.setdefault(note, set())


@contextmanager
def loading_task(name: str) -> Iterator[None]:
    """Take the notes for this task's while the block runs."""
    token = _task.set(name)
    try:
        yield
    finally:
        _task.reset(token)


@contextmanager
def collected_exclusions() -> Iterator[dict[str, set[str]]]:
    """Collect the notes while the block runs, instead of logging them; other messages are logged.

    Yields:
        The notes so far, each with the tasks that it is about; none if these are not known.
    """
    notes: dict[str, set[str]] = {}
    token = _collected.set(notes)
    try:
        yield notes
    finally:
        _collected.reset(token)
