"""Log messages like lm-eval's."""

import logging


def get_logger(name: str) -> logging.Logger:
    """Return a child of lm-eval's logger, so that its level and handler apply to it.

    Args:
        name: The calling module's ``__name__``.
    """
    return logging.getLogger(f"lm_eval.{name}")
