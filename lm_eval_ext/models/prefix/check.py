"""Whether a model can be run over packs, found out by trying."""

from typing import Any

import numpy as np
import torch

from lm_eval_ext.models.prefix.engine import Engine
from lm_eval_ext.models.prefix.pack import lay_out
from lm_eval_ext.models.prefix.plan import Group
from lm_eval_ext.models.prefix.tree import grow

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
"""Largest difference of log-probabilities up to which two computations count as the same."""

TOLERANCE_OF_SHORT_DTYPES = 1.0

REACH = 512
"""Tokens that show what a model does whose configuration tells of no longer reach."""


def sample(config: Any, longest: tuple[int, ...]) -> tuple[int, ...]:
    """Returns as much of a run's longest sequence as a model has to be tried with.

    All of it where the model changes beyond some length: at the end of a sliding window, or
    where rotary positions are rescaled.
    """
    text = config.get_text_config(decoder=True)
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    plain = rope.get("rope_type", "default") == "default" and not getattr(
        text, "sliding_window", None
    )
    return longest[:REACH] if plain else longest


def obstacle(engine: Engine, tokens: tuple[int, ...]) -> str:
    """Returns why the model cannot be run over packs, or an empty text if it can.

    A text and a second one that leaves it halfway are computed in a pack, their beginning
    before that, and compared with plain forward passes. A model whose attention goes by the
    order of slots rather than by mask and positions, or whose state is no cache of keys and
    values, differs or fails.

    Args:
        engine: With nothing in it.
        tokens: See :func:`sample`.
    """
    half = len(tokens) // 2
    other = tokens[:half] + tokens[: len(tokens) - half]
    tree = grow((number, one, len(one) - 1) for number, one in enumerate((tokens, other)))
    begin = tokens[: len(tokens) // 4]
    try:
        if begin:
            alone = grow([(0, begin, len(begin) - 1)])
            list(engine.read(lay_out(Group(0, alone.leaves)), np.arange(0)))
        pack = lay_out(Group(len(begin), tree.leaves))
        last = np.array([path[-1] for path in pack.paths])
        packed = torch.cat([logits for _, logits in engine.read(pack, last)])
        plain = torch.stack([_plain(engine, leaf.tokens) for leaf in tree.leaves])
    except (TypeError, ValueError, RuntimeError, AttributeError, NotImplementedError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    difference = (_logprobs(packed) - _logprobs(plain)).abs().max().item()
    if difference <= TOLERANCE.get(engine.model.dtype, TOLERANCE_OF_SHORT_DTYPES):
        return ""
    return f"log-probabilities differ by {difference:.2g}"


def _plain(engine: Engine, tokens: tuple[int, ...]) -> Any:
    options = {"logits_to_keep": 1} if engine.picks_logits else {}
    with (
        torch.no_grad(),
        torch.autocast(
            engine.device.type, dtype=engine.autocast, enabled=engine.autocast is not None
        ),
    ):
        inputs = torch.tensor([tokens], device=engine.device)
        return engine.model(inputs, use_cache=False, **options).logits[0, -1]


def _logprobs(logits: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(logits.float(), dim=-1)
