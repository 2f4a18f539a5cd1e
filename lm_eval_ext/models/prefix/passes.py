"""Scores continuations and generates greedily, group by group.

When generating, the leaves of a group grow together, one token a step. A text is complete when
lm-eval's ``hf`` would end it in a batch of one (:class:`Stops`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from lm_eval_ext.models.prefix.engine import BLOCK, Blocks, Engine, Pass, Slots
from lm_eval_ext.models.prefix.tree import (
    BoolArray,
    IntArray,
    Leaf,
    Pack,
    group_leaves,
    lay_out,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Answer: TypeAlias = tuple[float, bool]
"""A log-probability, and whether greedy decoding gives the same tokens."""


class Stops:
    """The ends of a text: end-of-text tokens, and stop sequences in its last few tokens.

    Args:
        tokenizer: The model's.
        sequences: The stop sequences, the end-of-text token's name among them.
        end_tokens: Token ids after which a text is complete.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        sequences: Sequence[str],
        end_tokens: Iterable[int],
    ) -> None:
        self.tokenizer = tokenizer
        self.end_tokens = frozenset(end_tokens)
        self.by_length: dict[int, list[str]] = {}
        for sequence in sequences:
            # lm-eval looks two tokens further back than the sequence is long, since a model
            # may spell it with other tokens.
            length = len(tokenizer.encode(sequence, add_special_tokens=False)) + 2
            self.by_length.setdefault(length, []).append(sequence)

    def complete(self, texts: Sequence[Sequence[int]]) -> list[bool]:
        """Return for each text's generated tokens whether it is complete."""
        is_complete = [text[-1] in self.end_tokens for text in texts]
        for length, sequences in self.by_length.items():
            tails = self.tokenizer.batch_decode([text[-length:] for text in texts])
            for number, tail in enumerate(tails):
                if any(sequence in tail for sequence in sequences):
                    is_complete[number] = True
        return is_complete


def packs(
    leaves: Sequence[Leaf], max_tokens: int, generated: int = 0
) -> Iterator[tuple[Sequence[Leaf], Pack, Slots]]:
    """Yield groups of leaves with slots that hold what each shares with the group before."""
    # Enough for what is kept of the leaf before, and a whole group.
    size = min(max_tokens, sum(leaf.added for leaf in leaves))
    slots = Slots(size + max(len(leaf.tokens) for leaf in leaves))
    path = np.arange(0)
    for group in group_leaves(leaves, max_tokens, generated):
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
    # Larger groups take memory and save nothing here: only generation gains by them.
    for group, pack, slots in packs(leaves, max_tokens // 3):
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
            engine.read(slots, pack, needed), rows, tokens, softmax_dtype
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
    engine: Engine, leaves: Sequence[Leaf], max_tokens: int, length: int, stops: Stops
) -> Iterator[tuple[int, list[int]]]:
    """Yield each key with the tokens generated for it, at most ``length``."""
    for group, pack, slots in packs(leaves, max_tokens, length):
        texts = _generate_group(engine, slots, pack, length, stops)
        for leaf, text in zip(group, texts, strict=True):
            for key in leaf.keys:
                yield key, text


def _generate_group(
    engine: Engine, slots: Slots, pack: Pack, length: int, stops: Stops
) -> list[list[int]]:
    """Return the tokens that follow each leaf of a pack."""
    last_slots = np.array([path[-1] for path in pack.paths])  # ascending: leaves differ
    tokens = np.concatenate(
        [logits.argmax(-1).cpu().numpy() for logits in engine.read(slots, pack, last_slots)]
    )
    texts: list[list[int]] = [[] for _ in tokens]
    alive = np.arange(len(tokens))
    branches = None
    for step in range(length):
        for leaf, token in zip(alive, tokens, strict=True):
            texts[leaf].append(int(token))
        is_alive = ~np.array(stops.complete([texts[leaf] for leaf in alive]))
        alive, tokens = alive[is_alive], tokens[is_alive]
        if not len(alive) or step + 1 == length:
            break
        if branches is None:
            branches = Branches(slots, pack, length)
        logits = branches.step(engine, step, alive, tokens)
        tokens = logits.argmax(-1).cpu().numpy()
    return texts


READ = 16
"""Reading a slot takes as much time as attending to it from so many leaves."""


@dataclass(frozen=True)
class _Run:
    """Neighbouring leaves that grow, with their slots in a row.

    Attributes:
        first_leaf: The first leaf.
        end_leaf: The leaf after the last one.
        begin: The first slot that the leaves attend to.
        begin_generated: The first slot of generated tokens; each step fills one for each leaf.
        mask: Which slots each leaf attends to (leaves x slots).
        positions: The slots' positions.
    """

    first_leaf: int
    end_leaf: int
    begin: int
    begin_generated: int
    mask: torch.Tensor
    positions: torch.Tensor


class Branches:
    """The leaves of a pack that grow, in runs of neighbours, each with its slots in a row.

    After the slots that the leaves of a run attend to come those for a token of each, step by step.
    """

    def __init__(self, slots: Slots, pack: Pack, length: int) -> None:
        self.runs: list[_Run] = []
        self.depths = np.array([len(path) for path in pack.paths])
        last_slots = np.array([path[-1] for path in pack.paths])
        copied_slots: list[IntArray] = []
        begin = 0
        for first, end in divide_into_runs(pack, length, slots.size):
            attended = pack.attended(pack.starts[first], pack.starts[end])
            mask = pack.mask(last_slots[first:end], attended)
            generated_mask = np.tile(np.eye(end - first, dtype=bool), length)
            generated_positions = np.arange(length)[:, None] + self.depths[first:end]
            positions = np.concatenate([pack.positions[attended], generated_positions.ravel()])
            self.runs.append(
                _Run(
                    first_leaf=first,
                    end_leaf=end,
                    begin=begin,
                    begin_generated=begin + len(attended),
                    mask=torch.from_numpy(np.hstack([mask, generated_mask])),
                    positions=torch.from_numpy(positions),
                )
            )
            # Room for generated tokens: any slot will do, as long as it holds numbers.
            room = np.zeros(generated_mask.shape[1], dtype=np.int64)
            copied_slots += [attended, room]
            begin += len(attended) + len(room)
        self.slots = slots.copy(np.concatenate(copied_slots))

    def step(self, engine: Engine, step: int, alive: IntArray, tokens: IntArray) -> torch.Tensor:
        """Append a token to the leaves that are alive, and return their logits."""
        positions = self.depths[alive] + step
        new_slots = []
        blocks = []
        begin = 0
        for run in self.runs:
            in_run = (alive >= run.first_leaf) & (alive < run.end_leaf)
            rows = alive[in_run] - run.first_leaf
            if not len(rows):
                continue
            leaf_count = run.end_leaf - run.first_leaf
            new_slots.append(run.begin_generated + step * leaf_count + rows)
            used = run.begin_generated - run.begin + (step + 1) * leaf_count
            queries = slice(begin, begin + len(rows))
            begin += len(rows)
            blocks.append(
                Blocks(
                    queries=queries,
                    slots=slice(run.begin, run.begin + used),
                    mask=run.mask[torch.from_numpy(rows), :used][None],
                    query_positions=torch.from_numpy(positions[queries])[None],
                    slot_positions=run.positions[:used][None],
                )
            )
        return engine.forward(
            tokens,
            positions,
            Pass(
                slots=self.slots,
                new_slots=torch.from_numpy(np.concatenate(new_slots)),
                blocks=blocks,
                last_layer_blocks=blocks,
                needed=np.arange(len(alive)),
            ),
        )


def divide_into_runs(pack: Pack, length: int, max_slots: int) -> list[tuple[int, int]]:
    """Divide leaves into runs of neighbours with the least work in all.

    Args:
        pack: The leaves.
        length: The most tokens that each of them may grow by.
        max_slots: Slots that several runs may have in all, since each has a copy of its own.

    Returns:
        For each run, its first leaf and the leaf after its last one.
    """
    starts = np.array(pack.starts)
    ancestors = pack.positions[starts[:-1]]
    # The least work of all runs before a leaf, the slots that they copy, and where the last begins.
    costs, copied = np.zeros((2, len(starts)))
    begins = [0]
    for end in range(1, len(starts)):
        leaf_counts = end - np.arange(end)
        slots = ancestors[:end] + starts[end] - starts[:end] + leaf_counts * length
        candidates = costs[:end] + slots * (leaf_counts + READ)
        candidates[1:][copied[1:end] + slots[1:] > max_slots] = np.inf
        best = int(candidates.argmin())
        begins.append(best)
        costs[end] = candidates[best]
        copied[end] = copied[best] + slots[best]
    boundaries = [len(starts) - 1]
    while boundaries[-1]:
        boundaries.append(begins[boundaries[-1]])
    return list(pairwise(reversed(boundaries)))
