"""Training by transformers' Trainer: token ids, whole checkpoints, and resuming from them."""

import random
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, pairwise
from math import ceil
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import create_model

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.errors import OptionError
from lm_eval_ext.reading import checked
from lm_eval_ext.text import one_line
from lm_eval_ext.training.recipe import MUON, Pair, Recipe, Spans, Training
from lm_eval_ext.training.starting import SENTINELS, processes

WHOLE = "order.pt"
"""The last file of a checkpoint, so that one without it was cut off. It has torch's random state
from which the order of the pass was drawn."""

_KEPT = 2
"""Checkpoints at a time: while one is written, the one before is whole."""

TOLD_S, SAVED_S = 10.0, 30.0
"""Seconds between lines about the progress, and between checkpoints; a second more for each million
of weights, since large checkpoints take long."""

IGNORED = -100
"""Marks what no loss is computed on: a causal model's prompt, and padding."""

Row = dict[str, list[int]]
"""``input_ids`` and ``labels`` of an example."""

DENSITY, LENGTH = 0.15, 3.0
"""Span corruption replaces this share of the tokens, in spans of this mean length (T5,
section 3.1.4)."""


def tell(line: str) -> None:
    """Prints a line to stderr, once for all processes, and above a progress bar."""
    from tqdm import tqdm

    if processes().is_main_process:
        tqdm.write(line, file=sys.stderr)


def fit(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Row],
    dev: Sequence[Row],
    recipe: Recipe,
    *,
    folder: Path,
) -> list[dict[str, float]]:
    """Trains a model, from the newest whole checkpoint if there is one.

    On one kind of processor, with the same libraries and number of processes, a training that was
    killed and resumed ends with the same weights as one that was not.

    Args:
        model: Changed in place.
        tokenizer: Its tokenizer.
        rows: What is trained on; without any, nothing is trained.
        dev: What the loss on the way is computed on; may be empty.
        recipe: How; its seed is that of the order of examples and of dropout.
        folder: For checkpoints.

    Returns:
        The curve: a record for each point.

    Raises:
        OptionError: The batch cannot be shared out, or the disk is full.
        SystemExit: SIGTERM came; there is a checkpoint of the last step.
    """
    from transformers import DataCollatorForSeq2Seq, EarlyStoppingCallback, Trainer
    from transformers.trainer_callback import PrinterCallback
    from transformers.trainer_utils import get_last_checkpoint

    if not rows:
        return []
    training = recipe.training
    arguments = arguments_of(recipe, folder, evaluates=bool(dev))
    folder.mkdir(exist_ok=True)
    for one in folder.glob("checkpoint-*"):
        if not (one / WHOLE).is_file():
            shutil.rmtree(one)
    newest = get_last_checkpoint(str(folder))
    _check_space(folder, model)
    watch, patience = _watch(newest), training.early_stopping_patience
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        eval_dataset=dev or None,
        data_collator=DataCollatorForSeq2Seq(tokenizer),
        callbacks=[watch] if patience is None else [watch, EarlyStoppingCallback(patience)],
        optimizers=(
            muon(model, arguments, training.embedding_learning_rate)
            if training.optim == MUON
            else None,
            None,
        ),
    )
    # T5 takes the number of tokens that a loss is to be divided by, and does not divide by it:
    # the Trainer would leave accumulated batches and processes added up.
    trainer.model_accepts_loss_kwargs = False
    trainer.remove_callback(PrinterCallback)
    before = signal.signal(signal.SIGTERM, watch.stop)
    try:
        trainer.train(resume_from_checkpoint=newest)
    except (OSError, RuntimeError):  # torch says in its own words that the disk is full
        _check_space(folder, model)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    state = trainer.state
    if watch.stopped and state.global_step < state.max_steps:
        tell(f"stopped at step {state.global_step:,}; the same command continues there")
        raise SystemExit(128 + signal.SIGTERM)
    return list(state.log_history[:-1])  # without how fast it was


def arguments_of(recipe: Recipe, folder: Path, *, evaluates: bool = True) -> Any:
    """A recipe's values as transformers' ``TrainingArguments``.

    Raises:
        OptionError: A key or value is none of theirs, or processes cannot share the batch.
    """
    import torch
    from transformers import TrainingArguments

    training, types = recipe.training, get_type_hints(TrainingArguments)
    known: Any = {key: (kind, None) for key, kind in types.items()}
    closed: Any = {"extra": "forbid"}
    schema = create_model("Known", __base__=Training, __cls_kwargs__=closed, **known)
    checked(schema, training.model_extra or {}, "training")
    given = {key: value for key, value in training if key in types and value not in (None, MUON)}
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
        "restore_callback_states_from_checkpoint": training.early_stopping_patience is not None,
        "disable_tqdm": not sys.stderr.isatty(),
        "seed": recipe.seed,
        "data_seed": recipe.seed,
        "use_cpu": not torch.accelerator.is_available(),
    }
    try:
        found = TrainingArguments(**usual | given)
    except (ValueError, ImportError) as error:
        raise OptionError(f"training: {one_line(str(error), limit=300)}") from None
    # Several GPUs are for accelerate launch: DataParallel would multiply the batch in silence.
    found._n_gpu = min(1, found.n_gpu)
    return found


def muon(model: Any, arguments: Any, rate: float | None) -> Any:
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
    second = torch.optim.AdamW(
        parts[False], rate or speed, (arguments.adam_beta1, arguments.adam_beta2),
        arguments.adam_epsilon, 0.0, fused=True,
    )  # fmt: skip

    class Both(torch.optim.Optimizer):  # type: ignore[misc]
        def step(self, closure: Any = None) -> None:
            for part, group in zip((first, second), self.param_groups, strict=True):
                part.param_groups, part.state = [group], self.state
                part.step()

    return Both([*first.param_groups, *second.param_groups], {"lr": speed})


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
        started = saved = time.monotonic()
        told = 0.0
        stopped = False

        def stop(self, *_: Any) -> None:
            self.stopped = True

        def on_epoch_begin(self, *_: Any, **_more: Any) -> None:
            if resumed and self.order is None:
                torch.set_rng_state(torch.load(Path(resumed, WHOLE), weights_only=True))
            self.order = torch.get_rng_state()

        def on_step_end(self, _: Any, state: Any, control: Any, model: Any, **_more: Any) -> None:
            now = time.monotonic()
            late = now - self.saved > SAVED_S + model.num_parameters() / 1e6
            # All processes must do the same.
            self.stopped, late = broadcast_object_list([self.stopped, late])
            control.should_save |= self.stopped or late
            control.should_training_stop |= self.stopped
            control.should_log |= now - self.told > TOLD_S

        def on_log(self, _: Any, state: Any, control: Any, logs: Any, **_more: Any) -> None:
            now, step, steps = time.monotonic(), state.global_step, state.max_steps
            if "eval_loss" in logs:
                tell(f"step {step:,}: development loss {logs['eval_loss']:.3f}")
            elif "loss" in logs:
                self.told = now
                left = (now - self.started) / (step - self.first) * (steps - step) / 60
                tell(
                    f"step {step:,} of {steps:,}, loss {logs['loss']:.3f}, {left:,.1f} minutes left"
                )

        def on_save(self, arguments: Any, state: Any, *_: Any, **_more: Any) -> None:
            processes().wait_for_everyone()
            if state.is_world_process_zero:
                file = Path(arguments.output_dir, f"checkpoint-{state.global_step}", WHOLE)
                # At the end of a pass the next order is drawn from the checkpoint's own state.
                own = float(state.epoch).is_integer()
                with atomic_path(file) as part:
                    torch.save(torch.get_rng_state() if own else self.order, part)
            self.saved = time.monotonic()

    return Watch()


def _check_space(folder: Path, model: Any) -> None:
    """Refuses what the disk cannot hold: checkpoints, each with the optimizer's state."""
    needed = model.get_memory_footprint() * (3 * (_KEPT + 1) + 1)
    needed -= sum(file.stat().st_size for file in folder.rglob("*"))
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OptionError(
            f"{folder}: checkpoints need {needed / 1e6:,.0f} MB more, and {free / 1e6:,.0f} MB are "
            "free; make room, and the same command continues at the last whole checkpoint"
        )


# --- from texts to token ids ---


def encode(
    pairs: Sequence[Pair], tokenizer: Any, training: Training, *, encoder_decoder: bool
) -> tuple[list[Row], int]:
    """Token ids of examples, as lm-eval's ``hf`` model encodes prompts and decodes answers.

    Answers end with EOS. A causal model's prompt has no loss.

    Returns:
        The rows, and how many of them were cut to the recipe's lengths.
    """
    rows, cut = [], 0
    longest, most = training.max_source_length, training.max_target_length
    for source, target in pairs:
        prompt = tokenizer(source)["input_ids"]
        answer = tokenizer(target, add_special_tokens=encoder_decoder)["input_ids"]
        if answer[-1:] != [tokenizer.eos_token_id]:
            answer.append(tokenizer.eos_token_id)
        cut += len(prompt) > longest or len(answer) > most
        prompt, answer = prompt[-longest:], answer[:most]  # lm-eval cuts from the left, too
        if encoder_decoder:
            rows.append({"input_ids": prompt, "labels": answer})
        else:
            hidden = [IGNORED] * len(prompt)
            rows.append({"input_ids": prompt + answer, "labels": hidden + answer})
    return rows, cut


def corrupted(
    texts: Iterable[str], tokenizer: Any, spans: Spans, asked: int, seed: int
) -> tuple[Sequence[Row], Sequence[Row]]:
    """Blocks of running text, corrupted: to train on, and held out.

    Args:
        texts: Documents, in the order in which they are used; EOS stands between them.
        tokenizer: Has the sentinels ``<extra_id_0>`` and so on.
        spans: Says how much of the text is used.
        asked: How many blocks are trained on; one that comes again is corrupted anew.
        seed: Decides what is corrupted.

    Raises:
        OptionError: There is less text than asked for, or the tokenizer lacks sentinels.
    """
    wanted, end = int(spans.tokens), tokenizer.eos_token_id
    parts = ([*tokenizer(text, add_special_tokens=False)["input_ids"], end] for text in texts)
    ids = list(islice(chain.from_iterable(parts), wanted))
    if len(ids) < wanted:
        raise OptionError(
            f"training.spans.tokens is {wanted:,}, and the text has {len(ids):,}: ask for fewer, "
            "or name more text"
        )
    starts = range(0, wanted - 1, spans.block)  # a block has two tokens or more
    blocks = [ids[start : start + spans.block] for start in starts]
    held = round(len(blocks) * spans.held_out)
    sentinels = tokenizer.convert_tokens_to_ids(SENTINELS)
    if tokenizer.unk_token_id in sentinels:  # also None, where no token is for unknown ones
        raise OptionError(
            "training.spans needs a tokenizer with T5's sentinels, <extra_id_0> to <extra_id_99>"
        )
    kept = blocks[held:]
    passes = ceil(asked / max(1, len(kept)))
    made = partial(Corrupted, sentinels=sentinels, eos=end, seed=seed)
    return made(kept * passes), made(blocks[:held])


@dataclass(frozen=True)
class Corrupted(Sequence[Row]):
    """Blocks, each corrupted anew wherever it comes again.

    What is corrupted depends on the place alone, so that a training that resumes sees the same.
    The answer is each sentinel and what it stands for.
    """

    blocks: Sequence[list[int]]
    sentinels: Sequence[int]
    eos: int
    seed: int

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, place: Any) -> Any:
        block, rng = self.blocks[place], random.Random(f"{self.seed} {place}")
        noise = min(max(round(len(block) * DENSITY), 1), len(block) - 1)
        count = max(1, min(round(noise / LENGTH), noise, len(block) - noise))
        kept, lost = (_parts(total, count, rng) for total in (len(block) - noise, noise))
        source: list[int] = []
        answer: list[int] = []
        rest = iter(block)
        for sentinel, before, gone in zip(self.sentinels, kept, lost, strict=False):
            source += [*islice(rest, before), sentinel]
            answer += [sentinel, *islice(rest, gone)]
        return {"input_ids": [*source, self.eos], "labels": [*answer, self.eos]}


def _parts(total: int, count: int, rng: random.Random) -> list[int]:
    """Random numbers from 1 that make up a total, every way equally likely."""
    cuts = [0, *sorted(rng.sample(range(1, total), count - 1)), total]
    return [after - before for before, after in pairwise(cuts)]


def problems(tokenizer: Any, pairs: Iterable[Pair]) -> Iterator[str]:
    """What a tokenizer does wrong: answers that do not come back, prompts with unknown tokens."""
    unknown = {tokenizer.unk_token_id} - {tokenizer.eos_token_id}
    for source, target in pairs:
        answer = tokenizer(target, add_special_tokens=False)["input_ids"]
        if (back := tokenizer.decode(answer, skip_special_tokens=True)) != target:
            yield f"the answer {target!r:.120} comes back as {back!r:.120}"
        if unknown & set(tokenizer(source)["input_ids"]):
            yield f"the prompt {source!r:.120} has unknown tokens"
