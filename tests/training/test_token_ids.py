"""Tokens of examples: corrupted spans of running text, and prompts with their answers."""

import random
from collections.abc import Sequence

from lm_eval_ext.training import token_ids
from lm_eval_ext.training.recipe import Material, NewTokenizer, Training
from lm_eval_ext.training.starting import new_tokenizer

FIRST_SENTINEL = 900
SENTINELS = range(FIRST_SENTINEL, 1000)


def restored(source: Sequence[int], answer: Sequence[int]) -> list[int]:
    """Put the spans of an answer back where their sentinels are in the source."""
    spans: dict[int, list[int]] = {}
    sentinel = answer[0]
    for token in answer:
        if token in SENTINELS:
            sentinel = token
            spans[sentinel] = []
        else:
            spans[sentinel].append(token)
    block: list[int] = []
    for token in source:
        block.extend(spans.get(token, [token]))
    return block


def test_spans_lose_nothing() -> None:
    """Putting the spans back gives the block, for any block; some 15 % of it are in spans."""
    rng = random.Random(1)
    blocks = [[rng.randrange(100) for _ in range(length)] for length in [*range(2, 40), 512]]
    corrupted = token_ids.CorruptedBlocks(blocks, SENTINELS, 1, 0)
    in_spans = 0
    for block, row in zip(blocks, corrupted, strict=True):
        source, answer = row["input_ids"][:-1], row["labels"][:-1]
        sentinels = [token for token in answer if token in SENTINELS]
        assert sentinels == list(SENTINELS)[: len(sentinels)], len(block)
        assert restored(source, answer) == block, len(block)
        in_spans += len(answer) - len(sentinels)
    assert 0.14 < in_spans / sum(map(len, blocks)) < 0.17


def test_a_causal_prompt_has_no_loss_and_a_long_one_loses_its_start() -> None:
    """Tokens of prompts are masked; eight of them are kept, and the answer whole."""
    tokenizer = new_tokenizer(NewTokenizer(), Material([("a b", "c")]), is_encoder_decoder=False)
    training = Training(learning_rate=1, eval_steps=1, max_source_length=8)
    pairs = [("a b", "c"), ("a a b b b b b b b", "c")]
    rows, shortened = token_ids.encode_pairs(pairs, tokenizer, training, is_encoder_decoder=False)
    vocabulary = tokenizer.get_vocab()
    a, b, c = vocabulary["a"], vocabulary["b"], vocabulary["c"]
    end = tokenizer.eos_token_id
    assert rows[0] == {"input_ids": [a, b, c, end], "labels": [-100, -100, c, end]}
    assert rows[1]["input_ids"] == [a, b, b, b, b, b, b, b, c, end]
    assert shortened == 1
