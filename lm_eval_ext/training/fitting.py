"""Training by transformers' Trainer: checkpoints that are whole or not there, and resuming."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.training.answers import processes
from lm_eval_ext.training.batches import Row, collator
from lm_eval_ext.training.optimizers import with_embedding_rate, with_muon
from lm_eval_ext.training.recipe import Training

_log = get_logger(__name__)

WHOLE = "whole.json"
"""In a checkpoint: sizes of its files, written when all others are."""

_KEPT = 2
"""Checkpoints at a time: while one is written, the one before is whole."""

_LOGS = (5, 4, 3, 2, 1)
"""Points of the training curve between two evaluations: the first that divides the steps."""


def fit(
    model: Any,
    tokenizer: Any,
    *,
    rows: Sequence[Row],
    dev: Sequence[Row],
    training: Training,
    folder: Path,
    seed: int,
    ask: Callable[[Any], Mapping[str, float]],
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
        ask: Computes further scores at each evaluation, by name.

    Returns:
        The model, without wrappers, and the curve: a record for each point.

    Raises:
        OptionError: The batch cannot be shared out, the disk is full, or memory is.
    """
    import torch
    from transformers import EarlyStoppingCallback
    from transformers.trainer_callback import PrinterCallback

    if not dev and (training.patience is not None or training.keep == "best"):
        raise OptionError("patience and keep: best need a development set, and there is none")
    patience = [EarlyStoppingCallback(training.patience)] if training.patience is not None else []
    trainer = _trainer_class(training, ask)(
        model=model,
        args=_arguments(training, folder, seed, evaluates=bool(dev)),
        train_dataset=rows,
        eval_dataset=dev or None,
        data_collator=collator(tokenizer),
        callbacks=[*patience, _progress()],
    )
    # T5 takes the number of tokens that a loss is to be divided by, and does not divide by it:
    # the Trainer would leave accumulated batches and processes added up.
    trainer.model_accepts_loss_kwargs = False
    trainer.remove_callback(PrinterCallback)
    _check_space(folder, model)
    newest = newest_checkpoint(folder)
    if newest is not None:
        _log.info("resuming at %s", newest)
    try:
        trainer.train(resume_from_checkpoint=str(newest) if newest else None)
    except torch.OutOfMemoryError:
        raise OptionError(
            "the accelerator's memory is too small: raise training.accumulate, which hardly "
            "changes the result, or take precision bf16"
        ) from None
    except (OSError, RuntimeError) as error:
        raise _full(folder, error) or error from None
    curve = [dict(point) for point in trainer.state.log_history if "train_runtime" not in point]
    return trainer.accelerator.unwrap_model(trainer.model), curve


def _arguments(training: Training, folder: Path, seed: int, *, evaluates: bool) -> Any:
    """A recipe's values in transformers' words."""
    import torch
    from transformers import TrainingArguments

    count = processes().num_processes
    share, rest = divmod(training.batch_size, training.accumulate * count)
    if rest:
        raise OptionError(
            f"training.batch_size is {training.batch_size}: {count} processes and accumulate "
            f"{training.accumulate} cannot share it equally"
        )
    every = training.evaluate_every
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=training.steps or -1,
        num_train_epochs=training.epochs or 1,
        per_device_train_batch_size=share,
        per_device_eval_batch_size=share,
        gradient_accumulation_steps=training.accumulate,
        learning_rate=training.learning_rate,
        lr_scheduler_type=training.schedule,
        warmup_steps=training.warmup_steps,
        weight_decay=training.weight_decay,
        adam_beta2=training.beta2,
        max_grad_norm=training.clip,
        bf16=training.precision == "bf16",
        train_sampling_strategy="group_by_length" if training.by_length else "random",
        eval_strategy="steps" if evaluates else "no",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=_KEPT,
        logging_steps=every // next(n for n in _LOGS if every % n == 0),
        load_best_model_at_end=training.keep == "best",
        metric_for_best_model=f"eval_{training.watch}" if evaluates else None,
        greater_is_better=training.watch != "loss",
        restore_callback_states_from_checkpoint=training.patience is not None,
        remove_unused_columns=False,
        report_to=[],
        disable_tqdm=True,
        seed=seed,
        data_seed=seed,
        use_cpu=not torch.accelerator.is_available(),
    )
    # Several GPUs are for a launcher: DataParallel would multiply the batch in silence.
    arguments._n_gpu = min(1, arguments.n_gpu)

    return arguments


def _trainer_class(training: Training, ask: Callable[[Any], Mapping[str, float]]) -> Any:
    from transformers import Trainer

    class Own(Trainer):  # type: ignore[misc]
        optimizer: Any

        def create_optimizer(self, *args: Any, **kwargs: Any) -> Any:
            if self.optimizer is None:
                made = super().create_optimizer(*args, **kwargs)
                self.optimizer = _with_choices(made, self.model, training)
            return self.optimizer

        def create_scheduler(self, num_training_steps: int, *args: Any, **kwargs: Any) -> Any:
            longer = round(num_training_steps * training.schedule_length)
            return super().create_scheduler(longer, *args, **kwargs)

        def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
            output = super().evaluation_loop(*args, **kwargs)
            prefix = kwargs.get("metric_key_prefix", "eval")
            found = ask(self.accelerator.unwrap_model(self.model))
            output.metrics.update({f"{prefix}_{name}": value for name, value in found.items()})
            return output

        def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
            super()._save_checkpoint(*args, **kwargs)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                mark_whole(Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}")

    return Own


def _with_choices(adamw: Any, model: Any, training: Training) -> Any:
    """The optimizer that the recipe asks for, from the AdamW that the Trainer makes."""
    if training.embedding_rate is not None:
        adamw = with_embedding_rate(adamw, model, training.embedding_rate)
    if training.optimizer == "muon":
        return with_muon(adamw, model, training.learning_rate, training.weight_decay)
    return adamw


def _progress() -> Any:
    """A bar on a terminal, and a line for each evaluation."""
    from tqdm import tqdm
    from transformers import TrainerCallback

    class Progress(TrainerCallback):  # type: ignore[misc]
        bar: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.is_world_process_zero:
                self.bar = tqdm(
                    total=state.max_steps, initial=state.global_step, unit="step",
                    disable=not sys.stderr.isatty(), dynamic_ncols=True,
                )  # fmt: skip

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.bar is not None:
                self.bar.update(state.global_step - self.bar.n)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if self.bar is not None and logs and "loss" in logs:
                self.bar.set_postfix(loss=f"{float(logs['loss']):.3f}")

        def on_evaluate(
            self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any
        ) -> None:
            if self.bar is None or not metrics:
                return
            told = ", ".join(
                f"{name.removeprefix('eval_')} {value:.3f}"
                for name, value in metrics.items()
                if isinstance(value, float) and "_per_second" not in name and "runtime" not in name
            )
            line = f"step {state.global_step:,} of {state.max_steps:,}: {told}"
            self.bar.write(line, file=sys.stderr)

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.bar is not None:
                self.bar.close()

    return Progress()


def mark_whole(checkpoint: Path) -> None:
    """Notes that a checkpoint is complete: nothing resumes from one without the note."""
    sizes = {file.name: file.stat().st_size for file in checkpoint.iterdir() if file.is_file()}
    with atomic_text(checkpoint / WHOLE) as out:
        out.write(json.dumps(sizes, indent=1))


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint; those that were cut off are removed."""
    steps: dict[int, Path] = {}
    for checkpoint in folder.glob("checkpoint-*"):
        number = checkpoint.name.rpartition("-")[2]
        if _is_whole(checkpoint) and number.isdecimal():
            steps[int(number)] = checkpoint
        else:
            shutil.rmtree(checkpoint, ignore_errors=True)
    return steps[max(steps)] if steps else None


def _is_whole(checkpoint: Path) -> bool:
    try:
        sizes = json.loads((checkpoint / WHOLE).read_text(encoding="utf-8"))
        return bool(sizes) and all(
            (checkpoint / name).stat().st_size == size for name, size in sizes.items()
        )
    except (OSError, ValueError, AttributeError):
        return False


def _check_space(folder: Path, model: Any) -> None:
    """Refuses to begin what the disk cannot hold: checkpoints, each with the optimizer's state."""
    bytes_ = sum(one.numel() * one.element_size() for one in model.parameters())
    needed = bytes_ * (3 * (_KEPT + 1) + 1)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OptionError(
            f"{folder}: checkpoints need {needed / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free"
        )


def _full(folder: Path, error: Exception) -> OptionError | None:
    """One line where the disk is full; torch reports that in its own words."""
    import errno

    number = getattr(error, "errno", None)
    words = str(error)
    written = any(sign in words for sign in ("file write failed", "unexpected pos", "No space"))
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or written:
        return OptionError(
            f"{folder}: the disk is full; make room, and the same command continues where the "
            "last whole checkpoint ended"
        )
    return None
