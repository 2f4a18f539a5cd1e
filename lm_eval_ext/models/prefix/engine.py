"""Runs a causal model over packs, one after the other."""

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from lm_eval_ext.models.prefix.cache import SlotCache
from lm_eval_ext.models.prefix.masks import additive, windows
from lm_eval_ext.models.prefix.pack import Array, Pack

COPY_COST = 16
"""Copying a slot's keys and values takes as long as about so many tokens looking at it."""


class Engine:
    """A model, and the keys and values of the slots that it has computed.

    Args:
        model: A causal model of transformers.
        device: Where its inputs go.
        autocast: The mixed-precision dtype, or None.
        step: New tokens in one forward pass.
    """

    def __init__(
        self, model: Any, device: torch.device, autocast: torch.dtype | None, step: int
    ) -> None:
        self.model = model
        self.device = device
        self.autocast = autocast
        self.step = step
        self.kinds = windows(model.config)
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
        wanted = torch.from_numpy(needed if len(needed) else np.array([len(tokens) - 1]))
        wanted = wanted.to(self.device)
        options = {"logits_to_keep": wanted} if self.picks_logits else {}
        with (
            grouped_heads(self.device),
            torch.no_grad(),
            torch.autocast(
                self.device.type, dtype=self.autocast, enabled=self.autocast is not None
            ),
        ):
            logits = self.model(
                torch.from_numpy(tokens)[None].to(self.device),
                attention_mask=mask,
                position_ids=rows[None].to(self.device),
                past_key_values=self.cache,
                use_cache=True,
                **options,
            ).logits[0]
        return logits if self.picks_logits else logits[wanted]


@contextmanager
def grouped_heads(device: torch.device) -> Iterator[None]:
    """Keeps transformers from copying all keys and values for grouped-query attention.

    With a mask it would, since kernels on GPUs are slower without; torch's kernel for
    processors is not. An older transformers does not know the variable and copies.
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
