"""Global settings of torch and transformers, borrowed for a while and given back.

What the demonstration models' trainings share: legal options, the loop, the report.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from lm_eval_ext.demo_model.checkpoint import Settings, TrainingReport
from lm_eval_ext.errors import OptionError

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


IGNORED_LABEL = -100
"""Marks padding for torch's cross entropy."""

SEEDS = 2**32
"""Seeds are below it."""

_LAST_STEPS = 20
"""Steps whose mean loss is reported as the final one: a single batch is noisy."""

Batch = TypeVar("Batch")


def check_options(seed: int, steps: int) -> None:
    """Refuses what cannot be trained with.

    Raises:
        OptionError: A value is not legal.
    """
    if steps < 1:
        raise OptionError(f"steps is {steps}: it must be at least 1")
    if not 0 <= seed < SEEDS:
        raise OptionError(f"seed is {seed}: it must be from 0 to {SEEDS - 1}")


def fit(
    model: Any,
    batches: Iterable[Batch],
    loss_of: Callable[[Any, Batch], Any],
    settings: Settings,
    *,
    progress: bool,
) -> list[float]:
    """Trains with one batch per step.

    Args:
        model: Changed in place.
        batches: At least as many as there are steps.
        loss_of: From model and batch to the loss, a scalar tensor.
        settings: Steps and learning rate.
        progress: Whether to show a bar with the loss and the time left.

    Returns:
        The loss of every step, in nats per token.
    """
    import torch
    from tqdm import tqdm

    optimizer = torch.optim.AdamW(model.parameters(), settings.learning_rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, settings.learning_rate, total_steps=settings.steps + 1, pct_start=0.1
    )
    losses = []
    model.train()
    bar = tqdm(range(settings.steps), desc="training", unit="step", disable=not progress)
    for _, batch in zip(bar, batches, strict=False):
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
    model.eval()
    return losses


def report_of(
    model: Any, losses: list[float], held_out_loss: float, start: float
) -> TrainingReport:
    """What a training came to that began at ``start`` (``time.monotonic``)."""
    last = losses[-_LAST_STEPS:]
    return TrainingReport(
        steps=len(losses),
        seconds=time.monotonic() - start,
        final_loss=sum(last) / len(last),
        held_out_loss=held_out_loss,
        parameters=model.num_parameters(),
    )
