"""Watches a training by transformers' Trainer: progress, checkpoints by time, and signals.

It is imported where it is used, since it loads torch and transformers.
"""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import torch
from accelerate.utils import broadcast_object_list
from transformers import TrainerCallback

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.training import progress
from lm_eval_ext.training.starting import processes

if TYPE_CHECKING:
    from torch.utils.data import DataLoader
    from transformers import PreTrainedModel, TrainerControl, TrainerState, TrainingArguments

COMPLETE = "order.pt"
"""The last file of a checkpoint, so that one without it was cut off. It has torch's random state
from which the order of the pass was drawn."""

LOG_S = 10.0
"""Seconds between losses that are logged."""

CHECKPOINT_S = 30.0
"""Seconds between checkpoints; a second more for each million of weights, since large checkpoints
take long."""


class TrainingMonitor(TrainerCallback):  # type: ignore[misc]
    """Tells how far a training is, saves by time, and stops it after a signal.

    transformers' sampler draws the order of each pass from torch's random state, but the Trainer
    restores a checkpoint's state only when the order of the pass has been drawn again. So the state
    at the start of the pass is kept with each checkpoint.

    After a signal, the step under way is ended and saved. An evaluation is not: it is repeated
    from the checkpoint before it. That is one of the step before, since the Trainer saves a step
    only when it is evaluated; but of the last step itself, which is evaluated after the Trainer
    has ended (:func:`lacks_last_evaluation`).

    Attributes:
        signal: The signal that came; None if none did.
    """

    def __init__(
        self, activity: progress.Activity, checkpoint: str | None, eval_steps: int | None
    ) -> None:
        """Begin to watch.

        Args:
            activity: Gets what is going on.
            checkpoint: The folder of the checkpoint that the training continues from; None for a
                new training.
            eval_steps: Steps between evaluations; None if nothing is evaluated.
        """
        self.signal: int | None = None
        self._activity = activity
        self._checkpoint = checkpoint
        self._eval_steps = eval_steps
        self._first_step = int(checkpoint.rpartition("-")[2]) if checkpoint else 0
        self._saved_step = self._first_step if checkpoint else None
        self._started_at = time.monotonic()
        self._logged_at = 0.0
        self._saved_at = self._started_at
        self._pass_state: torch.Tensor | None = None
        self._evaluated_batches = 0

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Stop the training on SIGTERM and SIGINT (Ctrl-C) while the block runs."""
        handlers = {}
        for number in (signal.SIGTERM, signal.SIGINT):
            # A shell ignores Ctrl-C for commands that it runs in the background.
            if signal.getsignal(number) != signal.SIG_IGN:
                handlers[number] = signal.signal(number, self._stop)
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _stop(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number
        if processes().is_main_process:
            at_once = b"; once more Ctrl-C stops at once" if number == signal.SIGINT else b""
            # Not by print, which the signal may have interrupted.
            os.write(2, b"stopping after this step" + at_once + b"\n")

    def on_epoch_begin(self, *_: object, **__: object) -> None:
        """Keep the random state that decides about the order of the pass."""
        if self._checkpoint and self._pass_state is None:
            state = torch.load(Path(self._checkpoint, COMPLETE), weights_only=True)
            torch.set_rng_state(state)
        self._pass_state = torch.get_rng_state()

    def on_step_begin(
        self, arguments: "TrainingArguments", state: "TrainerState", *_: object, **__: object
    ) -> None:
        """Note which step is under way."""
        self._activity.change(f"working on step {state.global_step + 1:,} of {state.max_steps:,}")

    def on_step_end(
        self,
        arguments: "TrainingArguments",
        state: "TrainerState",
        control: "TrainerControl",
        model: "PreTrainedModel",
        **_: object,
    ) -> None:
        """Say whether to log, to save and to stop.

        Raises:
            SystemExit: A signal came, and the step is to be evaluated.
        """
        now = time.monotonic()
        age = now - self._saved_at
        must_save = age > CHECKPOINT_S + model.num_parameters() / 1e6
        if self._is_before_evaluation(arguments, state) and (
            age > CHECKPOINT_S or self._saved_step is None
        ):
            must_save = True
        if lacks_last_evaluation(arguments, state):
            must_save = True
            control.should_evaluate = False
        # All processes must do the same.
        self.signal, must_save = broadcast_object_list([self.signal, must_save])
        if self.signal is not None:
            if control.should_evaluate:
                self._end_before_evaluation(state)
            must_save = True
            control.should_training_stop = True
        if must_save:
            control.should_save = True
        if now - self._logged_at > LOG_S:
            control.should_log = True
        self._evaluated_batches = 0
        if control.should_save:
            self._activity.change(f"writing the checkpoint of step {state.global_step:,}")

    def _is_before_evaluation(self, arguments: "TrainingArguments", state: "TrainerState") -> bool:
        """Return whether the Trainer evaluates the next step before it saves it."""
        if self._eval_steps is None:
            return False
        next_step: int = state.global_step + 1
        if next_step == state.max_steps:
            return bool(arguments.load_best_model_at_end)
        return next_step % self._eval_steps == 0

    def on_prediction_step(
        self,
        arguments: "TrainingArguments",
        state: "TrainerState",
        control: "TrainerControl",
        eval_dataloader: "DataLoader",
        **_: object,
    ) -> None:
        """Tell how far an evaluation is, and end it after a signal.

        Raises:
            SystemExit: A signal came.
        """
        self.end_after_signal(state)
        self._evaluated_batches += 1
        self._activity.change(
            f"evaluating after step {state.global_step:,}: {self._evaluated_batches:,} of "
            f"{len(eval_dataloader):,} batches"
        )

    def end_after_signal(self, state: "TrainerState") -> None:
        """End before or within an evaluation if a signal came to any of the processes.

        Raises:
            SystemExit: A signal came.
        """
        (self.signal,) = broadcast_object_list([self.signal])
        if self.signal is not None:
            self._end_before_evaluation(state)

    def _end_before_evaluation(self, state: "TrainerState") -> NoReturn:
        """End without an evaluation of this step, and say where the training continues."""
        checkpoint = "at the start"
        if self._saved_step is not None:
            checkpoint = f"at the checkpoint of step {self._saved_step:,}"
        progress.tell(
            f"stopped at the evaluation after step {state.global_step:,}; the same command "
            f"continues {checkpoint}"
        )
        raise SystemExit(128 + (self.signal or 0))

    def on_log(
        self,
        arguments: "TrainingArguments",
        state: "TrainerState",
        control: "TrainerControl",
        logs: Mapping[str, float],
        **_: object,
    ) -> None:
        """Tell the loss, and how long the training still takes."""
        step = state.global_step
        if "eval_loss" in logs:
            progress.tell(f"step {step:,}: development loss {logs['eval_loss']:.3f}")
        elif "loss" in logs:
            self._logged_at = time.monotonic()
            seconds_per_step = (self._logged_at - self._started_at) / (step - self._first_step)
            minutes_left = seconds_per_step * (state.max_steps - step) / 60
            progress.tell(
                f"step {step:,} of {state.max_steps:,}, loss {logs['loss']:.3f}, "
                f"{minutes_left:,.1f} minutes left"
            )

    def on_save(
        self, arguments: "TrainingArguments", state: "TrainerState", *_: object, **__: object
    ) -> None:
        """Complete a checkpoint."""
        processes().wait_for_everyone()
        if state.is_world_process_zero:
            checkpoint = Path(arguments.output_dir, f"checkpoint-{state.global_step}")
            # At the end of a pass, the next order is drawn from the checkpoint's own state.
            ends_pass = float(state.epoch).is_integer()
            random_state = torch.get_rng_state() if ends_pass else self._pass_state
            with atomic_path(checkpoint / COMPLETE) as unfinished:
                torch.save(random_state, unfinished)
        self._saved_at = time.monotonic()
        self._saved_step = state.global_step


def lacks_last_evaluation(arguments: "TrainingArguments", state: "TrainerState") -> bool:
    """Return whether the last step is done, and is still to be evaluated after the Trainer.

    Where the best weights of all evaluations are kept, the Trainer has to evaluate the last step
    itself, before it chooses.
    """
    is_due = (
        arguments.eval_strategy == "steps"
        and arguments.eval_delay <= state.global_step
        and not arguments.load_best_model_at_end
    )
    if not is_due or state.global_step < state.max_steps:
        return False
    for entry in state.log_history:
        if entry.get("step") == state.global_step and "eval_loss" in entry:
            return False
    return True
