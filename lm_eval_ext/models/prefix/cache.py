"""Keys and values by slot, of which some can be kept while the others are dropped."""

from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer

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
