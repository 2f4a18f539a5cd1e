"""Runs a causal model over packs, one after the other.

:class:`SlotCache` holds keys and values by slot, of which some can be kept while the others are
dropped; :func:`additive` makes the attention masks for each kind of layer; :class:`Engine` puts
both to use.
"""

import inspect
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import Cache, DynamicLayer

from lm_eval_ext.models.prefix import parts
from lm_eval_ext.models.prefix.parts import Branches
from lm_eval_ext.models.prefix.plan import Array, Pack

SPARE = 256
"""Slots that a layer's memory grows by at least, so that it does not grow at every token."""


class SlotLayer(DynamicLayer):
    """A layer's keys and values in memory that is kept from group to group.

    transformers' own layer copies all of it for each generated token.
    """

    used = 0
    chosen: torch.Tensor | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Appends slots; returns the keys and values of the chosen ones, or of all."""
        end = self.used + key_states.shape[-2]
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys = _empty(key_states, end + SPARE)
            self.values = _empty(value_states, end + SPARE)
        elif end > self.keys.shape[-2]:
            size = max(end + SPARE, self.keys.shape[-2] * 5 // 4)
            self.keys = _grown(self.keys, self.used, size)
            self.values = _grown(self.values, self.used, size)
        self.keys[:, :, self.used : end] = key_states
        self.values[:, :, self.used : end] = value_states
        self.used = end
        if self.chosen is not None:
            index = self.chosen.to(self.keys.device)
            return self.keys.index_select(2, index), self.values.index_select(2, index)
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_seq_length(self) -> int:
        """Returns the number of slots in use."""
        return self.used

    def keep(self, slots: torch.Tensor, *, in_place: bool) -> None:
        """Keeps these slots, in this order; ``in_place`` if they are the first ones."""
        if not self.is_initialized:
            return  # a layer that uses another one's keys and values
        self.used = len(slots)
        if not in_place:
            index = slots.to(self.keys.device)
            self.keys[:, :, : self.used] = self.keys.index_select(2, index)
            self.values[:, :, : self.used] = self.values.index_select(2, index)


class SlotCache(Cache):
    """The cache that the model is given; a mask says which token sees which slot."""

    layers: list[SlotLayer]

    def __init__(self) -> None:
        super().__init__(layer_class_to_replicate=SlotLayer)

    def show(self, slots: torch.Tensor | None) -> None:
        """Shows the next forward pass these slots only (its own among them), or all."""
        for layer in self.layers:
            layer.chosen = slots

    def keep(self, slots: torch.Tensor) -> None:
        """Keeps these slots, in this order, and drops all others."""
        in_place = bool((slots == torch.arange(len(slots))).all())
        for layer in self.layers:
            layer.keep(slots, in_place=in_place)

    @property
    def slot_bytes(self) -> int:
        """Memory of one slot in all layers, in bytes."""
        return sum(
            tensor[0, :, 0].numel() * tensor.element_size()
            for layer in self.layers
            if layer.is_initialized
            for tensor in (layer.keys, layer.values)
        )


def _empty(like: torch.Tensor, size: int) -> torch.Tensor:
    return like.new_empty((*like.shape[:2], size, like.shape[3]))


def _grown(memory: torch.Tensor, used: int, size: int) -> torch.Tensor:
    larger = _empty(memory, size)
    larger[:, :, :used] = memory[:, :, :used]
    return larger


class UnknownAttentionError(Exception):
    """The model has a kind of layer whose mask is not known here."""


def windows(config: Any) -> dict[str, int | None]:
    """Returns the kinds of attention layers of a model, with their sliding window in tokens.

    Raises:
        UnknownAttentionError: For layers other than full and sliding-window attention.
    """
    text = config.get_text_config(decoder=True)
    window = getattr(text, "sliding_window", None)
    kinds = set(getattr(text, "layer_types", None) or ())
    if not kinds:
        kinds = {"sliding_attention" if window else "full_attention"}
    unknown = kinds - {"full_attention", "sliding_attention"}
    # GPT-Neo's own name; its windows go by the order of slots, whatever the mask says.
    unknown |= set(getattr(text, "attention_layers", ())) - {"global"}
    if unknown:
        raise UnknownAttentionError(f"layers of the kind {', '.join(sorted(unknown))}")
    return {kind: window if kind == "sliding_attention" else None for kind in sorted(kinds)}


def additive(
    visible: torch.Tensor,
    rows: torch.Tensor,
    columns: torch.Tensor,
    kinds: dict[str, int | None],
    dtype: torch.dtype,
) -> torch.Tensor | dict[str, torch.Tensor]:
    """Returns masks as transformers' models take them: a tensor, or one for each kind of layer.

    Args:
        visible: Which slots (columns) each new token (row) descends from; for several sequences
            side by side, one such matrix each.
        rows: The new tokens' positions.
        columns: The positions of all slots.
        kinds: See :func:`windows`.
        dtype: The model's, in which masks are added to the attention scores.
    """
    hidden = torch.finfo(dtype).min
    masks = {}
    for kind, window in kinds.items():
        seen = visible
        if window is not None:
            seen = visible & (rows[..., :, None] - columns[..., None, :] < window)
        mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
        masks[kind] = mask.masked_fill_(~seen, hidden).view(-1, 1, *seen.shape[-2:])
    return masks if len(masks) > 1 else next(iter(masks.values()))


COPY_COST = 16
"""Copying a slot's keys and values takes as long as about so many tokens looking at it."""


class Engine:
    """A model, and the keys and values of the slots that it has computed.

    Args:
        model: A causal model of transformers.
        device: Where its inputs go.
        autocast: The mixed-precision dtype, or None.
        step: New tokens in one forward pass.
        in_parts: Whether attention may be computed in parts (:mod:`.parts`).
    """

    def __init__(
        self,
        model: Any,
        device: torch.device,
        autocast: torch.dtype | None,
        step: int,
        *,
        in_parts: bool = False,
    ) -> None:
        self.model = model
        self.device = device
        self.autocast = autocast
        self.step = step
        self.in_parts = in_parts
        self.kinds = windows(model.config)
        # A leaf's own slots are not counted from the window's beginning.
        self.branches = in_parts and not any(self.kinds.values())
        self.picks_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.cache = SlotCache()
        self.positions = torch.empty(0, dtype=torch.long)

    def keep(self, slots: Array) -> None:
        """Keeps these slots, in this order, and drops all others."""
        index = torch.from_numpy(slots)
        self.cache.keep(index)
        self.positions = self.positions[index]

    def read(self, pack: Pack, needed: Array) -> Iterator[tuple[int, torch.Tensor]]:
        """Computes a pack's tokens.

        Args:
            pack: Its kept slots are the engine's.
            needed: The slots whose logits are wanted, in ascending order, each once.

        Yields:
            For each part of the needed slots, the number of slots before it, and their logits.
        """
        done = 0
        ends = pack.kept + len(pack.tokens)
        for begin in range(pack.kept, ends, self.step):
            end = min(begin + self.step, ends)
            inside = needed[(needed >= begin) & (needed < end)]
            part = slice(begin - pack.kept, end - pack.kept)
            logits = self.forward(
                pack.tokens[part], pack.positions[part], pack.visible(begin, end), inside - begin
            )
            if len(inside):
                yield done, logits
                done += len(inside)

    def forward(
        self, tokens: Array, positions: Array, visible: Array, needed: Array
    ) -> torch.Tensor:
        """Appends tokens; returns the logits of some, in the order of ``needed``.

        Args:
            tokens: The new tokens.
            positions: Their positions in their sequences.
            visible: Which slots (columns, the new ones too) each of them sees.
            needed: Which of the new tokens' logits are wanted.
        """
        rows = torch.from_numpy(np.asarray(positions, dtype=np.int64))
        self.positions = torch.cat([self.positions, rows])
        columns = self.positions
        slots = _worth_choosing(visible)
        if slots is not None:
            visible, columns = visible[:, slots], columns[slots]
        self.cache.show(None if slots is None else torch.from_numpy(slots).to(self.device))
        mask = additive(
            torch.from_numpy(visible).to(self.device),
            rows.to(self.device),
            columns.to(self.device),
            self.kinds,
            self.model.dtype,
        )
        # The last token's logits where none are wanted: an empty choice means all to some models.
        wanted = needed if len(needed) else np.array([len(tokens) - 1])
        return self.run(torch.from_numpy(tokens)[None], rows[None], mask, wanted, self.cache)

    def side_by_side(self, packs: Sequence[Pack], needed: Array) -> torch.Tensor:
        """Computes packs that keep nothing of each other, in one forward pass.

        Args:
            packs: Each begins at its first token, ``kept`` is 0.
            needed: The slots whose logits are wanted, counted with :func:`width_of` slots a pack.
        """
        width = width_of(packs)
        tokens = np.zeros((len(packs), width), dtype=np.int64)
        positions = np.zeros_like(tokens)
        visible = np.zeros((len(packs), width, width), dtype=bool)
        for row, pack in enumerate(packs):
            size = len(pack.tokens)
            tokens[row, :size] = pack.tokens
            positions[row, :size] = pack.positions
            visible[row, :size, :size] = pack.visible(0, size)
        rows = torch.from_numpy(positions)
        mask = additive(torch.from_numpy(visible), rows, rows, self.kinds, self.model.dtype)
        rows, inputs = rows.view(1, -1), torch.from_numpy(tokens).view(1, -1)
        with parts.replacing(parts.side_by_side):
            return self.run(inputs, rows, mask, needed, None)

    def branch(self, branches: Branches, tokens: Array, positions: Array) -> torch.Tensor:
        """Appends a token to each branch; returns their logits."""
        mask = branches.mask(self.model.dtype)
        with parts.replacing(branches.attention):
            rows = torch.from_numpy(positions)[:, None]
            inputs = torch.from_numpy(tokens)[:, None]
            return self.run(inputs, rows, mask, None, branches.cache)

    def run(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        mask: Any,
        wanted: Array | None,
        cache: Cache | None,
    ) -> torch.Tensor:
        """Returns the logits of the wanted tokens of a sequence, or of all of a batch."""
        picks = wanted is not None and self.picks_logits
        index = None if wanted is None else torch.from_numpy(wanted).to(self.device)
        with (
            grouped_heads(self.device),
            torch.no_grad(),
            torch.autocast(
                self.device.type, dtype=self.autocast, enabled=self.autocast is not None
            ),
        ):
            logits: torch.Tensor = self.model(
                tokens.to(self.device),
                attention_mask=mask,
                position_ids=positions.to(self.device),
                past_key_values=cache,
                use_cache=cache is not None,
                **({"logits_to_keep": index} if picks else {}),
            ).logits
        if index is None:
            return logits[:, -1]
        return logits[0] if picks else logits[0][index]


def width_of(packs: Sequence[Pack]) -> int:
    """Returns the slots that each of some packs takes side by side."""
    return max(len(pack.tokens) for pack in packs)


@contextmanager
def grouped_heads(device: torch.device) -> Iterator[None]:
    """Keeps transformers from copying all keys and values for grouped-query attention.

    With a mask transformers copies them, since GPU kernels are slower on grouped heads; torch's
    CPU kernel is not. An older transformers does not know the variable and copies.
    """
    name = "TRANSFORMERS_SDPA_FORCE_GQA"
    if device.type != "cpu" or name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


def _worth_choosing(visible: Array) -> Array | None:
    """Returns the slots that any token sees, where leaving out the others saves time."""
    slots = np.flatnonzero(visible.any(axis=0))
    unseen = visible.shape[1] - len(slots)
    return slots if len(visible) * unseen > COPY_COST * len(slots) else None
