"""The demonstration model: a tiny encoder-decoder, trained on the CPU in about two minutes.

A T5, whose positions are relative: lm-eval pads prompts on the left, which moves the positions of
models that count from the start, such as BART.
"""

import hashlib
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lm_eval_ext.demo_model import corpus
from lm_eval_ext.demo_model.corpus import BOS, EOS, EOS_ID, PAD, PAD_ID, Row
from lm_eval_ext.demo_model.training import (
    SEEDS,
    Settings,
    Trained,
    TrainingReport,
    check_options,
    fit,
    make,
)
from lm_eval_ext.training.batches import IGNORED, padded
from lm_eval_ext.training.starting import as_pretrained

DEFAULT_STEPS = 900
"""About two minutes on one core, or 119 s of a busy one's time."""

FINGERPRINT_TEXTS, HELD_OUT_TEXTS = 2000, 256
HELD_OUT_SEED_OFFSET = SEEDS
"""Added to the seed for the held-out texts; no legal seed is as large."""

BUCKET = 16
"""Batches are cut from this many sorted by length, so that little is padding."""

LONGEST = 512
"""Tokens that lm-eval lets a prompt have."""


def train(
    out: Path, *, seed: int = 0, steps: int = DEFAULT_STEPS, progress: bool = True
) -> TrainingReport:
    """Trains the demonstration model and saves it where ``--model hf`` can load it.

    The same seed and steps give the same model on the same kind of processor with the same
    libraries.

    Args:
        out: The model's folder; must be absent, empty or hold this very model.
        seed: Seeds the texts and the weights; 0 to 2**32 - 1.
        steps: Optimizer steps.
        progress: Whether to show a progress bar on stderr.

    Raises:
        OptionError: A value is not legal, or ``out`` has other content or cannot be written.
    """
    check_options(seed, steps)
    drawn = map(repr, islice(corpus.texts(seed), FINGERPRINT_TEXTS))
    digest = hashlib.sha256("\n".join(drawn).encode()).hexdigest()
    settings = Settings(seed=seed, steps=steps, corpus_sha256=digest)

    def trained() -> Trained:
        import torch

        tokenizer = corpus.train_tokenizer(settings.vocabulary)
        model = _new_model(settings)

        def rows(seed: int) -> Iterator[Row]:
            return (corpus.encode(tokenizer, text) for text in corpus.texts(seed))

        losses = fit(model, _batches(rows(seed), settings), loss, settings, progress=progress)
        held_out = list(islice(rows(seed + HELD_OUT_SEED_OFFSET), HELD_OUT_TEXTS))
        with torch.no_grad():
            held_out_loss = float(loss(model, held_out).item())
        wrapped = as_pretrained(tokenizer, LONGEST, pad_token=PAD, eos_token=EOS, bos_token=BOS)
        return Trained(model, wrapped, losses, held_out_loss)

    return make(out, settings, trained)


def loss(model: Any, rows: Sequence[Row]) -> Any:
    """Mean cross entropy of the answers' tokens, in nats (a scalar tensor)."""
    ids = padded([prompt for prompt, _ in rows], PAD_ID)
    labels = padded([answer for _, answer in rows], IGNORED)
    return model(input_ids=ids, attention_mask=(ids != PAD_ID).long(), labels=labels).loss


def _new_model(settings: Settings) -> Any:
    """A randomly initialised T5, with exact short distances and smaller weights than usual."""
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=settings.vocabulary, d_model=settings.hidden_size,
            d_kv=settings.hidden_size // settings.heads, d_ff=2 * settings.hidden_size,
            num_layers=settings.layers, num_decoder_layers=settings.layers,
            num_heads=settings.heads, dropout_rate=0.0, initializer_factor=0.5,
            relative_attention_num_buckets=128, relative_attention_max_distance=128,
            decoder_start_token_id=PAD_ID, pad_token_id=PAD_ID, eos_token_id=EOS_ID,
        )
    )  # fmt: skip


def _batches(rows: Iterator[Row], settings: Settings) -> Iterator[Sequence[Row]]:
    """Batches of rows of similar length, in random order."""
    rng = random.Random(f"demonstration batches {settings.seed}")
    size = settings.batch_size
    while pool := sorted(islice(rows, size * BUCKET), key=lambda row: sum(map(len, row))):
        cut = [pool[place : place + size] for place in range(0, len(pool), size)]
        rng.shuffle(cut)
        yield from cut
