"""Training the demonstration model: options, loop, folder and report."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from lm_eval_ext.atomic import atomic_folder
from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import get_logger, transformers_bars
from lm_eval_ext.training.optimizers import with_muon

_log = get_logger(__name__)

RECORD_FILE = "lm_eval_ext_demo.json"

THREADS = 1
"""A step is too small to share out: two threads gain less than half of its time on an idle
machine and, waiting for each other, cost 7 to 25 times as much on a busy one. One thread also
gives the same model whatever the number of cores."""

SEEDS = 2**32
"""Seeds are below it."""

_LAST_STEPS = 20
"""Steps whose mean loss is reported as the final one: a single batch is noisy."""

Batch = TypeVar("Batch")


class Settings(BaseModel):
    """Everything that determines the trained model; equal settings mean the same model.

    Attributes:
        version: Increases when the training procedure changes in a way that no other field shows.
        learning_rate: Peak of the one-cycle schedule.
        vocabulary: Most tokens that the tokenizer may have.
        corpus_sha256: Digest of what the model is trained and evaluated on.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[2] = 2
    seed: int
    steps: int
    batch_size: int = 24
    learning_rate: float = 0.02
    vocabulary: int = 2200
    hidden_size: int = 96
    layers: int = 2
    heads: int = 4
    corpus_sha256: str


@dataclass(frozen=True)
class TrainingReport:
    """The result of a training run.

    Attributes:
        steps: Optimizer steps.
        seconds: Wall-clock time of the run, corpus and tokenizer included.
        final_loss: Mean training loss of the last steps, in nats per token.
        held_out_loss: Loss on texts that training did not see, in nats per token.
        parameters: Number of weights.
        reused: True where the folder already held this model and nothing was trained; the
            other numbers are then those of the run that trained it.
    """

    steps: int
    seconds: float
    final_loss: float
    held_out_loss: float
    parameters: int
    reused: bool = False


class Record(BaseModel):
    """The content of ``lm_eval_ext_demo.json``: what the model was made from, and the report."""

    settings: Settings
    report: TrainingReport


@dataclass(frozen=True)
class Trained:
    """A model with its tokenizer, as transformers saves them, and its losses in nats per token."""

    model: Any
    tokenizer: Any
    losses: list[float]
    held_out_loss: float


def check_options(seed: int, steps: int) -> None:
    """Checks the options before training.

    Raises:
        OptionError: A value is not legal.
    """
    if steps < 1:
        raise OptionError(f"steps is {steps}: it must be at least 1")
    if not 0 <= seed < SEEDS:
        raise OptionError(f"seed is {seed}: it must be from 0 to {SEEDS - 1}")


def make(out: Path, settings: Settings, train: Callable[[], Trained]) -> TrainingReport:
    """Trains a model into a folder, or finds that the folder already holds it.

    The folder gets its name at the end; an error or an interruption leaves nothing. Torch's
    seed and threads are afterwards as the caller had them.

    Args:
        out: The model's folder; must be absent, empty or hold this very model.
        settings: What the model is made from.
        train: Does the training; torch is seeded.

    Returns:
        The report of the run; where ``out`` already held the model, of the run that trained it.

    Raises:
        OptionError: ``out`` has other content, which is left unchanged, or cannot be written.
    """
    out = out.expanduser().resolve()
    if report := _existing(out, settings):
        _log.info("%s already holds this model: nothing to train", out)
        return report
    start = time.monotonic()
    # Made before training, which takes a minute, so that a wrong path is reported at once.
    with atomic_folder(out) as folder:
        with _reproducible(settings.seed):
            trained = train()
        last = trained.losses[-_LAST_STEPS:]
        report = TrainingReport(
            steps=len(trained.losses),
            seconds=time.monotonic() - start,
            final_loss=sum(last) / len(last),
            held_out_loss=trained.held_out_loss,
            parameters=trained.model.num_parameters(),
        )
        trained.tokenizer.save_pretrained(folder)
        with transformers_bars(shown=False):
            trained.model.save_pretrained(folder)
        record = Record(settings=settings, report=report)
        (folder / RECORD_FILE).write_text(record.model_dump_json(indent=2), encoding="utf-8")
    return report


def _existing(out: Path, settings: Settings) -> TrainingReport | None:
    """Returns the report of the model that ``out`` holds, or None if ``out`` is free."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    remedy = "nothing was changed; name another folder or remove this one first"
    if not out.is_dir():
        raise OptionError(f"{out} exists and is not a folder: {remedy}")
    try:
        record = Record.model_validate_json((out / RECORD_FILE).read_bytes())
    except (OSError, ValidationError):
        raise OptionError(f"{out} exists and is not a demonstration model: {remedy}") from None
    if record.settings != settings:
        made = f"seed {record.settings.seed}, {record.settings.steps} steps"
        raise OptionError(
            f"{out} holds a demonstration model made from other settings or by another "
            f"version ({made}): {remedy}"
        )
    return replace(record.report, reused=True)


@contextmanager
def _reproducible(seed: int) -> Iterator[None]:
    """Seeds torch and gives it :data:`THREADS`; afterwards both are as the caller had them."""
    import torch

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(THREADS)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def fit(
    model: Any,
    batches: Iterable[Batch],
    loss_of: Callable[[Any, Batch], Any],
    settings: Settings,
    *,
    progress: bool,
) -> list[float]:
    """Trains with one batch per step: matrices by Muon, embeddings and the rest by AdamW.

    In as many steps Muon learns about twice as much as AdamW alone here, for a quarter more time.

    Args:
        model: Changed in place.
        batches: At least as many as there are steps.
        loss_of: Returns the loss of a batch, a scalar tensor.
        settings: Steps and learning rate.
        progress: Whether to show a bar with the loss and the time left.

    Returns:
        The loss of every step, in nats per token.
    """
    import torch
    from tqdm import tqdm

    rate, steps = settings.learning_rate, settings.steps
    optimizer = with_muon(
        torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.98)), model, rate
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps + 1, pct_start=0.1, cycle_momentum=False
    )
    losses = []
    model.train()
    bar = tqdm(range(steps), desc="training", unit="step", disable=not progress)
    for _, batch in zip(bar, batches, strict=False):
        loss = loss_of(model, batch)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
    model.eval()
    return losses
