"""Log messages like lm-eval's."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_held: ContextVar[dict[str, logging.LogRecord] | None] = ContextVar("_held", default=None)
"""The first record of each message that this thread holds back; None while it logs at once."""


class _HoldingFilter(logging.Filter):
    """Holds records back while :func:`held_messages` is in use."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be logged now."""
        held = _held.get()
        if held is None:
            return True
        held.setdefault(record.getMessage(), record)
        return False


_holding_filter = _HoldingFilter()


def get_logger(name: str) -> logging.Logger:
    """Return a child of lm-eval's logger, so that its level and handler apply to it.

    Args:
        name: The calling module's ``__name__``.
    """
    logger = logging.getLogger(f"lm_eval.{name}")
    logger.addFilter(_holding_filter)
    return logger


@contextmanager
def held_messages() -> Iterator[dict[str, logging.LogRecord]]:
    """Hold this package's messages while the block runs, then log each of them once.

    Yields:
        The messages so far. What the block removes from them is not logged.
    """
    held: dict[str, logging.LogRecord] = {}
    token = _held.set(held)
    try:
        yield held
    finally:
        _held.reset(token)
        for record in held.values():
            logging.getLogger(record.name).handle(record)
