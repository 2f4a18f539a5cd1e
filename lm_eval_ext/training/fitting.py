"""Training by transformers' Trainer: its arguments, whole checkpoints, and resuming from them."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import create_model

from lm_eval_ext.errors import OptionError
from lm_eval_ext.reading import checked
from lm_eval_ext.text import one_line
from lm_eval_ext.training.progress import Activity, tell
from lm_eval_ext.training.recipe import MUON, Recipe, Training
from lm_eval_ext.training.starting import processes
from lm_eval_ext.training.token_ids import EncodedExample

if TYPE_CHECKING:
    from transformers import (
        PreTrainedModel,
        PreTrainedTokenizerBase,
        Trainer,
        TrainerState,
        TrainingArguments,
    )

    from lm_eval_ext.training.monitor import TrainingMonitor

_KEPT_CHECKPOINTS = 2
"""Checkpoints at a time: while one is written, the one before is whole."""


@dataclass(frozen=True)
class Fit:
    """A finished training.

    Attributes:
        curve: A record for each point at which a loss was computed.
        signal: The signal that came when all was done, after which the process is to end.
    """

    curve: list[dict[str, float]] = field(default_factory=list)
    signal: int | None = None


def fit(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    examples: Sequence[EncodedExample],
    dev_examples: Sequence[EncodedExample],
    recipe: Recipe,
    *,
    folder: Path,
) -> Fit:
    """Train a model, from the newest whole checkpoint if there is one.

    On one kind of processor, with the same libraries and number of processes, a training that was
    killed and resumed ends with the same weights as one that was not.

    Args:
        model: Changed in place.
        tokenizer: Its tokenizer.
        examples: Without any, nothing is trained.
        dev_examples: Their loss is computed on the way; there may be none.
        recipe: Its seed is that of the order of examples and of dropout.
        folder: For checkpoints.

    Raises:
        OptionError: The batch cannot be shared out, or the disk is full.
        SystemExit: SIGTERM or SIGINT came before the last step was evaluated; there is a
            checkpoint.
    """
    from transformers.trainer_utils import get_last_checkpoint

    from lm_eval_ext.training.monitor import TrainingMonitor, lacks_last_evaluation

    if not examples:
        return Fit()
    arguments = training_arguments(recipe, folder, has_evaluations=bool(dev_examples))
    folder.mkdir(exist_ok=True)
    _remove_incomplete_checkpoints(folder)
    newest = get_last_checkpoint(str(folder))
    _check_space(folder, model)
    _tell_of_warm_up(arguments)
    if newest:
        tell(f"continuing from {Path(newest).name}")
    eval_steps = recipe.training.eval_steps if dev_examples else None
    with Activity("beginning to train") as activity:
        monitor = TrainingMonitor(activity, newest, eval_steps)
        trainer = _trainer(
            model,
            tokenizer,
            examples=examples,
            dev_examples=dev_examples,
            training=recipe.training,
            arguments=arguments,
            monitor=monitor,
        )
        try:
            with monitor.signals():
                if newest and _is_finished(newest, recipe.training):
                    _load_checkpoint(trainer, newest)
                else:
                    trainer.train(resume_from_checkpoint=newest)
                if lacks_last_evaluation(arguments, trainer.state):
                    monitor.end_after_signal(trainer.state)
                    trainer.evaluate()
        except (OSError, RuntimeError):  # torch says in its own words that the disk is full
            _check_space(folder, model)
            raise
    state = trainer.state
    is_finished = state.global_step >= state.max_steps or _is_out_of_patience(
        state, recipe.training
    )
    if monitor.signal is not None and not is_finished:
        tell(f"stopped at step {state.global_step:,}; the same command continues there")
        raise SystemExit(128 + monitor.signal)
    # The Trainer also logs how fast it was, which is no point of the curve.
    curve = [entry for entry in state.log_history if "train_runtime" not in entry]
    return Fit(curve, monitor.signal)


def _tell_of_warm_up(arguments: "TrainingArguments") -> None:
    """Warn of a training that ends while the learning rate still rises, as short trials do."""
    steps = arguments.max_steps
    warm_up_steps = arguments.get_warmup_steps(steps)
    if 0 < steps < warm_up_steps:
        highest_rate = arguments.learning_rate * steps / warm_up_steps
        tell(
            f"the learning rate rises for {warm_up_steps:,} steps, so a training of {steps:,} "
            f"ends at {highest_rate:.2g} and learns little (--set training.warmup_steps=... "
            "chooses others)"
        )


def _is_finished(checkpoint: str, training: Training) -> bool:
    """Return whether no step is to follow the one that a checkpoint was written after."""
    state = _checkpoint_state(checkpoint)
    return state.global_step >= state.max_steps or _is_out_of_patience(state, training)


def _is_out_of_patience(state: "TrainerState", training: Training) -> bool:
    """Return whether early stopping had ended a training when its state was last saved.

    The Trainer itself forgets this when it resumes: it clears the flag by which a callback stops
    it, and the callback that counts sets the flag only after the next evaluation.
    """
    from transformers import EarlyStoppingCallback

    patience = training.early_stopping_patience
    callback_state = state.stateful_callbacks.get(EarlyStoppingCallback.__name__)
    if patience is None or callback_state is None:
        return False
    evaluations: int = callback_state["attributes"]["early_stopping_patience_counter"]
    return evaluations >= patience


def _checkpoint_state(checkpoint: str) -> "TrainerState":
    """Return how far the training of a checkpoint is."""
    from transformers import TrainerState
    from transformers.trainer import TRAINER_STATE_NAME

    return TrainerState.load_from_json(str(Path(checkpoint, TRAINER_STATE_NAME)))


def _load_checkpoint(trainer: "Trainer", checkpoint: str) -> None:
    """Load the weights and the state of a training whose steps are done.

    The Trainer itself would take one more step, unless the last one ended a pass.
    """
    trainer.state = _checkpoint_state(checkpoint)
    best_checkpoint = trainer.state.best_model_checkpoint
    if trainer.args.load_best_model_at_end and best_checkpoint is not None:
        checkpoint = best_checkpoint
    trainer._load_from_checkpoint(checkpoint)


def _remove_incomplete_checkpoints(folder: Path) -> None:
    """Remove the checkpoints that a killed process was writing."""
    from lm_eval_ext.training.monitor import COMPLETE

    for checkpoint in folder.glob("checkpoint-*"):
        if not (checkpoint / COMPLETE).is_file():
            shutil.rmtree(checkpoint)


def _trainer(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    *,
    examples: Sequence[EncodedExample],
    dev_examples: Sequence[EncodedExample],
    training: Training,
    arguments: "TrainingArguments",
    monitor: "TrainingMonitor",
) -> "Trainer":
    """Return transformers' Trainer with the optimizer and the callbacks of a recipe."""
    from transformers import DataCollatorForSeq2Seq, EarlyStoppingCallback, Trainer
    from transformers.trainer_callback import PrinterCallback

    from lm_eval_ext.training.muon import muon_optimizer

    callbacks = [monitor]
    if training.early_stopping_patience is not None:
        callbacks.append(EarlyStoppingCallback(training.early_stopping_patience))
    optimizer = None  # one by transformers' name
    if training.optim == MUON:
        optimizer = muon_optimizer(model, arguments, training.embedding_learning_rate)
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=examples,
        eval_dataset=dev_examples or None,
        data_collator=DataCollatorForSeq2Seq(tokenizer),
        callbacks=callbacks,
        optimizers=(optimizer, None),
    )
    # T5 takes the number of tokens that a loss is to be divided by, and does not divide by it:
    # the Trainer would leave accumulated batches and processes added up.
    trainer.model_accepts_loss_kwargs = False
    trainer.remove_callback(PrinterCallback)
    return trainer


def training_arguments(
    recipe: Recipe, folder: Path, *, has_evaluations: bool = True
) -> "TrainingArguments":
    """Return a recipe's values as transformers' ``TrainingArguments``.

    Raises:
        OptionError: A key or value is none of theirs, or processes cannot share the batch.
    """
    import torch
    from transformers import TrainingArguments

    training = recipe.training
    types = get_type_hints(TrainingArguments)
    _check_keys(training, types)
    values = {}
    for key, value in training:
        if key in types and value is not None and value != MUON:
            values[key] = value
    _share_batch(values, training.batch)
    defaults = {
        "output_dir": str(folder),
        "per_device_eval_batch_size": values["per_device_train_batch_size"],
        "eval_strategy": "steps" if has_evaluations else "no",
        "save_steps": training.eval_steps,
        "save_total_limit": _KEPT_CHECKPOINTS,
        "logging_steps": max(1, training.eval_steps // 5),
        "metric_for_best_model": "loss",
        "restore_callback_states_from_checkpoint": training.early_stopping_patience is not None,
        "disable_tqdm": not sys.stderr.isatty(),
        "seed": recipe.seed,
        "data_seed": recipe.seed,
        "use_cpu": not torch.accelerator.is_available(),
    }
    try:
        arguments = TrainingArguments(**{**defaults, **values})
    except (ValueError, ImportError) as error:
        raise OptionError(f"training: {one_line(str(error), limit=300)}") from None
    # Several GPUs are for accelerate launch: DataParallel would multiply the batch in silence.
    arguments._n_gpu = min(1, arguments.n_gpu)
    return arguments


def _check_keys(training: Training, types: dict[str, Any]) -> None:
    """Check the keys of a recipe that are transformers' own, and the types of their values."""
    definitions: dict[str, Any] = {key: (hint, None) for key, hint in types.items()}
    forbid_others: dict[str, Any] = {"extra": "forbid"}
    schema = create_model(
        "TrainingKeys", __base__=Training, __cls_kwargs__=forbid_others, **definitions
    )
    checked(schema, training.model_extra or {}, "training")


def _share_batch(values: dict[str, Any], batch: int) -> None:
    """Divide the batch of an optimizer step by the number of processes, in place.

    Raises:
        OptionError: It cannot be divided.
    """
    process_count = processes().num_processes
    for key in ("gradient_accumulation_steps", "per_device_train_batch_size"):
        if values[key] % process_count == 0:
            values[key] //= process_count
            return
    raise OptionError(f"a batch of {batch}: {process_count} processes cannot share it")


def _check_space(folder: Path, model: "PreTrainedModel") -> None:
    """Check that the disk can hold the checkpoints, each with the optimizer's state."""
    needed = model.get_memory_footprint() * (3 * (_KEPT_CHECKPOINTS + 1) + 1)
    needed -= sum(file.stat().st_size for file in folder.rglob("*"))
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OptionError(
            f"{folder}: checkpoints need {needed / 1e6:,.0f} MB more, and {free / 1e6:,.0f} MB are "
            "free; make room, and the same command continues at the last whole checkpoint"
        )
