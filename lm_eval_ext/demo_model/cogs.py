"""Trains cogs_mini's demonstration model: a tiny encoder-decoder, on the CPU, in about a minute.

It shows how COGS is evaluated with a model that is fine-tuned, here from scratch: sentences in,
logical forms out. A T5, whose positions are relative: lm-eval pads sentences on the left, which
moves the positions of models that count from the start, such as BART.
"""

import hashlib
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.cogs import mini
from lm_eval_ext.demo_model.training import (
    IGNORED_LABEL,
    Settings,
    Trained,
    TrainingReport,
    check_options,
    fit,
    make,
)

DEFAULT_STEPS = 1700
"""About a minute on one core."""

BUCKET = 16
"""Batches are cut from this many sorted by length, so that little is padding."""

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


def _vocabulary() -> list[str]:
    """Every token, sorted: those of the training set, and all variables."""
    examples = mini.examples("train")
    texts = [text for example in examples for text in (example.sentence, example.form)]
    seen = {token for text in texts for token in re.findall(TOKEN, text)}
    variables = {f"x _ {place} {mark}" for place in range(VARIABLES) for mark in ",)"}
    return [PAD, EOS, UNKNOWN, *sorted(seen | variables)]


def _tokenizer(vocabulary: list[str]) -> Any:
    """Whole words; decoding joins them by spaces, which is exact for COGS."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(TOKEN), "removed", invert=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}", special_tokens=[(EOS, EOS_ID)]
    )
    return tokenizer


def _as_pretrained(tokenizer: Any) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
    )


def _encode(tokenizer: Any, split: str) -> list[Row]:
    return [
        (tokenizer.encode(example.sentence).ids, tokenizer.encode(example.form).ids)
        for example in mini.examples(split)
    ]


def train(
    out: Path, *, seed: int = 0, steps: int | None = None, progress: bool = True
) -> TrainingReport:
    """Trains the model and saves it where ``--model hf`` can load it.

    Arguments and errors are those of :func:`lm_eval_ext.demo_model.lieder.train`. The held-out
    loss of the report is that of cogs_mini's ``dev``.
    """
    steps = DEFAULT_STEPS if steps is None else steps
    check_options(seed, steps)
    vocabulary = _vocabulary()
    settings = _settings(seed, steps, vocabulary)

    def trained() -> Trained:
        import torch

        tokenizer = _tokenizer(vocabulary)
        model = _new_model(settings)
        batches = _batches(_encode(tokenizer, "train"), settings)
        losses = fit(model, batches, _loss, settings, progress=progress)
        with torch.no_grad():
            held_out_loss = float(_loss(model, _encode(tokenizer, "dev")).item())
        return Trained(model, _as_pretrained(tokenizer), losses, held_out_loss)

    return make(out, settings, trained)


def _settings(seed: int, steps: int, vocabulary: list[str]) -> Settings:
    digest = hashlib.sha256("\n".join(("cogs", mini.digest(), *vocabulary)).encode())
    return Settings(
        seed=seed, steps=steps, batch_size=24, learning_rate=3e-3,
        vocabulary=len(vocabulary), hidden_size=64, layers=2, corpus_sha256=digest.hexdigest(),
    )  # fmt: skip


def _new_model(settings: Settings) -> Any:
    """A randomly initialised T5, with exact short distances and smaller weights than usual."""
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
