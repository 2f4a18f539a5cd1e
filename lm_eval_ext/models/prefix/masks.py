"""Attention masks for what each kind of layer may see."""

from typing import Any

import torch


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
        visible: Which slots (columns) each new token (row) descends from.
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
            seen = visible & (rows[:, None] - columns[None, :] < window)
        mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
        masks[kind] = mask.masked_fill_(~seen, hidden)[None, None]
    return masks if len(masks) > 1 else next(iter(masks.values()))
