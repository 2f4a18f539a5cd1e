"""Attention in parts, for models whose attention is torch's ``sdpa``, on a CPU.

A mask over all slots makes each token look at its relatives' slots, too. Here it does not: short
trees stand side by side as a batch (:func:`side_by_side`), and texts that grow from one beginning
look at it together, then each at its own tokens (:class:`Branches`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from lm_eval_ext.models.prefix.plan import Array, Pack

Attention = Callable[..., tuple[torch.Tensor, None]]


def possible(model: Any, device: torch.device) -> bool:
    """Whether the attention of a model can be replaced, and torch's kernel returns what it must."""
    return (
        device.type == "cpu"
        and getattr(model.config, "_attn_implementation", None) == "sdpa"
        and hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu")
    )


@contextmanager
def replacing(attention: Callable[..., tuple[torch.Tensor, None]]) -> Iterator[None]:
    """Lets models call a function for ``sdpa``, with the usual one as its first argument."""
    usual = ALL_ATTENTION_FUNCTIONS["sdpa"]
    ALL_ATTENTION_FUNCTIONS["sdpa"] = partial(attention, usual)
    try:
        yield
    finally:
        ALL_ATTENTION_FUNCTIONS["sdpa"] = usual


def side_by_side(  # noqa: PLR0917 (transformers' signature)
    usual: Attention,
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Takes one sequence for as many as the mask has matrices."""
    batch = [
        tensor[0].unflatten(1, (len(attention_mask), -1)).transpose(0, 1)
        for tensor in (query, key, value)
    ]
    found, _ = usual(module, *batch, attention_mask, **options)
    return found.flatten(0, 1)[None], None


@dataclass(frozen=True)
class Block:
    """Neighbouring leaves, and the number of slots that they all begin with."""

    first: int
    end: int
    trunk: int


WEIGHT = 4
"""A slot of one leaf's own costs as much as so many of a trunk, which many leaves look at."""

READ = 16
"""Leaves in whose time a trunk can be read at all."""

LONGEST_OWN = 128
"""Slots of a leaf's own; the memory of all leaves is as long as the longest."""


def blocks_of(paths: Sequence[Array]) -> list[Block]:
    """Divides leaves, given by their slots, into blocks: a leaf joins the last one if that pays."""
    blocks: list[Block] = []
    total = most = 0  # of the last block's leaves: slots of all, slots of the longest
    for number, path in enumerate(paths):
        size = len(path)
        if blocks:
            last = blocks[-1]
            count = number - last.first
            trunk = min(last.trunk, _common(paths[number - 1], path))
            apart = _cost(last.trunk, count, total) + _cost(size, 1, size)
            if (
                max(most, size) - trunk <= LONGEST_OWN
                and _cost(trunk, count + 1, total + size) <= apart
            ):
                blocks[-1] = Block(last.first, number + 1, trunk)
                total, most = total + size, max(most, size)
                continue
        blocks.append(Block(number, number + 1, size))
        total = most = size
    return blocks


def _common(one: Array, other: Array) -> int:
    size = min(len(one), len(other))
    differs = one[:size] != other[:size]
    return int(differs.argmax()) if differs.any() else size


def _cost(trunk: int, leaves: int, total: int) -> int:
    return trunk * (leaves + READ) + WEIGHT * (total - trunk * leaves)


def copied(paths: Sequence[Array], blocks: Sequence[Block]) -> int:
    """Returns the slots that :class:`Branches` copies, without the generated ones."""
    trunks = sum(block.trunk for block in blocks)
    own = (len(path) - b.trunk for b in blocks for path in paths[b.first : b.end])
    return trunks + max(own) * len(paths)


class OwnLayer(DynamicLayer):
    """A layer's keys and values of what each leaf does not share with its block."""

    used = 0

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, used: int) -> None:
        super().__init__()
        self.keys, self.values, self.used = keys, values, used
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Appends a slot to each leaf's; returns them."""
        self.keys[:, :, self.used] = key_states[:, :, 0]
        self.values[:, :, self.used] = value_states[:, :, 0]
        self.used += 1
        return self.keys[:, :, : self.used], self.values[:, :, : self.used]

    def get_seq_length(self) -> int:
        """Returns the number of slots in use."""
        return self.used

    def keep(self, rows: torch.Tensor) -> None:
        """Keeps the leaves of these rows."""
        self.keys, self.values = self.keys[rows], self.values[rows]


Trunks = list[tuple[torch.Tensor, torch.Tensor]]


class Branches:
    """The leaves of a pack that grow, one token a step.

    Args:
        layers: Of the cache, which has computed the pack.
        pack: The leaves.
        blocks: See :func:`blocks_of`.
        length: Tokens that each leaf may generate.
    """

    def __init__(
        self, layers: Sequence[Any], pack: Pack, blocks: Sequence[Block], length: int
    ) -> None:
        self.sizes = [block.end - block.first for block in blocks]
        self.block = torch.repeat_interleave(torch.tensor(self.sizes))
        own = [
            path[block.trunk :] for block in blocks for path in pack.paths[block.first : block.end]
        ]
        width = max(map(len, own))
        slots = torch.zeros((len(own), width), dtype=torch.long)
        self.seen = torch.ones((len(own), width + length), dtype=torch.bool)
        self.seen[:, :width] = False
        for row, path in enumerate(own):
            slots[row, : len(path)] = torch.from_numpy(path)
            self.seen[row, : len(path)] = True
        self.trunks: list[Trunks] = []
        self.cache = Cache(layers=[])
        for layer in layers:
            self.cache.layers.append(_own(layer, slots, length))
            self.trunks.append(
                [
                    _of_slots(layer, torch.from_numpy(pack.paths[block.first][: block.trunk]))
                    for block in blocks
                ]
            )

    def keep(self, rows: torch.Tensor) -> None:
        """Keeps the leaves of these rows, in ascending order."""
        if len(rows) == len(self.seen):
            return
        self.seen, self.block = self.seen[rows], self.block[rows]
        self.sizes = torch.bincount(self.block, minlength=len(self.sizes)).tolist()
        for layer in self.cache.layers:
            layer.keep(rows)

    def mask(self, dtype: torch.dtype) -> torch.Tensor:
        """Returns the mask of the next step, over each leaf's own slots."""
        seen = self.seen[:, : self.cache.get_seq_length() + 1]
        mask = torch.zeros(seen.shape, dtype=dtype)
        return mask.masked_fill_(~seen, torch.finfo(dtype).min)[:, None, None]

    def attention(  # noqa: PLR0917 (transformers' signature)
        self,
        _usual: Attention,
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor,
        scaling: float | None = None,
        **_options: Any,
    ) -> tuple[torch.Tensor, None]:
        """Looks at the leaves' own slots, then at the trunks; weighs both by their exponents."""
        rows, heads, _, size = query.shape
        scale = size**-0.5 if scaling is None else scaling
        grouped = query.reshape(rows, key.shape[1], -1, size)
        # In float32, as the kernel that does this for short dtypes.
        scores = grouped.float() * scale @ key.float().transpose(2, 3) + attention_mask
        own = torch.softmax(scores, -1).to(value.dtype) @ value
        trunk = torch.zeros_like(own)
        weight = scores.new_full(own.shape[:3], -torch.inf)
        first = 0
        for (keys, values), count in zip(self.trunks[module.layer_idx], self.sizes, strict=True):
            inside = slice(first, first + count)
            first += count
            if count and keys.shape[2]:
                trunk[inside], weight[inside] = _look(grouped[inside], keys, values, scale)
        share = torch.sigmoid(weight - torch.logsumexp(scores, -1))[..., None]
        return torch.lerp(own.float(), trunk.float(), share).to(own.dtype).view(
            rows, 1, heads, -1
        ), None


def _look(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of all rows to the same slots, and the logarithm of its sum of exponents.

    This is the kernel that ``scaled_dot_product_attention`` calls; nothing else returns the sum.
    """
    rows, _, group, _ = query.shape
    found, weight = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query.transpose(0, 1).flatten(1, 2)[None], keys, values, scale=scale
    )
    return (
        found[0].unflatten(1, (rows, group)).transpose(0, 1),
        weight[0].unflatten(1, (rows, group)).transpose(0, 1),
    )


def _of_slots(layer: Any, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of these slots; where they follow each other, without a copy."""
    first = int(slots[0]) if len(slots) else 0
    end = first + len(slots)
    if bool((slots == torch.arange(first, end)).all()):
        return layer.keys[:, :, first:end], layer.values[:, :, first:end]
    return layer.keys.index_select(2, slots), layer.values.index_select(2, slots)


def _own(layer: Any, slots: torch.Tensor, length: int) -> OwnLayer:
    rows, width = slots.shape

    def taken(memory: torch.Tensor) -> torch.Tensor:
        _, heads, _, size = memory.shape
        found = memory.new_zeros((rows, heads, width + length, size))
        found[:, :, :width] = memory[0][:, slots].transpose(0, 1)
        return found

    return OwnLayer(taken(layer.keys), taken(layer.values), width)
