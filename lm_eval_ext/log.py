"""Log messages like lm-eval's."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _RepeatFilter(logging.Filter):
    """Drops messages that were logged before, while :func:`no_repeated_messages` is in use.

    Attributes:
        messages: Those that were logged; None while repeated ones are allowed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.messages: set[str] | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be logged."""
        if self.messages is None:
            return True
        message = record.getMessage()
        is_new = message not in self.messages
        self.messages.add(message)
        return is_new


_repeat_filter = _RepeatFilter()


def get_logger(name: str) -> logging.Logger:
    """Return a child of lm-eval's logger, so that its level and handler apply to it.

    Args:
        name: The calling module's ``__name__``.
    """
    logger = logging.getLogger(f"lm_eval.{name}")
    logger.addFilter(_repeat_filter)
    return logger


@contextmanager
def no_repeated_messages() -> Iterator[None]:
    """Log each message of this package once while the block runs, however often it comes."""
    before = _repeat_filter.messages
    _repeat_filter.messages = set()
    try:
        yield
    finally:
        _repeat_filter.messages = before
