"""Scores continuations and generates greedily, group by group.

A text is complete when lm-eval's ``hf`` would end it in a batch of one (:class:`Stops`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import torch

from lm_eval_ext.models.prefix.engine import BLOCK, Engine, Slots
from lm_eval_ext.models.prefix.growing import GrowingTexts
from lm_eval_ext.models.prefix.progress import TokenProgress
from lm_eval_ext.models.prefix.stops import Stops
from lm_eval_ext.models.prefix.tree import (
    BoolArray,
    IntArray,
    Leaf,
    Pack,
    group_leaves,
    lay_out,
)

Answer: TypeAlias = tuple[float, bool]
"""A log-probability, and whether greedy decoding gives the same tokens."""

READ_S = 30.0
"""Seconds in which a group should be read. A slow machine takes smaller groups, since no answer to
a request of a group comes, and can be stored, before the whole group is read."""


def packs(
    engine: Engine, leaves: Sequence[Leaf], max_tokens: int, generated: int = 0
) -> Iterator[tuple[Sequence[Leaf], Pack, Slots]]:
    """Yield groups of leaves with slots that hold what each shares with the group before.

    Args:
        engine: The model, whose speed limits a group.
        leaves: The leaves.
        max_tokens: The most new tokens of a group, with those that may be generated.
        generated: The tokens that each leaf may generate.
    """

    def readable_tokens() -> float:
        return max(BLOCK, engine.speed.tokens_per_second * READ_S)

    # Enough for what is kept of the leaf before, and a whole group.
    size = min(max_tokens, sum(leaf.added for leaf in leaves))
    slots = Slots(size + max(len(leaf.tokens) for leaf in leaves))
    path = np.arange(0)
    for group in group_leaves(leaves, max_tokens, generated, readable_tokens):
        # The prediction after a kept token is gone with the group before.
        kept = min(group[0].shared, *(leaf.first_needed for leaf in group))
        pack = lay_out(group, kept)
        slots.keep(path[:kept])
        yield group, pack, slots
        path = pack.paths[-1]


def score(
    engine: Engine,
    leaves: Sequence[Leaf],
    continuations: Sequence[Sequence[int]],
    max_tokens: int,
    softmax_dtype: torch.dtype | None,
) -> Iterator[tuple[int, Answer]]:
    """Yield ``(key, answer)`` for each request.

    Args:
        engine: The model.
        leaves: What the model reads for each request: context and continuation without its last
            token. Keys index ``continuations``.
        continuations: Their tokens.
        max_tokens: The most new tokens of a group.
        softmax_dtype: As HFLM's argument.
    """
    progress = TokenProgress("Scoring texts", sum(leaf.added for leaf in leaves))
    # Larger groups take memory and save nothing here: only generation gains by them.
    for group, pack, slots in packs(engine, leaves, max_tokens // 3):
        # A continuation's token is predicted in the slot before it.
        keys: list[int] = []
        predicting_slots: list[IntArray] = []
        for leaf, path in zip(group, pack.paths, strict=True):
            for key in leaf.keys:
                keys.append(key)
                predicting_slots.append(path[len(path) - len(continuations[key]) :])
        # All continuations are one batch of (slot, token) pairs.
        tokens = np.concatenate([np.asarray(continuations[key]) for key in keys])
        needed, rows = np.unique(np.concatenate(predicting_slots), return_inverse=True)
        logprobs, is_greedy = _score_tokens(
            engine.read(slots, pack, needed, progress), rows, tokens, softmax_dtype
        )
        begin = 0
        for key in keys:
            end = begin + len(continuations[key])
            yield key, (float(logprobs[begin:end].sum()), bool(is_greedy[begin:end].all()))
            begin = end


def _score_tokens(
    logits_parts: Iterable[torch.Tensor],
    rows: IntArray,
    tokens: IntArray,
    softmax_dtype: torch.dtype | None,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], BoolArray]:
    """Return the log-probability of each token, and whether it is the most probable one.

    Args:
        logits_parts: Logits, in parts that follow each other.
        rows: For each token, the row of all logits that predicts it.
        tokens: The tokens.
        softmax_dtype: As HFLM's argument.
    """
    logprobs = np.empty(len(tokens))
    is_greedy = np.empty(len(tokens), dtype=bool)
    begin = 0
    for logits_part in logits_parts:
        for logits in logits_part.split(BLOCK):
            chosen = (rows >= begin) & (rows < begin + len(logits))
            row = torch.from_numpy(rows[chosen] - begin).to(logits.device)
            token = torch.from_numpy(tokens[chosen]).to(logits.device)
            distribution = torch.log_softmax(logits, dim=-1, dtype=softmax_dtype)
            logprobs[chosen] = distribution[row, token].double().cpu().numpy()
            best = distribution.max(-1).indices  # the first of equal ones, as argmax, but faster
            is_greedy[chosen] = (best[row] == token).cpu().numpy()
            begin += len(logits)
    return logprobs, is_greedy


def generate(
    engine: Engine,
    leaves: Sequence[Leaf],
    max_tokens: int,
    max_slots: int,
    *,
    length: int,
    stops: Stops,
) -> Iterator[tuple[int, list[int]]]:
    """Yield each key with the tokens generated for it.

    Args:
        engine: The model.
        leaves: The prompts.
        max_tokens: The most new tokens of a group, with those that may be generated.
        max_slots: The most slots that exist at a time.
        length: The most tokens of a text.
        stops: The ends of texts.
    """
    progress = TokenProgress("Reading prompts", sum(leaf.added for leaf in leaves))
    texts = GrowingTexts(engine, length, stops, progress)
    with engine.packed.in_use():
        for group, pack, slots in packs(engine, leaves, max_tokens, length):
            # Unfinished texts go on with the new ones: a step of few texts takes nearly as long.
            run_slots = max_slots - slots.size
            while not texts.has_room(slots.size, run_slots):
                yield from texts.step()
            yield from texts.start(group, pack, slots, run_slots)
        while texts.runs:
            yield from texts.step()
