"""The tokenizer of cogs_mini's demonstration model, and its training set in tokens.

Trains a tiny encoder-decoder on cogs_mini's training set, on the CPU, in about a minute.

It shows COGS's way with a model that is fine-tuned, here from nothing: sentences in, logical
forms out. A T5, whose positions are relative: lm-eval pads sentences on the left, which moves
the positions of models that count from the start, such as BART.
"""

import hashlib
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.cogs import mini
from lm_eval_ext.demo_model import checkpoint
from lm_eval_ext.demo_model.checkpoint import Settings, TrainingReport
from lm_eval_ext.demo_model.fitting import (
    IGNORED_LABEL,
    check_options,
    fit,
    no_transformers_bars,
    report_of,
    reproducible,
)
from lm_eval_ext.log import get_logger

_log = get_logger(__name__)


PAD, EOS, UNKNOWN = "<pad>", "</s>", "<unk>"
PAD_ID, EOS_ID = 0, 1

TOKEN = r"x _ [0-9]+ [,)]|\. [a-z]+ \(|\S+"
"""A word, or what always goes together in a logical form: fewer steps, and as exact."""

VARIABLES = 48
"""Places that variables have tokens for."""

LONGEST = 512
"""Tokens that lm-eval lets a sentence have."""

Row = tuple[list[int], list[int]]
"""The tokens of a sentence and of its logical form."""


def vocabulary_of_mini() -> list[str]:
    """Every token, sorted: those of the training set, and all variables."""
    examples = mini.examples("train")
    texts = [text for example in examples for text in (example.sentence, example.form)]
    seen = {token for text in texts for token in re.findall(TOKEN, text)}
    variables = {f"x _ {place} {mark}" for place in range(VARIABLES) for mark in ",)"}
    return [PAD, EOS, UNKNOWN, *sorted(seen | variables)]


def tokenizer_of(vocabulary: list[str]) -> Any:
    """Whole words; decoding joins them by spaces, which is exact for COGS."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(TOKEN), "removed", invert=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}", special_tokens=[(EOS, EOS_ID)]
    )
    return tokenizer


def as_pretrained(tokenizer: Any) -> Any:
    """Wraps it as transformers saves and loads it."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
    )


def encode(tokenizer: Any, split: str) -> list[Row]:
    """The examples of a split of cogs_mini."""
    return [
        (tokenizer.encode(example.sentence).ids, tokenizer.encode(example.form).ids)
        for example in mini.examples(split)
    ]


__all__ = ["DEFAULT_STEPS", "train"]

DEFAULT_STEPS = 1700
"""About a minute on one core."""

BUCKET = 16
"""Batches are cut from this many sorted by length, so that little is padding."""

logger = get_logger(__name__)


def train(
    out: Path, *, seed: int = 0, steps: int | None = None, progress: bool = True
) -> TrainingReport:
    """Trains the model and saves it where ``--model hf`` can load it.

    Nothing is written before training ends, and then all at once. The same seed and steps give
    the same model on the same kind of processor with the same libraries.

    Args:
        out: The model's folder; must be absent, empty or hold this very model.
        seed: Seeds the order of examples and the weights; 0 to 2**32 - 1.
        steps: Optimizer steps; :data:`DEFAULT_STEPS` where None.
        progress: Whether to show a progress bar on stderr.

    Returns:
        What the run came to; its held-out loss is that of cogs_mini's ``dev``.

    Raises:
        OptionError: A value is not legal, or ``out`` is something else or cannot be written.
    """
    steps = DEFAULT_STEPS if steps is None else steps
    check_options(seed, steps)
    out = out.expanduser().resolve()
    vocabulary = vocabulary_of_mini()
    settings = _settings(seed, steps, vocabulary)
    if found := checkpoint.find(out, settings):
        logger.info("%s already holds this model: nothing to train", out)
        return found
    checkpoint.check_destination(out)

    import tokenizers
    import torch
    import transformers

    start = time.monotonic()
    with reproducible(seed):
        tokenizer = tokenizer_of(vocabulary)
        model = _new_model(settings)
        batches = _batches(encode(tokenizer, "train"), settings)
        losses = fit(model, batches, _loss, settings, progress=progress)
        with torch.no_grad():
            held_out_loss = float(_loss(model, encode(tokenizer, "dev")).item())
    report = report_of(model, losses, held_out_loss, start)
    made_with = {
        module.__name__: module.__version__ for module in (tokenizers, torch, transformers)
    }

    def write(folder: Path) -> None:
        as_pretrained(tokenizer).save_pretrained(folder)
        with no_transformers_bars():
            model.save_pretrained(folder)

    return checkpoint.publish(out, settings, report, made_with, write)


def _settings(seed: int, steps: int, vocabulary: list[str]) -> Settings:
    digest = hashlib.sha256("\n".join(("cogs", mini.digest(), *vocabulary)).encode())
    return Settings(
        seed=seed, steps=steps, batch_size=24, learning_rate=3e-3,
        vocabulary=len(vocabulary), hidden_size=64, layers=2, corpus_sha256=digest.hexdigest(),
    )  # fmt: skip


def _new_model(settings: Settings) -> Any:
    """A T5 from nothing, with near places told apart exactly and smaller weights than usual."""
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=settings.vocabulary, d_model=settings.hidden_size,
            d_kv=settings.hidden_size // settings.heads, d_ff=2 * settings.hidden_size,
            num_layers=settings.layers, num_decoder_layers=settings.layers,
            num_heads=settings.heads, dropout_rate=0.0, initializer_factor=0.5,
            relative_attention_num_buckets=64, relative_attention_max_distance=64,
            decoder_start_token_id=PAD_ID, pad_token_id=PAD_ID, eos_token_id=EOS_ID,
        )
    )  # fmt: skip


def _batches(rows: list[Row], settings: Settings) -> Iterator[list[Row]]:
    """Batches of rows of similar length, without end."""
    rng = random.Random(f"cogs demonstration {settings.seed}")
    size = settings.batch_size
    while True:
        order = rng.sample(rows, len(rows))
        batches = []
        for start in range(0, len(order), size * BUCKET):
            alike = sorted(order[start : start + size * BUCKET], key=lambda row: len(row[1]))
            batches += [alike[place : place + size] for place in range(0, len(alike), size)]
        rng.shuffle(batches)
        yield from batches


def _loss(model: Any, rows: list[Row]) -> Any:
    """Mean cross entropy of the logical forms' tokens, in nats (a scalar tensor)."""
    import torch

    def padded(members: list[list[int]], value: int) -> Any:
        width = max(map(len, members))
        return torch.tensor([ids + [value] * (width - len(ids)) for ids in members])

    ids = padded([sentence for sentence, _ in rows], PAD_ID)
    labels = padded([form for _, form in rows], IGNORED_LABEL)
    return model(input_ids=ids, attention_mask=(ids != PAD_ID).long(), labels=labels).loss
