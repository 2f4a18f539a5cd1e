"""Training by transformers' Trainer: checkpoints that are whole or not there, and resuming."""

import shutil
import signal
import sys
import time
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import create_model

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.errors import OptionError
from lm_eval_ext.reading import checked
from lm_eval_ext.text import one_line
from lm_eval_ext.training.answers import processes
from lm_eval_ext.training.batches import Row
from lm_eval_ext.training.recipe import MUON, Training

WHOLE = "order.pt"
"""The last file of a checkpoint, so that one without it was cut off. It has torch's random state
from which the order of the pass was drawn."""

_KEPT = 2
"""Checkpoints at a time: while one is written, the one before is whole."""

TOLD_S, SAVED_S = 10.0, 30.0
"""Seconds between lines about the progress, and between checkpoints."""

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
    from transformers import DataCollatorForSeq2Seq, EarlyStoppingCallback, Trainer
    from transformers.trainer_callback import PrinterCallback
    from transformers.trainer_utils import get_last_checkpoint

    arguments = arguments_of(training, folder, seed, evaluates=bool(dev))
    folder.mkdir(exist_ok=True)
    for one in folder.glob("checkpoint-*"):
        if not (one / WHOLE).is_file():
            shutil.rmtree(one)
    newest = get_last_checkpoint(str(folder))
    _check_space(folder, model)
    watch, patience = _watch(newest), training.early_stopping_patience
    own = {"arguments": arguments, "rate": training.embedding_learning_rate}
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        eval_dataset=dev or None,
        data_collator=DataCollatorForSeq2Seq(tokenizer),
        callbacks=[watch] if patience is None else [watch, EarlyStoppingCallback(patience)],
        optimizer_cls_and_kwargs=((lambda: muon), own) if training.optim == MUON else None,
    )
    # T5 takes the number of tokens that a loss is to be divided by, and does not divide by it:
    # the Trainer would leave accumulated batches and processes added up.
    trainer.model_accepts_loss_kwargs = False
    trainer.remove_callback(PrinterCallback)
    before = signal.signal(signal.SIGTERM, watch.stop)
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
    if watch.stopped and state.global_step < state.max_steps:
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
    from transformers import TrainingArguments

    types, own = typing.get_type_hints(TrainingArguments), Training.model_fields
    known: Any = {name: (kind, None) for name, kind in types.items() if name not in own}
    checked(create_model("Known", __base__=_Closed, **known), dict(training), "training")
    given = {key: value for key, value in training if key in types and value is not None}
    if given["optim"] == MUON:
        del given["optim"]
    stops = training.early_stopping_patience is not None
    if stops and not evaluates:
        raise OptionError("early_stopping_patience needs a development set, and there is none")
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
        "metric_for_best_model": "loss",
        "restore_callback_states_from_checkpoint": stops,
        "disable_tqdm": not sys.stderr.isatty(),
        "seed": seed,
        "data_seed": seed,
        "use_cpu": not torch.accelerator.is_available(),
    }
    try:
        found = TrainingArguments(**usual | given)
    except (ValueError, ImportError) as error:
        raise OptionError(f"training: {one_line(str(error), limit=300)}") from None
    # Several GPUs are for accelerate launch: DataParallel would multiply the batch in silence.
    found._n_gpu = min(1, found.n_gpu)
    return found


class _Closed(Training, extra="forbid", frozen=True):
    """Refuses keys that it does not declare."""


def muon(model: Any, *, arguments: Any, rate: float | None = None) -> Any:
    """Muon for the hidden matrices, and AdamW for all other weights, which do not decay.

    Hidden matrices are neither embeddings nor the output.

    Args:
        model: Whose weights these are.
        arguments: Its ``TrainingArguments``. Rate and decay are Muon's; a step of it moves a
            matrix further than one of AdamW.
        rate: AdamW's; None is Muon's.

    Returns:
        One optimizer that steps both, so that a schedule and a checkpoint reach all weights.
    """
    import torch

    outer = [one for one in model.modules() if isinstance(one, torch.nn.Embedding)]
    taken = {id(one.weight) for one in (*outer, model.get_output_embeddings())}
    parts: dict[bool, list[Any]] = {True: [], False: []}
    for one in model.parameters():
        parts[one.dim() == 2 and id(one) not in taken].append(one)  # noqa: PLR2004
    speed = arguments.learning_rate
    first = torch.optim.Muon(parts[True], speed, weight_decay=arguments.weight_decay)
    betas = (arguments.adam_beta1, arguments.adam_beta2)
    epsilon = arguments.adam_epsilon
    second = torch.optim.AdamW(parts[False], rate or speed, betas, epsilon, 0.0, fused=True)

    class Both(torch.optim.Optimizer):  # type: ignore[misc]
        def step(self, closure: Any = None) -> None:
            for part, group in zip((first, second), self.param_groups, strict=True):
                part.param_groups, part.state = [group], self.state
                part.step()

    return Both([*first.param_groups, *second.param_groups], {})


def _watch(resumed: str | None) -> Any:
    """A callback that says how far it is, and saves by time and when it is told to stop.

    transformers' sampler draws the order of each pass from torch's random state, but the Trainer
    restores a checkpoint's state only when the order of the pass has been drawn again. So
    the state at the start of the pass is kept with each checkpoint.
    """
    import torch
    from accelerate.utils import broadcast_object_list
    from transformers import TrainerCallback

    class Watch(TrainerCallback):  # type: ignore[misc]
        order: Any = None
        first = int(resumed.rpartition("-")[2]) if resumed else 0
        started = saved = since = time.monotonic()
        told = saving = 0.0
        stopped = False

        def stop(self, *_: Any) -> None:
            self.stopped = True

        def on_train_begin(self, *_: Any, **_more: Any) -> None:
            if resumed:
                torch.set_rng_state(torch.load(Path(resumed, WHOLE), weights_only=True))

        def on_epoch_begin(self, *_: Any, **_more: Any) -> None:
            self.order = torch.get_rng_state()

        def on_step_end(self, _: Any, state: Any, control: Any, **_more: Any) -> None:
            now = self.since = time.monotonic()
            late = now - self.saved > max(SAVED_S, self.saving / _SAVING)
            # All processes must do the same.
            self.stopped, late = broadcast_object_list([self.stopped, late])
            control.should_save |= self.stopped or late
            control.should_training_stop |= self.stopped
            control.should_log |= now - self.told > TOLD_S

        def on_log(self, _: Any, state: Any, control: Any, logs: Any, **_more: Any) -> None:
            now, step, steps = time.monotonic(), state.global_step, state.max_steps
            self.since = now
            if "eval_loss" in logs:
                tell(f"step {step:,}: development loss {logs['eval_loss']:.3f}")
            elif "loss" in logs and now - self.told > TOLD_S:
                self.told = now
                left = (now - self.started) / (step - self.first) * (steps - step) / 60
                loss = f"{logs['loss']:.3f}"
                tell(f"step {step:,} of {steps:,}, loss {loss}, {left:,.1f} minutes left")

        def on_save(self, arguments: Any, state: Any, *_: Any, **_more: Any) -> None:
            processes().wait_for_everyone()
            if state.is_world_process_zero:
                checkpoint = Path(arguments.output_dir, f"checkpoint-{state.global_step}")
                # At the end of a pass the next order is drawn from the checkpoint's own state.
                ended = float(state.epoch).is_integer()
                mark_whole(checkpoint, torch.get_rng_state() if ended else self.order)
            self.saved = time.monotonic()
            self.saving = self.saved - self.since

    return Watch()


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
