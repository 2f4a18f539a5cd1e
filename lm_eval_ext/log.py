"""What commands say beside their results: log messages like lm-eval's, and libraries' bars."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


def get_logger(name: str) -> logging.Logger:
    """Returns a child of lm-eval's logger, so that its level and handler apply to it.

    Args:
        name: The calling module's ``__name__``.
    """
    return logging.getLogger(f"lm_eval.{name}")


@contextmanager
def transformers_bars(*, shown: bool) -> Iterator[None]:
    """Hides transformers' progress bars, or leaves them as they are."""
    from transformers.utils import logging as switch

    hidden = not shown and switch.is_progress_bar_enabled()
    if hidden:
        switch.disable_progress_bar()
    try:
        yield
    finally:
        if hidden:
            switch.enable_progress_bar()
