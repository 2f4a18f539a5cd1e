"""Texts that grow together, by one token a step.

The leaves of a group grow in runs of neighbours (:func:`divide_into_runs`). Each run has a copy of
the keys and values that its leaves attend to, so the next group may be computed while it grows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from lm_eval_ext.models.prefix.engine import Blocks, Engine, Pass, Slots, Write
from lm_eval_ext.models.prefix.stops import Stops
from lm_eval_ext.models.prefix.tree import Leaf, Pack
from lm_eval_ext.text import counted

ENOUGH_TEXTS = 128
"""While so many texts grow, the next group waits: matrix products gain little by more rows."""

READ = 16
"""Reading a slot takes as much time as attending to it from so many leaves."""


@dataclass
class GrowingText:
    """What follows a leaf.

    Attributes:
        leaf: The prompt.
        tokens: The generated tokens, one or more.
    """

    leaf: Leaf
    tokens: list[int]

    @property
    def position(self) -> int:
        """The position of the last token."""
        return len(self.leaf.tokens) + len(self.tokens) - 1


class Run:
    """Neighbouring leaves that grow, with their keys and values.

    After the slots that the leaves attend to come those of generated tokens, step by step: one for
    each text that still grows.

    Args:
        slots: Keys and values of the leaves' tokens.
        pack: The slots of the leaves' group.
        first: The first leaf.
        texts: The texts of the leaves from there on, each with its first token.
        length: The most tokens of a text.
    """

    def __init__(
        self,
        slots: Slots,
        pack: Pack,
        first: int,
        texts: Sequence[GrowingText],
        length: int,
    ) -> None:
        end = first + len(texts)
        attended = pack.attended(pack.starts[first], pack.starts[end])
        last_slots = np.array([path[-1] for path in pack.paths[first:end]])
        self.texts = list(texts)
        self.slots = slots.copy(attended, len(texts) * length)
        self._mask = torch.from_numpy(pack.mask(last_slots, attended))
        self._positions = torch.from_numpy(pack.positions[attended])

    def keep(self, is_growing: Sequence[bool]) -> None:
        """Leave out the texts that are complete."""
        if all(is_growing):
            return
        kept = np.flatnonzero(is_growing)
        self.texts = [self.texts[number] for number in kept]
        self._mask = self._mask[torch.from_numpy(kept)]

    def add_step(self, first_query: int) -> tuple[Write, Blocks]:
        """Give each text's last token a slot.

        Args:
            first_query: The number of the first of them among all new tokens.

        Returns:
            Where their keys and values go, and what they attend to.
        """
        begin = len(self._positions)
        count = len(self.texts)
        positions = torch.tensor([text.position for text in self.texts])
        # No text sees the others' generated tokens.
        self._mask = torch.hstack([self._mask, torch.eye(count, dtype=torch.bool)])
        self._positions = torch.cat([self._positions, positions])
        tokens = slice(first_query, first_query + count)
        blocks = Blocks(
            memory=self.slots,
            queries=tokens,
            slots=slice(0, begin + count),
            mask=self._mask[None],
            query_positions=positions[None],
            slot_positions=self._positions[None],
        )
        return Write(self.slots, slice(begin, begin + count), tokens), blocks


class GrowingTexts:
    """Texts that grow, of one group or several.

    Args:
        engine: The model.
        length: The most tokens of a text.
        stops: The ends of texts.
    """

    def __init__(self, engine: Engine, length: int, stops: Stops) -> None:
        self.runs: list[Run] = []
        self._engine = engine
        self._length = length
        self._stops = stops

    def has_room(self, slot_count: int, max_slots: int) -> bool:
        """Return whether texts of another group may start, which take so many slots."""
        if not self.runs:
            return True
        used_slots = sum(run.slots.size for run in self.runs)
        text_count = sum(len(run.texts) for run in self.runs)
        return used_slots + slot_count <= max_slots and text_count < ENOUGH_TEXTS

    def start(
        self, leaves: Sequence[Leaf], pack: Pack, slots: Slots
    ) -> Iterator[tuple[int, list[int]]]:
        """Compute a group's leaves and the first token of each text; yield complete texts.

        Args:
            leaves: The group.
            pack: Its slots.
            slots: Its kept ones are computed. The others may be overwritten afterwards.
        """
        last_slots = np.array([path[-1] for path in pack.paths])  # ascending: leaves differ
        tokens: list[int] = []
        for logits in self._engine.read(slots, pack, last_slots, "Reading prompts"):
            tokens += logits.argmax(-1).tolist()
        texts = []
        for leaf, token in zip(leaves, tokens, strict=True):
            texts.append(GrowingText(leaf, [token]))
        is_growing = self._are_growing(texts)
        for first, end in divide_into_runs(pack, self._length, slots.size):
            if any(is_growing[first:end]):
                run = Run(slots, pack, first, texts[first:end], self._length)
                run.keep(is_growing[first:end])
                self.runs.append(run)
        yield from _answers(texts, is_growing)

    def step(self) -> Iterator[tuple[int, list[int]]]:
        """Append a token to each text; yield those that are complete then."""
        texts = [text for run in self.runs for text in run.texts]
        longest = max(len(text.tokens) for text in texts)
        answers = counted(len(texts), "answer")
        self._engine.report(f"Writing {answers}, {longest:,} of at most {self._length:,} tokens")
        writes = []
        blocks = []
        first_query = 0
        for run in self.runs:
            write, run_blocks = run.add_step(first_query)
            writes.append(write)
            blocks.append(run_blocks)
            first_query += len(run.texts)
        logits = self._engine.forward(
            np.array([text.tokens[-1] for text in texts]),
            np.array([text.position for text in texts]),
            Pass(writes, blocks, last_layer_blocks=blocks, needed=np.arange(len(texts))),
        )
        for text, token in zip(texts, logits.argmax(-1).tolist(), strict=True):
            text.tokens.append(token)
        is_growing = self._are_growing(texts)
        begin = 0
        for run in self.runs:
            end = begin + len(run.texts)
            run.keep(is_growing[begin:end])
            begin = end
        self.runs = [run for run in self.runs if run.texts]
        yield from _answers(texts, is_growing)

    def _are_growing(self, texts: Sequence[GrowingText]) -> list[bool]:
        """Return for each text whether it is not complete."""
        is_complete = self._stops.complete([text.tokens for text in texts])
        is_growing = []
        for text, is_stopped in zip(texts, is_complete, strict=True):
            is_growing.append(not is_stopped and len(text.tokens) < self._length)
        return is_growing


def _answers(
    texts: Sequence[GrowingText], is_growing: Sequence[bool]
) -> Iterator[tuple[int, list[int]]]:
    """Yield each key of the complete texts with the generated tokens."""
    for text, grows in zip(texts, is_growing, strict=True):
        if not grows:
            for key in text.leaf.keys:
                yield key, text.tokens


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
