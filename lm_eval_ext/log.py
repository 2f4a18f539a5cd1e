"""Log messages like lm-eval's."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _HoldingFilter(logging.Filter):
    """Holds records back while :func:`held_messages` is in use.

    Attributes:
        held: The first record of each message; None while records are logged at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, logging.LogRecord] | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be logged now."""
        if self.held is None:
            return True
        self.held.setdefault(record.getMessage(), record)
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
    before = _holding_filter.held
    held: dict[str, logging.LogRecord] = {}
    _holding_filter.held = held
    try:
        yield held
    finally:
        _holding_filter.held = before
        for record in held.values():
            logging.getLogger(record.name).handle(record)
