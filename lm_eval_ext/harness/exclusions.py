"""What is left out of a task's data: logged at once, or collected where several models load it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lm_eval_ext.log import get_logger

_log = get_logger(__name__)

_collected: ContextVar[list[str] | None] = ContextVar("_collected", default=None)
"""The notes so far; None while they are logged at once."""


def report_exclusion(note: str) -> None:
    """Log which documents are left out of a task, or let the caller that collects notes do it."""
    notes = _collected.get()
    if notes is None:
        _log.warning("%s", note)
    elif note not in notes:
        notes.append(note)


@contextmanager
def collected_exclusions() -> Iterator[list[str]]:
    """Collect the notes while the block runs, instead of logging them; other messages are logged.

    Yields:
        The notes so far, each once.
    """
    notes: list[str] = []
    token = _collected.set(notes)
    try:
        yield notes
    finally:
        _collected.reset(token)
