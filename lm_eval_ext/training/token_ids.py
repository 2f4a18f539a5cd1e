"""From texts to token ids: examples with answers, running text with lost spans, and checks."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from math import ceil
from typing import TYPE_CHECKING, TypedDict

from lm_eval_ext.errors import OptionError
from lm_eval_ext.training.recipe import Pair, Spans, Training
from lm_eval_ext.training.starting import SENTINELS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

IGNORED = -100
"""Marks tokens of which no loss is computed: a causal model's prompt, and padding."""

LOST_SHARE = 0.15
"""The share of the tokens that span corruption replaces (T5, section 3.1.4)."""

SPAN_LENGTH = 3.0
"""The mean length of a lost span (T5, section 3.1.4)."""


class EncodedExample(TypedDict):
    """The token ids of an example."""

    input_ids: list[int]
    labels: list[int]


def encode_pairs(
    pairs: Sequence[Pair],
    tokenizer: "PreTrainedTokenizerBase",
    training: Training,
    *,
    is_encoder_decoder: bool,
) -> tuple[list[EncodedExample], int]:
    """Encode examples as lm-eval's ``hf`` model encodes prompts and decodes answers.

    Answers end with EOS. A causal model's prompt has no loss.

    Returns:
        The examples, and how many of them were cut to the recipe's lengths.
    """
    examples: list[EncodedExample] = []
    cut_examples = 0
    max_source, max_target = training.max_source_length, training.max_target_length
    for prompt_text, answer_text in pairs:
        prompt = tokenizer(prompt_text)["input_ids"]
        answer = tokenizer(answer_text, add_special_tokens=is_encoder_decoder)["input_ids"]
        if answer[-1:] != [tokenizer.eos_token_id]:
            answer.append(tokenizer.eos_token_id)
        if len(prompt) > max_source or len(answer) > max_target:
            cut_examples += 1
        prompt = prompt[-max_source:]  # lm-eval cuts from the left, too
        answer = answer[:max_target]
        if is_encoder_decoder:
            examples.append({"input_ids": prompt, "labels": answer})
        else:
            labels = [IGNORED] * len(prompt) + answer
            examples.append({"input_ids": prompt + answer, "labels": labels})
    return examples, cut_examples


def corrupt_text(
    texts: Iterable[str],
    tokenizer: "PreTrainedTokenizerBase",
    spans: Spans,
    block_count: int,
    seed: int,
    *,
    dev_limit: int | None = None,
) -> tuple["CorruptedBlocks", "CorruptedBlocks"]:
    """Cut running text into blocks, and corrupt them: to train on, and held out.

    Args:
        texts: Documents, in the order in which they are used; EOS stands between them.
        tokenizer: Has the sentinels ``<extra_id_0>`` and so on.
        spans: Says how much of the text is used.
        block_count: How many blocks are trained on; one that comes again is corrupted anew.
        seed: Decides what is corrupted.
        dev_limit: The most blocks that are held out and used; None for no limit.

    Raises:
        OptionError: There is less text than asked for, or the tokenizer lacks sentinels.
    """
    token_count = int(spans.tokens)
    documents = (
        [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        for text in texts
    )
    ids = list(islice(chain.from_iterable(documents), token_count))
    if len(ids) < token_count:
        raise OptionError(
            f"training.spans.tokens is {token_count:,}, and the text has {len(ids):,}: ask for "
            "fewer, or name more text"
        )
    sentinels = tokenizer.convert_tokens_to_ids(SENTINELS)
    if tokenizer.unk_token_id in sentinels:  # also None, where no token is for unknown ones
        raise OptionError(
            "training.spans needs a tokenizer with T5's sentinels, <extra_id_0> to <extra_id_99>"
        )
    starts = range(0, token_count - 1, spans.block)  # a block has two tokens or more
    blocks = [ids[start : start + spans.block] for start in starts]
    held_out = round(len(blocks) * spans.held_out)
    train_blocks = blocks[held_out:]
    passes = ceil(block_count / max(1, len(train_blocks)))
    end = tokenizer.eos_token_id
    return (
        CorruptedBlocks(train_blocks * passes, sentinels, end, seed),
        CorruptedBlocks(blocks[:held_out][:dev_limit], sentinels, end, seed),
    )


@dataclass(frozen=True)
class CorruptedBlocks(Sequence[EncodedExample]):
    """Blocks, each corrupted anew wherever it comes again.

    The index of a block alone decides what is corrupted, so that a training that resumes sees the
    same. The answer has each sentinel, followed by the tokens that it stands for.
    """

    blocks: Sequence[list[int]]
    sentinels: Sequence[int]
    eos: int
    seed: int

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, index: int) -> EncodedExample:  # type: ignore[override]
        block = self.blocks[index]
        rng = random.Random(f"{self.seed} {index}")
        lost_tokens = min(max(round(len(block) * LOST_SHARE), 1), len(block) - 1)
        kept_tokens = len(block) - lost_tokens
        span_count = max(1, min(round(lost_tokens / SPAN_LENGTH), lost_tokens, kept_tokens))
        kept_lengths = _split_total(kept_tokens, span_count, rng)
        lost_lengths = _split_total(lost_tokens, span_count, rng)
        source: list[int] = []
        answer: list[int] = []
        tokens = iter(block)
        for sentinel, kept, lost in zip(self.sentinels, kept_lengths, lost_lengths, strict=False):
            source += [*islice(tokens, kept), sentinel]
            answer += [sentinel, *islice(tokens, lost)]
        return {"input_ids": [*source, self.eos], "labels": [*answer, self.eos]}


def _split_total(total: int, count: int, rng: random.Random) -> list[int]:
    """Return random numbers from 1 that make up a total, every way equally likely."""
    cuts = [0, *sorted(rng.sample(range(1, total), count - 1)), total]
    return [after - before for before, after in pairwise(cuts)]


def tokenizer_problems(
    tokenizer: "PreTrainedTokenizerBase", pairs: Iterable[Pair]
) -> Iterator[str]:
    """Yield the answers that do not come back, and the prompts with unknown tokens."""
    unknown_tokens = {tokenizer.unk_token_id} - {tokenizer.eos_token_id}
    for prompt, answer in pairs:
        answer_ids = tokenizer(answer, add_special_tokens=False)["input_ids"]
        decoded = tokenizer.decode(answer_ids, skip_special_tokens=True)
        if decoded != answer:
            yield f"the answer {answer!r:.120} comes back as {decoded!r:.120}"
        if unknown_tokens & set(tokenizer(prompt)["input_ids"]):
            yield f"the prompt {prompt!r:.120} has unknown tokens"
