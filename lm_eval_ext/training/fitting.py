"""Training by transformers' Trainer: checkpoints that are whole or not there, and resuming."""

import shutil
import signal
import sys
import threading
import time
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.text import one_line
from lm_eval_ext.training.answers import processes
from lm_eval_ext.training.batches import Row
from lm_eval_ext.training.optimizers import muon
from lm_eval_ext.training.recipe import MUON, Training

WHOLE = "order.pt"
"""The last file of a checkpoint, so that one without it was cut off. It has torch's random state
from which the order of the pass was drawn, or None."""

_KEPT = 2
"""Checkpoints at a time: while one is written, the one before is whole."""

TOLD_S, SAVED_S = 10.0, 30.0
"""Seconds between lines about the progress, and between checkpoints."""

_OWN = {"embedding_learning_rate", "early_stopping_patience", "max_source_length",
        "max_target_length", "spans"}  # fmt: skip
"""Keys of a recipe that ``TrainingArguments`` does not have."""

_SAVING = 0.05
"""The largest share of the time that checkpoints take."""


def tell(line: str) -> None:
    """Prints a line to stderr, once for all processes, and above a progress bar."""
    from tqdm import tqdm

    if processes().is_main_process:
        tqdm.write(line, file=sys.stderr)


def fit(
    model: Any,
    tokenizer: Any,
    *,
    rows: Sequence[Row],
    dev: Sequence[Row],
    training: Training,
    folder: Path,
    seed: int,
) -> tuple[Any, list[dict[str, float]]]:
    """Trains a model, from the newest whole checkpoint if there is one.

    On one kind of processor, with the same libraries and number of processes, a training that was
    killed and resumed ends with the same weights as one that was not.

    Args:
        model: Changed in place.
        tokenizer: Its tokenizer.
        rows: What is trained on.
        dev: What the loss on the way is computed on; may be empty.
        training: How.
        folder: For checkpoints.
        seed: Of the order of examples and of dropout.

    Returns:
        The model, without wrappers, and the curve: a record for each point.

    Raises:
        OptionError: The batch cannot be shared out, the disk is full, or memory is.
        SystemExit: SIGTERM came; there is a checkpoint of the last step.
    """
    import torch
    from transformers import DataCollatorForSeq2Seq, EarlyStoppingCallback
    from transformers.trainer_callback import PrinterCallback
    from transformers.trainer_utils import get_last_checkpoint

    arguments = arguments_of(training, folder, seed, evaluates=bool(dev))
    folder.mkdir(exist_ok=True)
    for one in folder.glob("checkpoint-*"):
        if not (one / WHOLE).is_file():
            shutil.rmtree(one)
    newest = get_last_checkpoint(str(folder))
    _check_space(folder, model)
    stop, patience = threading.Event(), training.early_stopping_patience
    trainer = _trainer_class(newest, stop)(
        model=model,
        args=arguments,
        train_dataset=rows,
        eval_dataset=dev or None,
        data_collator=DataCollatorForSeq2Seq(tokenizer),
        callbacks=[] if patience is None else [EarlyStoppingCallback(patience)],
        optimizer_cls_and_kwargs=_optimizer(training, arguments),
    )
    # T5 takes the number of tokens that a loss is to be divided by, and does not divide by it:
    # the Trainer would leave accumulated batches and processes added up.
    trainer.model_accepts_loss_kwargs = False
    trainer.remove_callback(PrinterCallback)
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        trainer.train(resume_from_checkpoint=newest)
    except torch.OutOfMemoryError:
        raise OptionError(
            "the accelerator's memory is too small: raise gradient_accumulation_steps and "
            "lower per_device_train_batch_size, which hardly changes the result, or take bf16"
        ) from None
    except (OSError, RuntimeError):  # torch says in its own words that the disk is full
        _check_space(folder, model)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    state = trainer.state
    if stop.is_set() and state.global_step < state.max_steps:
        tell(f"stopped at step {state.global_step:,}; the same command continues there")
        raise SystemExit(128 + signal.SIGTERM)
    curve = [dict(point) for point in state.log_history if "train_runtime" not in point]
    return trainer.accelerator.unwrap_model(trainer.model), curve


def arguments_of(training: Training, folder: Path, seed: int, *, evaluates: bool = True) -> Any:
    """A recipe's values as transformers' ``TrainingArguments``.

    Raises:
        OptionError: A key or value is none of theirs, processes cannot share the batch, or there
            is no development set for what needs one.
    """
    import torch
    from pydantic import TypeAdapter, ValidationError
    from transformers import TrainingArguments

    given = training.model_dump(exclude=_OWN, exclude_none=True)
    if given["optim"] == MUON:
        del given["optim"]
    known = typing.get_type_hints(TrainingArguments)
    for key, value in given.items():
        if key not in known:
            near = nearest(key, [*known, *Training.model_fields])
            raise OptionError(f"training.{key}: unknown key{near}")
        try:
            TypeAdapter(known[key]).validate_python(value)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise OptionError(f"training.{key}: {problem}, got {value!r}") from None
    stops = training.early_stopping_patience is not None
    if not evaluates and (stops or given.get("load_best_model_at_end")):
        raise OptionError(
            "early_stopping_patience and load_best_model_at_end need a development set, and there "
            "is none"
        )
    count = processes().num_processes
    shared = ("gradient_accumulation_steps", "per_device_train_batch_size")
    key = next((key for key in shared if given[key] % count == 0), "")
    if not key:
        raise OptionError(f"a batch of {training.batch}: {count} processes cannot share it")
    given[key] //= count
    usual = {
        "output_dir": str(folder),
        "per_device_eval_batch_size": given["per_device_train_batch_size"],
        "eval_strategy": "steps" if evaluates else "no",
        "save_steps": training.eval_steps,
        "save_total_limit": _KEPT,
        "logging_steps": max(1, training.eval_steps // 5),
        "metric_for_best_model": "eval_loss" if evaluates else None,
        "greater_is_better": False,
        "restore_callback_states_from_checkpoint": stops,
        "remove_unused_columns": False,
        "report_to": [],
        "disable_tqdm": not sys.stderr.isatty(),
        "seed": seed,
        "data_seed": seed,
        "use_cpu": not torch.accelerator.is_available(),
    }
    try:
        found = TrainingArguments(**{**usual, **given})
    except (TypeError, ValueError, ImportError) as error:
        raise OptionError(f"training: {one_line(str(error), limit=300)}") from None
    # Several GPUs are for accelerate launch: DataParallel would multiply the batch in silence.
    found._n_gpu = min(1, found.n_gpu)
    return found


def _optimizer(training: Training, arguments: Any) -> Any:
    """What makes Muon, as the Trainer takes it; None for an optimizer of transformers."""
    if training.optim != "muon":
        return None

    def make(model: Any) -> Any:
        from transformers import Trainer

        _, others = Trainer.get_optimizer_cls_and_kwargs(arguments, model)
        rate = arguments.learning_rate
        others["lr"] = training.embedding_learning_rate or rate
        return muon(model, rate=rate, others=others, weight_decay=arguments.weight_decay)

    return (lambda: make), {}


class _Order:
    """The orders that transformers' sampler draws, and torch's random state before the last.

    The Trainer restores the random state of the checkpoint only when the order of the pass has
    been drawn again, which is right for orders that depend on the seed alone.
    """

    def __init__(self, sampler: Any, state: Any) -> None:
        self.sampler, self.resumed, self.state = sampler, state, None

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[int]:
        import torch

        if self.resumed is not None:
            torch.set_rng_state(self.resumed)
        self.resumed, self.state = None, torch.get_rng_state()
        return iter(self.sampler)


def _trainer_class(resumed: str | None, stop: threading.Event) -> Any:
    """A Trainer that says how far it is, and saves by time and when ``stop`` is set."""
    import torch
    from accelerate.utils import broadcast_object_list
    from transformers import Trainer

    class Own(Trainer):  # type: ignore[misc]
        order: Any = None
        first = int(resumed.rpartition("-")[2]) if resumed else 0
        started = saved = time.monotonic()
        told = saving = 0.0

        def _get_train_sampler(self, *args: Any, **kwargs: Any) -> Any:
            found = super()._get_train_sampler(*args, **kwargs)
            if self.args.train_sampling_strategy == "group_by_length":
                state = torch.load(Path(resumed, WHOLE), weights_only=True) if resumed else None
                found = self.order = _Order(found, state)
            return found

        def _maybe_log_save_evaluate(self, *args: Any, **kwargs: Any) -> None:
            now, control = time.monotonic(), self.control
            asked = [stop.is_set(), now - self.saved > max(SAVED_S, self.saving / _SAVING)]
            if processes().num_processes > 1:  # all must do the same
                broadcast_object_list(asked)
            if asked[0] and not control.should_training_stop:
                stop.set()
                control.should_save = control.should_training_stop = True
            control.should_save |= asked[1]
            control.should_log |= now - self.told > TOLD_S
            super()._maybe_log_save_evaluate(*args, **kwargs)

        def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
            super().log(logs, *args, **kwargs)
            now, step, steps = time.monotonic(), self.state.global_step, self.state.max_steps
            if "eval_loss" in logs:
                tell(f"step {step:,}: development loss {logs['eval_loss']:.3f}")
            elif "loss" in logs and now - self.told > TOLD_S:
                self.told = now
                left = (now - self.started) / (step - self.first) * (steps - step) / 60
                loss = f"{logs['loss']:.3f}"
                tell(f"step {step:,} of {steps:,}, loss {loss}, {left:,.1f} minutes left")

        def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
            started = time.monotonic()
            super()._save_checkpoint(*args, **kwargs)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                # At the end of a pass the next order is drawn from the checkpoint's own state.
                inside = self.order and not float(self.state.epoch).is_integer()
                checkpoint = Path(self.args.output_dir, f"checkpoint-{self.state.global_step}")
                mark_whole(checkpoint, self.order.state if inside else None)
            self.saved = time.monotonic()
            self.saving = self.saved - started

    return Own


def mark_whole(checkpoint: Path, order: Any) -> None:
    """Notes that a checkpoint is complete: nothing resumes from one without the note."""
    import torch

    with atomic_path(checkpoint / WHOLE) as part:
        torch.save(order, part)


def _check_space(folder: Path, model: Any) -> None:
    """Refuses what the disk cannot hold: checkpoints, each with the optimizer's state."""
    bytes_ = sum(one.numel() * one.element_size() for one in model.parameters())
    held = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    needed = bytes_ * (3 * (_KEPT + 1) + 1) - held
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OptionError(
            f"{folder}: checkpoints need {needed / 1e6:,.0f} MB more, and {free / 1e6:,.0f} MB are "
            "free; make room, and the same command continues at the last whole checkpoint"
        )
