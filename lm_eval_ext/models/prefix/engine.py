"""Runs a causal model over slots: each token attends to its ancestors in the tree.

transformers lets a model's attention be any function that is registered by name
(``AttentionInterface``). Ours, :func:`attend`, keeps keys and values by slot. New tokens are one
sequence to the model; the attention takes them in blocks of neighbours, which have most of
their ancestors in common.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from lm_eval_ext.models.prefix.tree import Array, Pack

NAME = "lm_eval_ext_prefix_tree"

Index: TypeAlias = slice | torch.Tensor


@dataclass
class Blocks:
    """Blocks of new tokens that attend in one call, padded to equal sizes.

    Attributes:
        queries: Which of the new tokens (blocks x queries); a slice stands for one block.
        slots: What any token of a block attends to (blocks x slots); a slice as well.
        mask: Which slots each query attends to (blocks x queries x slots).
        rows: The queries' positions (blocks x queries).
        columns: The slots' positions (blocks x slots).
    """

    queries: Index
    slots: Index
    mask: torch.Tensor
    rows: torch.Tensor
    columns: torch.Tensor
    _masks: dict[Any, torch.Tensor] = field(default_factory=dict)

    def additive(self, groups: int, window: int | None, like: torch.Tensor) -> torch.Tensor:
        """Returns the mask as it is added to scores, for queries of several heads in a row."""
        key = groups, window, like.device
        if key not in self._masks:
            seen = self.mask
            if window is not None:
                seen = seen & (self.rows[:, :, None] - self.columns[:, None] < window)
            mask = torch.where(seen, 0.0, -torch.inf).to(like.dtype)
            self._masks[key] = mask.repeat(1, groups, 1)[:, None].to(like.device)
        return self._masks[key]


def _by_block(states: torch.Tensor, index: Index) -> torch.Tensor:
    """Takes tokens (... x tokens x size) by block (blocks x ... x tokens x size)."""
    if isinstance(index, slice):
        return states[None, ..., index, :]
    taken = states.index_select(-2, index.flatten().to(states.device))
    return taken.unflatten(-2, index.shape).movedim(-3, 0)


class Slots:
    """Keys and values by slot, in all layers.

    Args:
        size: How many slots there are.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.layers: dict[int, list[torch.Tensor]] = {}

    def write(self, layer: int, at: Index, *states: torch.Tensor) -> list[torch.Tensor]:
        """Puts keys and values (heads x new tokens x size) into slots; returns those of all."""
        if layer not in self.layers:
            self.layers[layer] = [
                state.new_empty((len(state), self.size, state.shape[-1])) for state in states
            ]
        for memory, state in zip(self.layers[layer], states, strict=True):
            memory[:, at] = state
        return self.layers[layer]

    def keep(self, index: Array) -> None:
        """Moves some slots to the beginning, in this order; the others may be overwritten."""
        for layer, memory in self.taken(index).layers.items():
            for one, kept in zip(self.layers[layer], memory, strict=True):
                one[:, : len(index)] = kept

    def taken(self, index: Array) -> "Slots":
        """Returns a copy of some slots, in this order."""
        found, places = Slots(len(index)), torch.from_numpy(index)
        for layer, memory in self.layers.items():
            found.layers[layer] = [one.index_select(1, places.to(one.device)) for one in memory]
        return found

    @property
    def slot_bytes(self) -> int:
        """Memory of one slot in all layers, in bytes."""
        return sum(t[:, 0].nbytes for memory in self.layers.values() for t in memory)


@dataclass(frozen=True)
class Pass:
    """What attention has to know of a forward pass.

    Attributes:
        slots: Keys and values.
        at: Where those of new tokens go.
        blocks: What new tokens attend to.
        last: The same in the last layer, for tokens whose logits are wanted.
        needed: The new tokens whose logits are wanted.
        windows: Each layer that has attended, with its sliding window.
    """

    slots: Slots
    at: Index
    blocks: Sequence[Blocks]
    last: Sequence[Blocks]
    needed: Array
    windows: dict[int, int | None] = field(default_factory=dict)


IGNORED = frozenset({"dropout", "position_ids", "use_cache", "output_router_logits"})
"""Options of attention that change nothing in a model that only reads."""


def attend(  # noqa: PLR0917 (transformers' signature)
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: None = None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    *,
    prefix_pass: Pass,
    layers: int,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention over slots, as transformers' models call it, for one sequence of new tokens.

    Raises:
        ValueError: The model's attention is more than that.
    """
    options["attention_mask"] = attention_mask
    if other := sorted(k for k, v in options.items() if v is not None and k not in IGNORED):
        raise ValueError(f"its attention has {', '.join(other)}")
    if module.layer_idx in prefix_pass.windows:
        raise ValueError("its layers attend more than once")
    prefix_pass.windows[module.layer_idx] = sliding_window
    keys, values = prefix_pass.slots.write(module.layer_idx, prefix_pass.at, key[0], value[0])
    groups = query.shape[1] // len(keys)
    asked = query[0].unflatten(0, (len(keys), groups))
    found = value.new_zeros((query.shape[2], len(keys), groups, values.shape[-1]))
    # No token attends to what the last layer gives, so those that are not needed are skipped.
    last = len(prefix_pass.windows) == layers
    for block in prefix_pass.last if last else prefix_pass.blocks:
        answer = scaled_dot_product_attention(
            _by_block(asked, block.queries).flatten(2, 3),
            _by_block(keys, block.slots),
            _by_block(values, block.slots),
            attn_mask=block.additive(groups, sliding_window, query),
            scale=scaling,
        )
        found[block.queries] = answer.unflatten(2, (groups, -1)).permute(0, 3, 1, 2, 4)
    return found.flatten(1, 2)[None], None


PASS = 1024
"""New tokens of one forward pass."""

BLOCK = 128
"""New tokens that attend together, at most: to the slots that any of them attends to."""


class Engine:
    """A causal model of transformers.

    Args:
        model: The model.
        device: Where its inputs go.
        autocast: The mixed-precision dtype, or None.
    """

    def __init__(self, model: Any, device: torch.device, autocast: torch.dtype | None) -> None:
        self.model = model
        self.device = device
        self.autocast = autocast
        self.at_work = Pass(Slots(0), slice(0), (), (), np.arange(0))

    @contextmanager
    def attention(self) -> Iterator[None]:
        """Lets the model use our attention."""
        config = self.model.config
        layers = config.get_text_config().num_hidden_layers
        # Not every model hands options down to its attention.
        AttentionInterface.register(
            NAME,
            lambda *states, **options: attend(
                *states, prefix_pass=self.at_work, layers=layers, **options
            ),
        )
        usual = config._attn_implementation
        self.model.set_attn_implementation(NAME)
        try:
            with torch.inference_mode():
                yield
        finally:
            self.model.set_attn_implementation(usual)

    def read(self, slots: Slots, pack: Pack, needed: Array) -> Iterator[torch.Tensor]:
        """Computes a pack's tokens.

        Args:
            slots: Its kept ones are computed.
            pack: The tokens.
            needed: The slots whose logits are wanted, in ascending order, each once.

        Yields:
            The logits of each part of the needed slots.
        """
        for begin in range(pack.kept, len(pack.tokens), PASS):
            end = min(begin + PASS, len(pack.tokens))
            inside = needed[(needed >= begin) & (needed < end)]
            part = slice(begin, end)
            every, last = (
                list(_blocks(pack, begin, end, some)) for some in (np.arange(begin, end), inside)
            )
            logits = self.forward(
                pack.tokens[part],
                pack.positions[part],
                Pass(slots, part, every, last, inside - begin),
            )
            if len(inside):
                yield logits

    def forward(self, tokens: Array, positions: Array, prefix_pass: Pass) -> torch.Tensor:
        """Computes new tokens at these positions; returns the logits of the needed ones."""
        self.at_work = prefix_pass
        # Some models take an empty choice for all.
        wanted = prefix_pass.needed if len(prefix_pass.needed) else np.array([len(tokens) - 1])
        logits = self.run(
            tokens,
            position_ids=torch.from_numpy(positions)[None].to(self.device),
            logits_to_keep=torch.from_numpy(wanted).to(self.device),
        )
        # Slots and masks would stay in memory.
        self.at_work = replace(prefix_pass, slots=Slots(0), blocks=(), last=())
        return logits

    def run(self, tokens: Sequence[int] | Array, **options: Any) -> torch.Tensor:
        """Returns the logits after a text's tokens, with the attention that the model has."""
        with (
            torch.inference_mode(),
            torch.autocast(
                self.device.type, dtype=self.autocast, enabled=self.autocast is not None
            ),
        ):
            ids = torch.as_tensor(tokens, device=self.device)[None]
            logits: torch.Tensor = self.model(ids, use_cache=False, **options).logits[0]
        return logits


def _blocks(pack: Pack, begin: int, end: int, wanted: Array) -> Iterator[Blocks]:
    """Yields blocks of the wanted ones of new slots."""
    # Where the tokens have few ancestors, most slots of a block are seen by few of its tokens.
    size = min(BLOCK, BLOCK // 4 + int(pack.positions[begin:end].mean()))
    parts = []
    for first in range(begin, end, size):
        last = min(first + size, end)
        queries = wanted[(wanted >= first) & (wanted < last)]
        if len(queries):
            parts.append((queries, pack.attended(first, last)))
    # So many blocks that a call has as much to do as with one block of a long text.
    many = max(1, BLOCK * PASS // size // max((len(slots) for _, slots in parts), default=1))
    for start in range(0, len(parts), many):
        queries, slots = (_even(some) for some in zip(*parts[start : start + many], strict=True))
        mask = pack.mask(queries, slots)
        mask[:, :, 1:] &= (slots[:, 1:] > slots[:, :-1])[:, None]  # the others are padding
        yield Blocks(
            _index(queries - begin),
            _index(slots),
            torch.from_numpy(mask),
            torch.from_numpy(pack.positions[queries]),
            torch.from_numpy(pack.positions[slots]),
        )


def _even(rows: Sequence[Array]) -> Array:
    """Stacks rows of ascending numbers; shorter ones repeat their last number."""
    columns = np.arange(max(map(len, rows)))
    return np.stack([row[np.minimum(columns, len(row) - 1)] for row in rows])


def _index(rows: Array) -> Index:
    """A slice, which copies nothing, where the rows are one range of numbers; else a tensor."""
    first, last = int(rows[0, 0]), int(rows[0, -1]) + 1
    return slice(first, last) if rows.shape == (1, last - first) else torch.from_numpy(rows)
