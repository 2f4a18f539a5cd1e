"""Global settings of torch and transformers, borrowed for a while and given back."""

from collections.abc import Iterator
from contextlib import contextmanager

THREADS = 1
"""A step is too small to share out: two threads gain less than half of its time on an idle
machine and, waiting for each other, cost 7 to 25 times as much on a busy one. One thread also
gives the same model whatever the number of cores."""


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Seeds torch and gives it :data:`THREADS`; afterwards both are as the caller had them.

    Args:
        seed: For :func:`torch.manual_seed`.
    """
    import torch

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(THREADS)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


@contextmanager
def no_transformers_bars() -> Iterator[None]:
    """Keeps transformers from drawing a bar of its own for the one file that it writes."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
