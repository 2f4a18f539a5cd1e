"""Runs of texts that grow together: their keys and values, and how they attend.

What all prompts of a run begin with is kept once, and all queries attend to it in one product.
What follows is a row of each text: the rest of its prompt, then its generated tokens. One softmax
goes over both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch

from lm_eval_ext.models.prefix.engine import Layer, NewTokens, Slots
from lm_eval_ext.models.prefix.tree import IntArray, Leaf

# What work costs, in the time in which a text attends to a slot that its run shares.

OWN_SLOT_COST = 5
"""Attending to a slot of one's own: products of few rows."""

SHARED_READ_COST = 4
"""Reading a shared slot, for all texts of the run together."""

RUN_START_COST = 2000
"""The calls for another run."""

MAX_SCORES = 1 << 24
"""The most scores of shared slots that are computed together; in float32 they take 64 MiB."""


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


class Rows:
    """Keys and values of texts, a row of slots for each, in all layers.

    Args:
        slots: Where the prompts' keys and values are.
        prompts: For each row, the slots that it begins with (rows x slots).
        width: The slots of a row.

    Attributes:
        size: How many slots there are.
        layers: For each layer, the keys and the values (rows x heads x slots x size).
    """

    def __init__(self, slots: Slots, prompts: IntArray, width: int) -> None:
        self.size = len(prompts) * width
        self.layers: dict[int, list[torch.Tensor]] = {}
        index = torch.from_numpy(prompts)
        for layer, memories in slots.layers.items():
            self.layers[layer] = []
            for memory in memories:
                states = memory.index_select(1, index.flatten().to(memory.device))
                states = states.unflatten(1, index.shape).transpose(0, 1)
                # Rows come first, so that rows and heads are one dimension of a product.
                row_states = memory.new_empty((len(prompts), len(memory), width, memory.shape[-1]))
                row_states[:, :, : prompts.shape[1]] = states
                self.layers[layer].append(row_states)

    def write(
        self, layer: int, slot: int, new_states: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Put new states (heads x rows x size) into a slot of the first rows.

        Returns:
            The keys and the values up to there (rows x heads x slots x size).
        """
        filled = []
        for memory, states in zip(self.layers[layer], new_states, strict=True):
            rows = memory[: states.shape[1]]
            rows[:, :, slot] = states.transpose(0, 1)
            filled.append(rows[:, :, : slot + 1])
        keys, values = filled
        return keys, values

    def move(self, origin: int, destination: int) -> None:
        """Copy a row to the place of another."""
        for memories in self.layers.values():
            for memory in memories:
                memory[destination] = memory[origin]


@dataclass(frozen=True)
class RunLayout:
    """What a run needs.

    Attributes:
        first: The number of its first leaf.
        end: The number of the leaf after its last one.
        shared_length: How many tokens all of its prompts begin with.
        width: The slots that each text needs after those.
    """

    first: int
    end: int
    shared_length: int
    width: int

    @property
    def slot_count(self) -> int:
        """The slots that it takes."""
        return self.shared_length + (self.end - self.first) * self.width


class Run:
    """Texts that grow, with their keys and values.

    Args:
        layout: What it needs.
        texts: Its texts, each with its first token.
        paths: For each text, the slots of its prompt.
        slots: Keys and values of the prompts.
    """

    def __init__(
        self,
        layout: RunLayout,
        texts: Sequence[GrowingText],
        paths: Sequence[IntArray],
        slots: Slots,
    ) -> None:
        self.texts = list(texts)
        self.slot_count = layout.slot_count
        shared = layout.shared_length
        lengths = np.array([len(path) for path in paths])
        own_width = int(lengths.max()) - shared
        columns = np.arange(own_width)
        # Shorter prompts repeat their last slot, which the mask hides.
        prompts = [path[np.minimum(shared + columns, len(path) - 1)] for path in paths]
        self.shared_slots = slots.copy(paths[0][:shared])
        self.rows = Rows(slots, np.array(prompts).reshape(len(paths), own_width), layout.width)
        # The positions of each row's slots. What is behind the end of a prompt is never attended.
        positions = np.empty((len(paths), layout.width), dtype=np.int64)
        positions[:, :own_width] = shared + columns
        positions[:, :own_width][shared + columns >= lengths[:, None]] = np.iinfo(np.int64).max
        positions[:, own_width:] = lengths[:, None] + np.arange(layout.width - own_width)
        self.positions = positions
        self._prompt_width = own_width

    @property
    def last_slot(self) -> int:
        """The slot of a row in which the last generated token is."""
        return self._prompt_width + len(self.texts[0].tokens) - 1

    def keep(self, is_growing: Sequence[bool]) -> None:
        """Leave out the texts that are complete; others may take their places."""
        for number in reversed(range(len(self.texts))):
            if is_growing[number]:
                continue
            last = len(self.texts) - 1
            if number < last:
                self.texts[number] = self.texts[last]
                self.positions[number] = self.positions[last]
                self.rows.move(last, number)
            self.texts.pop()

    def step(self, first_token: int) -> "RunStep":
        """Return how the last tokens of its texts attend.

        Args:
            first_token: The number of the first of them among all new tokens of a pass.
        """
        tokens = slice(first_token, first_token + len(self.texts))
        return RunStep(self, tokens, self.last_slot)


@dataclass(frozen=True)
class RunStep:
    """The last tokens of a run's texts, in a forward pass.

    Attributes:
        run: The run.
        tokens: Which of the new tokens they are.
        slot: Where their keys and values go in the texts' rows.
    """

    run: Run
    tokens: slice
    slot: int
    _masks: dict[tuple[int | None, torch.device], tuple[torch.Tensor, torch.Tensor | None]] = field(
        default_factory=dict
    )

    def attend(self, layer: Layer, new: NewTokens) -> None:
        """See :meth:`lm_eval_ext.models.prefix.engine.PassPart.attend`."""
        keys, values = self.run.rows.write(
            layer.number, self.slot, (new.keys[:, self.tokens], new.values[:, self.tokens])
        )
        shared_keys, shared_values = self.run.shared_slots.layers[layer.number]
        own_mask, shared_mask = self._masks_in(layer.window, new.queries.device)
        key_heads, groups, _, size = new.queries.shape
        scaling = size**-0.5 if layer.scaling is None else layer.scaling
        run_queries = new.queries[:, :, self.tokens]
        run_output = new.output[self.tokens]
        scores_of_text = key_heads * groups * max(1, shared_keys.shape[1])
        texts_together = max(1, MAX_SCORES // scores_of_text)
        # Mixed precision would round the scores.
        with torch.autocast(new.queries.device.type, enabled=False):
            for begin in range(0, len(run_output), texts_together):
                texts = slice(begin, begin + texts_together)
                run_output[texts] = _attend_to_both(
                    run_queries[:, :, texts],
                    scaling,
                    AttendedSlots(keys[texts], values[texts], own_mask[texts]),
                    AttendedSlots(
                        shared_keys,
                        shared_values,
                        None if shared_mask is None else shared_mask[texts],
                    ),
                )

    def _masks_in(
        self, window: int | None, device: torch.device
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return what is added to the scores of own and of shared slots; None for nothing."""
        key = (window, device)
        if key not in self._masks:
            run = self.run
            shared = run.shared_slots.size
            own_positions = run.positions[: len(run.texts), : self.slot + 1]
            query_positions = own_positions[:, -1:]
            own_mask = _mask(query_positions, own_positions, window).to(device)
            shared_mask = None
            if window is not None and query_positions.max() >= window:
                shared_mask = _mask(query_positions, np.arange(shared)[None], window).to(device)
            self._masks[key] = (own_mask, shared_mask)
        return self._masks[key]


@dataclass(frozen=True)
class AttendedSlots:
    """Slots to which some texts attend.

    Attributes:
        keys: Of shared slots, key heads x slots x size; of own ones, texts come before them.
        values: In the same way.
        mask: What is added to the scores (texts x slots); None for nothing.
    """

    keys: torch.Tensor
    values: torch.Tensor
    mask: torch.Tensor | None


def _attend_to_both(
    queries: torch.Tensor, scaling: float, unshared: AttendedSlots, shared: AttendedSlots
) -> torch.Tensor:
    """Attend to own and shared slots with one softmax.

    Args:
        queries: Key heads x queries for each x texts x size.
        scaling: What products of queries and keys are multiplied by.
        unshared: The texts' own slots, one or more for each of them.
        shared: The slots that they share, if any.

    Returns:
        What the texts attend to (texts x key heads x queries for each x size).
    """
    _, groups, count, _ = queries.shape
    # Short dtypes would round scores more than torch's own attention does.
    precise = torch.promote_types(queries.dtype, torch.float32)
    scaled_queries = queries.to(precise) * scaling
    own_scores = scaled_queries.permute(2, 0, 1, 3) @ unshared.keys.to(precise).transpose(-1, -2)
    shared_scores = scaled_queries.flatten(1, 2) @ shared.keys.to(precise).transpose(-1, -2)
    # Both are texts x key heads x queries for each x slots.
    shared_scores = shared_scores.unflatten(1, (groups, count)).permute(2, 0, 1, 3)
    for scores, slots in ((own_scores, unshared), (shared_scores, shared)):
        if slots.mask is not None:
            scores.add_(slots.mask[:, None, None])

    highest = own_scores.amax(-1, keepdim=True)
    if shared_scores.shape[-1]:
        highest = highest.maximum(shared_scores.amax(-1, keepdim=True))
    own_weights = own_scores.sub_(highest).exp_()
    shared_weights = shared_scores.sub_(highest).exp_()
    total = own_weights.sum(-1, keepdim=True) + shared_weights.sum(-1, keepdim=True)
    own_weights /= total
    shared_weights /= total

    attended = own_weights.to(unshared.values.dtype) @ unshared.values
    rows = shared_weights.permute(1, 2, 0, 3).flatten(1, 2)
    shared_attended = rows.to(shared.values.dtype) @ shared.values
    return attended + shared_attended.unflatten(1, (groups, count)).permute(2, 0, 1, 3)


def _mask(query_positions: IntArray, positions: IntArray, window: int | None) -> torch.Tensor:
    """Return 0 where a query attends to a position, and negative infinity elsewhere."""
    is_attended = positions <= query_positions
    if window is not None:
        is_attended &= positions > query_positions - window
    return torch.from_numpy(np.where(is_attended, 0.0, -np.inf).astype(np.float32))


def divide_into_runs(paths: Sequence[IntArray], length: int, max_slots: int) -> list[RunLayout]:
    """Divide leaves into runs of neighbours with the least work in all.

    Args:
        paths: For each leaf, the slots of its tokens.
        length: The most slots of generated tokens of each of them.
        max_slots: The most slots of a run of several leaves.
    """
    lengths = np.array([len(path) for path in paths])
    shared_with_leaf_before = np.zeros(len(paths), dtype=np.int64)
    for number, (path_before, path) in enumerate(pairwise(paths), start=1):
        common = min(len(path_before), len(path))
        # Paths that part never meet again.
        shared_with_leaf_before[number] = (path_before[:common] == path[:common]).sum()
    # The least work of all runs before a leaf, and the last of these runs.
    least_work = np.zeros(len(paths) + 1)
    last_runs: list[RunLayout] = []
    for end in range(1, len(paths) + 1):
        # Runs that begin with the leaf before the end, the one before that, and so on.
        counts = np.arange(1, end + 1)
        shared = np.minimum.accumulate(
            np.concatenate([lengths[end - 1 : end], shared_with_leaf_before[1:end][::-1]])
        )
        widths = np.maximum.accumulate(lengths[:end][::-1]) - shared + length
        shared_work = shared * (counts + SHARED_READ_COST)
        own_work = OWN_SLOT_COST * counts * widths
        work = least_work[:end][::-1] + RUN_START_COST + shared_work + own_work
        work[1:][(shared + counts * widths)[1:] > max_slots] = np.inf
        best = int(work.argmin())
        least_work[end] = work[best]
        layout = RunLayout(end - 1 - best, end, int(shared[best]), int(widths[best]))
        last_runs.append(layout)
    layouts: list[RunLayout] = []
    end = len(paths)
    while end:
        layouts.append(last_runs[end - 1])
        end = layouts[-1].first
    return layouts[::-1]
