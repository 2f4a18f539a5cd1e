"""Trains lieder_mini's demonstration model: a tiny Llama, on the CPU, in about a minute."""

import hashlib
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.lieder import mini
from lm_eval_ext.demo_model import corpus
from lm_eval_ext.demo_model.corpus import BOS_ID, EOS_ID, PAD_ID
from lm_eval_ext.demo_model.training import (
    IGNORED_LABEL,
    SEEDS,
    Settings,
    Trained,
    TrainingReport,
    check_options,
    fit,
    make,
)

DEFAULT_STEPS = 700
"""About a minute on one core. Existence and plurality comparisons of lieder_mini then come out
right in .93 or more of the groups (seeds 0 to 2), uniqueness and novelty in .75 to .94."""

CONTEXT_LENGTH = 1024
"""Tokens. Far more than training shows; room for other tasks' prompts."""

FINGERPRINT_TEXTS, HELD_OUT_TEXTS = 2000, 512
HELD_OUT_SEED_OFFSET = SEEDS
"""Added to the seed for the held-out texts; no legal seed is as large."""


def _settings(seed: int, steps: int) -> Settings:
    """Completes the settings with a digest of the texts that they lead to."""
    texts = (mini.digest(), *corpus.sentences(seed, FINGERPRINT_TEXTS))
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    return Settings(seed=seed, steps=steps, corpus_sha256=digest)


def _new_model(settings: Settings, vocabulary: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=settings.hidden_size,
        intermediate_size=3 * settings.hidden_size,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        max_position_embeddings=CONTEXT_LENGTH,
        tie_word_embeddings=True,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        pad_token_id=PAD_ID,
    )
    return LlamaForCausalLM(config)


def _loss(model: Any, batch: list[list[int]]) -> Any:
    """Mean cross entropy of the next token over a batch, in nats (a scalar tensor)."""
    import torch

    width = max(map(len, batch))
    ids = torch.tensor([row + [PAD_ID] * (width - len(row)) for row in batch])
    labels = ids.masked_fill(ids == PAD_ID, IGNORED_LABEL)
    return model(input_ids=ids, labels=labels).loss


def _held_out_loss(model: Any, tokenizer: Any, seed: int, seen: set[str]) -> float:
    import torch

    fresh = corpus.sentences(seed + HELD_OUT_SEED_OFFSET, HELD_OUT_TEXTS)
    rows = corpus.encode(tokenizer, [text for text in fresh if text not in seen])
    with torch.no_grad():
        return float(_loss(model, rows).item())


def train(
    out: Path, *, seed: int = 0, steps: int | None = None, progress: bool = True
) -> TrainingReport:
    """Trains the demonstration model and saves it where ``--model hf`` can load it.

    The same seed and steps give the same model on the same kind of processor with the same
    libraries.

    Args:
        out: The model's folder; must be absent, empty or hold this very model.
        seed: Seeds the corpus and the weights; 0 to 2**32 - 1.
        steps: Optimizer steps; :data:`DEFAULT_STEPS` where None.
        progress: Whether to show a progress bar on stderr.

    Raises:
        OptionError: A value is not legal, or ``out`` has other content or cannot be written.
    """
    steps = DEFAULT_STEPS if steps is None else steps
    check_options(seed, steps)
    settings = _settings(seed, steps)

    def trained() -> Trained:
        tokenizer = corpus.train_tokenizer(settings.vocabulary)
        texts = list(corpus.sentences(seed, steps * settings.batch_size))
        model = _new_model(settings, tokenizer.get_vocab_size())
        rows = corpus.encode(tokenizer, texts)
        size = settings.batch_size
        batches = (rows[place : place + size] for place in range(0, len(rows), size))
        losses = fit(model, batches, _loss, settings, progress=progress)
        held_out_loss = _held_out_loss(model, tokenizer, seed, set(texts))
        saved = corpus.as_pretrained(tokenizer, CONTEXT_LENGTH)
        return Trained(model, saved, losses, held_out_loss)

    return make(out, settings, trained)
