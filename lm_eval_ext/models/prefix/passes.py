"""Scores continuations and generates greedily, group by group.

When generating, the leaves of a group grow together, one token a step. A text is complete when
lm-eval's ``hf`` would end it in a batch of one (:class:`Stops`).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from lm_eval_ext.models.prefix.engine import BLOCK, Blocks, Engine, Pass, Slots
from lm_eval_ext.models.prefix.tree import Array, Leaf, Pack, cut, lay_out


class Stops:
    """The ends of a text: end-of-text tokens, and stop sequences in its last few tokens.

    Args:
        tokenizer: The model's.
        sequences: The stop sequences, the end-of-text token's name among them.
        end_tokens: Token ids after which a text is complete.
    """

    def __init__(self, tokenizer: Any, sequences: Sequence[str], end_tokens: Iterable[int]) -> None:
        self.tokenizer = tokenizer
        self.end_tokens = frozenset(end_tokens)
        self.by_length: dict[int, list[str]] = {}
        for sequence in sequences:
            # lm-eval looks two tokens further back than the sequence is long, since a model
            # may spell it with other tokens.
            length = len(tokenizer.encode(sequence, add_special_tokens=False)) + 2
            self.by_length.setdefault(length, []).append(sequence)

    def complete(self, texts: Sequence[Sequence[int]]) -> list[bool]:
        """Returns for each text's generated tokens whether it is complete."""
        done = [text[-1] in self.end_tokens for text in texts]
        for length, sequences in self.by_length.items():
            tails = self.tokenizer.batch_decode([text[-length:] for text in texts])
            for number, tail in enumerate(tails):
                done[number] = done[number] or any(one in tail for one in sequences)
        return done


Answer = tuple[float, bool]


def groups(
    leaves: Sequence[Leaf], most: int, generated: int = 0
) -> Iterator[tuple[Sequence[Leaf], Pack, Slots]]:
    """Yields groups of leaves with slots that hold what each shares with the group before."""
    # Enough for what is kept of the leaf before, and a whole group.
    size = min(most, sum(len(leaf.tokens) - leaf.common for leaf in leaves))
    slots, path = Slots(size + max(len(leaf.tokens) for leaf in leaves)), np.arange(0)
    for group in cut(leaves, most, generated):
        # The prediction after a kept token is gone with the group before.
        kept = min(group[0].common, *(leaf.first for leaf in group))
        pack = lay_out(group, kept)
        slots.keep(path[:kept])
        yield group, pack, slots
        path = pack.paths[-1]


def score(
    engine: Engine,
    leaves: Sequence[Leaf],
    continuations: Sequence[Sequence[int]],
    most: int,
    softmax_dtype: torch.dtype | None,
) -> Iterator[tuple[int, Answer]]:
    """Yields ``(key, (log-probability, whether greedy decoding gives the same tokens))``.

    Args:
        engine: The model.
        leaves: What the model reads for each request: context and continuation without its last
            token. Keys index ``continuations``.
        continuations: Their tokens.
        most: New tokens of a group.
        softmax_dtype: As HFLM's argument.
    """
    # Larger groups take memory and save nothing here: only generation gains by them.
    for group, pack, slots in groups(leaves, most // 3):
        # Every continuation token is one (slot before it, token) pair; pairs of all are one batch.
        found = [
            (key, path[len(path) - len(continuations[key]) :])
            for leaf, path in zip(group, pack.paths, strict=True)
            for key in leaf.keys
        ]
        tokens = np.concatenate([np.asarray(continuations[key]) for key, _ in found])
        needed, rows = np.unique(np.concatenate([slot for _, slot in found]), return_inverse=True)
        logprobs = np.empty(len(tokens))
        greedy = np.empty(len(tokens), dtype=bool)
        done = 0
        parts = (
            part for logits in engine.read(slots, pack, needed) for part in logits.split(BLOCK)
        )
        for logits in parts:
            chosen = (rows >= done) & (rows < done + len(logits))
            row = torch.from_numpy(rows[chosen] - done).to(logits.device)
            token = torch.from_numpy(tokens[chosen]).to(logits.device)
            distribution = torch.log_softmax(logits, dim=-1, dtype=softmax_dtype)
            logprobs[chosen] = distribution[row, token].double().cpu().numpy()
            best = distribution.max(-1).indices  # the first of equal ones, as argmax, but faster
            greedy[chosen] = (best[row] == token).cpu().numpy()
            done += len(logits)
        end = 0
        for key, places in found:
            part = slice(end, end := end + len(places))
            yield key, (float(logprobs[part].sum()), bool(greedy[part].all()))


def generate(
    engine: Engine, leaves: Sequence[Leaf], most: int, length: int, stops: Stops
) -> Iterator[tuple[int, list[int]]]:
    """Yields each key with the tokens generated for it, at most ``length``."""
    for group, pack, slots in groups(leaves, most, length):
        texts = _grown(engine, slots, pack, length, stops)
        for leaf, text in zip(group, texts, strict=True):
            for key in leaf.keys:
                yield key, text


def _grown(engine: Engine, slots: Slots, pack: Pack, length: int, stops: Stops) -> list[list[int]]:
    last = np.array([path[-1] for path in pack.paths])  # ascending: leaves differ
    tokens = np.concatenate(
        [logits.argmax(-1).cpu().numpy() for logits in engine.read(slots, pack, last)]
    )
    texts: list[list[int]] = [[] for _ in tokens]
    alive = np.arange(len(tokens))
    branches = None
    for step in range(length):
        for row, token in zip(alive, tokens, strict=True):
            texts[row].append(int(token))
        going_on = ~np.array(stops.complete([texts[row] for row in alive]))
        alive, tokens = alive[going_on], tokens[going_on]
        if not len(alive) or step + 1 == length:
            break
        branches = branches or Branches(slots, pack, length)
        tokens = branches.step(engine, step, alive, tokens).argmax(-1).cpu().numpy()
    return texts


READ = 16
"""Reading a slot takes as much time as attending to it from so many leaves."""


class Branches:
    """The leaves of a pack that grow, in runs of neighbours, each with its slots in a row.

    After the slots that the leaves of a run attend to come those for a token of each, step by step.
    """

    def __init__(self, slots: Slots, pack: Pack, length: int) -> None:
        self.runs: list[tuple[int, int, int, int, torch.Tensor, torch.Tensor]] = []
        self.depths = np.array([len(path) for path in pack.paths])
        last = np.array([path[-1] for path in pack.paths])
        index: list[Array] = []
        begin = 0
        for first, end in runs_of(pack, length, slots.size):
            seen = pack.attended(pack.starts[first], pack.starts[end])
            mask = pack.mask(last[first:end], seen)
            grown = np.tile(np.eye(end - first, dtype=bool), length)
            positions = (np.arange(length)[:, None] + self.depths[first:end]).ravel()
            self.runs.append(
                (
                    first,
                    end,
                    begin,
                    begin + len(seen),
                    torch.from_numpy(np.hstack([mask, grown])),
                    torch.from_numpy(np.concatenate([pack.positions[seen], positions])),
                )
            )
            # Room: any slot will do, as long as it holds numbers.
            index += [seen, np.zeros(grown.shape[1], dtype=np.int64)]
            begin += len(seen) + grown.shape[1]
        self.slots = slots.taken(np.concatenate(index))

    def step(self, engine: Engine, step: int, alive: Array, tokens: Array) -> torch.Tensor:
        """Appends a token to the leaves that are alive; returns their logits."""
        positions = self.depths[alive] + step
        at, blocks = [], []
        done = 0
        for first, end, begin, own, mask, columns in self.runs:
            rows = alive[(alive >= first) & (alive < end)] - first
            if not len(rows):
                continue
            at.append(own + step * (end - first) + rows)
            used = own - begin + (step + 1) * (end - first)
            part = slice(done, done := done + len(rows))
            blocks.append(
                Blocks(
                    part,
                    slice(begin, begin + used),
                    mask[torch.from_numpy(rows), :used][None],
                    torch.from_numpy(positions[part])[None],
                    columns[:used][None],
                )
            )
        where = torch.from_numpy(np.concatenate(at))
        every = np.arange(len(alive))
        return engine.forward(tokens, positions, Pass(self.slots, where, blocks, blocks, every))


def runs_of(pack: Pack, length: int, room: int) -> list[tuple[int, int]]:
    """Divides leaves into runs of neighbours with the least work in all.

    Args:
        pack: The leaves.
        length: Most tokens that each of them may grow by.
        room: Slots that several runs may have in all, since each has a copy of its own.
    """
    starts = np.array(pack.starts)
    before = pack.positions[starts[:-1]]
    costs, copied = np.zeros((2, len(starts)))
    begins = [0]
    for end in range(1, len(starts)):
        count = end - np.arange(end)
        slots = before[:end] + starts[end] - starts[:end] + count * length
        every = costs[:end] + slots * (count + READ)
        every[1:][copied[1:end] + slots[1:] > room] = np.inf
        begins.append(int(every.argmin()))
        costs[end] = every[begins[end]]
        copied[end] = copied[begins[end]] + slots[begins[end]]
    ends = [len(starts) - 1]
    while ends[-1]:
        ends.append(begins[ends[-1]])
    return list(pairwise(reversed(ends)))
