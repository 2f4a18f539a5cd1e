"""Runs a causal model over slots: each token attends to its ancestors in the tree.

transformers lets a model's attention be any function that is registered by name
(``AttentionInterface``). Ours, :func:`attend`, keeps keys and values by slot. New tokens are one
sequence to the model; the attention takes them in blocks of neighbours, which have most of
their ancestors in common.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from lm_eval_ext.models.prefix.packed import PackedLinears
from lm_eval_ext.models.prefix.progress import ReadingSpeed, Report, TokenProgress, report_nothing
from lm_eval_ext.models.prefix.tree import IntArray, Pack

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME = "lm_eval_ext_prefix_tree"

Index: TypeAlias = slice | torch.Tensor

_MaskKey: TypeAlias = "tuple[int, int | None, torch.device]"
"""Query heads for each key head, the sliding window, and the device."""


@dataclass
class Blocks:
    """Blocks of new tokens that attend in one call, padded to equal sizes.

    Attributes:
        queries: Which of the new tokens (blocks x queries); a slice stands for one block.
        slots: The slots that any token of a block attends to (blocks x slots); a slice as well.
        mask: Which slots each query attends to (blocks x queries x slots).
        query_positions: The queries' positions (blocks x queries).
        slot_positions: The slots' positions (blocks x slots).
    """

    queries: Index
    slots: Index
    mask: torch.Tensor
    query_positions: torch.Tensor
    slot_positions: torch.Tensor
    _masks: dict[_MaskKey, torch.Tensor] = field(default_factory=dict)

    def additive(self, groups: int, window: int | None, like: torch.Tensor) -> torch.Tensor:
        """Return the mask as it is added to scores, for queries of several heads in a row."""
        key = (groups, window, like.device)
        if key not in self._masks:
            is_attended = self.mask
            if window is not None:
                distance = self.query_positions[:, :, None] - self.slot_positions[:, None]
                is_attended = is_attended & (distance < window)
            mask = torch.where(is_attended, 0.0, -torch.inf).to(like.dtype)
            self._masks[key] = mask.repeat(1, groups, 1)[:, None].to(like.device)
        return self._masks[key]

    def attend(self, layer: "Layer", new: "NewTokens", memory: Sequence[torch.Tensor]) -> None:
        """Attend to a memory's keys and values (key heads x slots x size); see ``PassPart``."""
        keys, values = memory
        groups = new.queries.shape[1]
        attended = scaled_dot_product_attention(
            _by_block(new.queries, self.queries).flatten(2, 3),
            _by_block(keys, self.slots),
            _by_block(values, self.slots),
            attn_mask=self.additive(groups, layer.window, new.queries),
            scale=layer.scaling,
        )
        by_token = attended.unflatten(2, (groups, -1)).permute(0, 3, 1, 2, 4)
        new.output[self.queries] = by_token


def _by_block(states: torch.Tensor, index: Index) -> torch.Tensor:
    """Take tokens (... x tokens x size) by block (blocks x ... x tokens x size)."""
    if isinstance(index, slice):
        return states[None, ..., index, :]
    chosen = states.index_select(-2, index.flatten().to(states.device))
    return chosen.unflatten(-2, index.shape).movedim(-3, 0)


class Slots:
    """Keys and values by slot, in all layers.

    Args:
        size: How many slots there are.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.layers: dict[int, list[torch.Tensor]] = {}

    def write(self, layer: int, index: Index, *states: torch.Tensor) -> None:
        """Put keys and values (heads x new tokens x size) into slots."""
        if layer not in self.layers:
            self.layers[layer] = [
                state.new_empty((len(state), self.size, state.shape[-1])) for state in states
            ]
        for memory, state in zip(self.layers[layer], states, strict=True):
            memory[:, index] = state

    def keep(self, index: IntArray) -> None:
        """Move some slots to the beginning, in this order; the others may be overwritten."""
        numbers = torch.from_numpy(index)
        for memories in self.layers.values():
            for memory in memories:
                memory[:, : len(index)] = memory.index_select(1, numbers.to(memory.device))

    def copy(self, index: IntArray) -> "Slots":
        """Return a copy of some slots, in this order."""
        slots = Slots(len(index))
        numbers = torch.from_numpy(index)
        for layer, memories in self.layers.items():
            slots.layers[layer] = [
                memory.index_select(1, numbers.to(memory.device)) for memory in memories
            ]
        return slots

    @property
    def slot_bytes(self) -> int:
        """Memory of one slot in all layers, in bytes."""
        return sum(memory[:, 0].nbytes for layer in self.layers.values() for memory in layer)


@dataclass(frozen=True)
class Layer:
    """A layer that attends.

    Attributes:
        number: Its number.
        scaling: What the products of queries and keys are multiplied by; None for the usual.
        window: Its sliding window, if it has one.
        is_last: Whether no layer comes after it.
    """

    number: int
    scaling: float | None
    window: int | None
    is_last: bool


@dataclass(frozen=True)
class NewTokens:
    """All new tokens of a forward pass, in a layer.

    Attributes:
        queries: Their queries (key heads x queries for each x tokens x size).
        keys: Their keys (key heads x tokens x size).
        values: Their values, in the same way.
        output: Where what they attend to goes (tokens x key heads x queries for each x size).
    """

    queries: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    output: torch.Tensor


class PassPart(Protocol):
    """Some new tokens of a forward pass, with the memory that they attend to."""

    def attend(self, layer: Layer, new: NewTokens) -> None:
        """Keep keys and values of the part's tokens, and fill in the output what they attend to."""


@dataclass(frozen=True)
class TreePart:
    """All new tokens of a pass over a pack.

    Attributes:
        memory: The pack's keys and values.
        new_slots: Where those of the new tokens go.
        blocks: The slots that new tokens attend to.
        last_layer_blocks: The same in the last layer, for tokens whose logits are needed.
    """

    memory: Slots
    new_slots: slice
    blocks: Sequence[Blocks]
    last_layer_blocks: Sequence[Blocks]

    def attend(self, layer: Layer, new: NewTokens) -> None:
        """See :meth:`PassPart.attend`."""
        self.memory.write(layer.number, self.new_slots, new.keys, new.values)
        # No token attends to what the last layer gives, so those that are not needed are skipped.
        for block in self.last_layer_blocks if layer.is_last else self.blocks:
            block.attend(layer, new, self.memory.layers[layer.number])


@dataclass(frozen=True)
class Pass:
    """A forward pass, as far as attention has to know it.

    Attributes:
        parts: Each new token is in one of them.
        needed: The new tokens whose logits are needed.
        windows: Each layer that has attended, with its sliding window.
    """

    parts: Sequence[PassPart]
    needed: IntArray
    windows: dict[int, int | None] = field(default_factory=dict)


IGNORED = frozenset({"dropout", "position_ids", "use_cache", "output_router_logits"})
"""Options of attention that change nothing in a model that only reads."""


def attend(  # noqa: PLR0917 (transformers' signature)
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: None = None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    *,
    prefix_pass: Pass,
    layers: int,
    **options: object,
) -> tuple[torch.Tensor, None]:
    """Attend over slots, as transformers' models ask for it, for one sequence of new tokens.

    Raises:
        ValueError: The model's attention is more than that.
    """
    options["attention_mask"] = attention_mask
    unknown_options = [
        name for name, option in options.items() if option is not None and name not in IGNORED
    ]
    if unknown_options:
        raise ValueError(f"its attention has {', '.join(sorted(unknown_options))}")
    if module.layer_idx in prefix_pass.windows:
        raise ValueError("its layers attend more than once")
    prefix_pass.windows[module.layer_idx] = sliding_window
    is_last = len(prefix_pass.windows) == layers
    layer = Layer(module.layer_idx, scaling, sliding_window, is_last)
    heads = key.shape[1]
    queries = query[0].unflatten(0, (heads, -1))
    output = value.new_zeros((query.shape[2], *queries.shape[:2], value.shape[-1]))
    for part in prefix_pass.parts:
        part.attend(layer, NewTokens(queries, key[0], value[0], output))
    return output.flatten(1, 2)[None], None


PASS = 1024
"""The most new tokens of one forward pass."""

BLOCK = 128
"""The most new tokens that attend together, to the slots that any of them attends to."""


class Engine:
    """A causal model of transformers.

    Args:
        model: The model.
        device: Where its inputs go.
        autocast: The mixed-precision dtype, or None.

    Attributes:
        packed: The layers whose weights are packed while texts are generated.
        report: Called with what is about to be computed.
        speed: How fast prompts are read; on a GPU, which computes while Python goes on, it is only
            known that this is fast.
    """

    def __init__(
        self, model: "PreTrainedModel", device: torch.device, autocast: torch.dtype | None
    ) -> None:
        self.model = model
        self.device = device
        self.autocast = autocast
        self.packed = PackedLinears()
        self.report: Report = report_nothing
        self.speed = ReadingSpeed()
        self.current_pass = Pass((), np.arange(0))

    @contextmanager
    def attention(self) -> Iterator[None]:
        """Let the model use our attention."""
        config = self.model.config
        layers = config.get_text_config().num_hidden_layers

        # Not every model hands options down to its attention.
        def attend_in_pass(*states: Any, **options: Any) -> tuple[torch.Tensor, None]:
            return attend(*states, prefix_pass=self.current_pass, layers=layers, **options)

        AttentionInterface.register(NAME, attend_in_pass)
        implementation = config._attn_implementation
        self.model.set_attn_implementation(NAME)
        try:
            with torch.inference_mode():
                yield
        finally:
            self.model.set_attn_implementation(implementation)

    def read(
        self,
        slots: Slots,
        pack: Pack,
        needed: IntArray,
        progress: TokenProgress | None = None,
    ) -> Iterator[torch.Tensor]:
        """Compute a pack's tokens.

        Args:
            slots: Its kept ones are computed.
            pack: The tokens.
            needed: The slots whose logits are needed, in ascending order, each once.
            progress: What to report before each part; None reports nothing.

        Yields:
            The logits of each part of the needed slots.
        """
        for begin in range(pack.kept, len(pack.tokens), PASS):
            end = min(begin + PASS, len(pack.tokens))
            if progress:
                self.report(progress.describe())
            needed_here = needed[(needed >= begin) & (needed < end)]
            new_slots = slice(begin, end)
            part = TreePart(
                memory=slots,
                new_slots=new_slots,
                blocks=list(_blocks(pack, begin, end, np.arange(begin, end))),
                last_layer_blocks=list(_blocks(pack, begin, end, needed_here)),
            )
            started = time.perf_counter()
            logits = self.forward(
                pack.tokens[new_slots],
                pack.positions[new_slots],
                Pass([part], needed_here - begin),
            )
            self.speed.add(end - begin, time.perf_counter() - started)
            if progress:
                progress.add(end - begin)
            if len(needed_here):
                yield logits

    def forward(self, tokens: IntArray, positions: IntArray, prefix_pass: Pass) -> torch.Tensor:
        """Compute new tokens at these positions, and return the logits of the needed ones."""
        self.current_pass = prefix_pass
        needed = prefix_pass.needed
        if not len(needed):  # some models take an empty choice for all
            needed = np.array([len(tokens) - 1])
        logits = self.run(
            tokens,
            position_ids=torch.from_numpy(positions)[None].to(self.device),
            logits_to_keep=torch.from_numpy(needed).to(self.device),
        )
        # Slots and masks would stay in memory.
        self.current_pass = replace(prefix_pass, parts=())
        return logits

    def run(self, tokens: Sequence[int] | IntArray, **options: torch.Tensor) -> torch.Tensor:
        """Return the logits after a text's tokens, with the attention that the model has."""
        autocast = torch.autocast(
            self.device.type, dtype=self.autocast, enabled=self.autocast is not None
        )
        with torch.inference_mode(), autocast:
            ids = torch.as_tensor(tokens, device=self.device)[None]
            logits: torch.Tensor = self.model(ids, use_cache=False, **options).logits[0]
        return logits


def _blocks(pack: Pack, begin: int, end: int, needed: IntArray) -> Iterator[Blocks]:
    """Yield blocks of the needed ones of new slots."""
    # Where the tokens have few ancestors, most slots of a block are seen by few of its tokens.
    size = min(BLOCK, BLOCK // 4 + int(pack.positions[begin:end].mean()))
    block_queries = []
    block_slots = []
    for block_begin in range(begin, end, size):
        block_end = min(block_begin + size, end)
        queries = needed[(needed >= block_begin) & (needed < block_end)]
        if len(queries):
            block_queries.append(queries)
            block_slots.append(pack.attended(block_begin, block_end))
    if not block_queries:
        return
    # So many blocks that a call has as much to do as with one block of a long text.
    longest = max(len(slots) for slots in block_slots)
    blocks_per_call = max(1, BLOCK * PASS // size // longest)
    for start in range(0, len(block_queries), blocks_per_call):
        queries = _stack(block_queries[start : start + blocks_per_call])
        slots = _stack(block_slots[start : start + blocks_per_call])
        mask = pack.mask(queries, slots)
        is_padding = slots[:, 1:] <= slots[:, :-1]
        mask[:, :, 1:] &= ~is_padding[:, None]
        yield Blocks(
            queries=_index(queries - begin),
            slots=_index(slots),
            mask=torch.from_numpy(mask),
            query_positions=torch.from_numpy(pack.positions[queries]),
            slot_positions=torch.from_numpy(pack.positions[slots]),
        )


def _stack(rows: Sequence[IntArray]) -> IntArray:
    """Stack rows of ascending numbers; shorter ones repeat their last number."""
    columns = np.arange(max(len(row) for row in rows))
    return np.stack([row[np.minimum(columns, len(row) - 1)] for row in rows])


def _index(rows: IntArray) -> Index:
    """Return a slice, which copies nothing, if the rows are one range of numbers; or a tensor."""
    first, end = int(rows[0, 0]), int(rows[0, -1]) + 1
    if rows.shape == (1, end - first):
        return slice(first, end)
    return torch.from_numpy(rows)
