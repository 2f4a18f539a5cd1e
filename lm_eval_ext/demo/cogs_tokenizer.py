"""The tokenizer of cogs_mini's demonstration model, and its training set in tokens."""

import re
from typing import Any

from lm_eval_ext.benchmarks.cogs import mini

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
