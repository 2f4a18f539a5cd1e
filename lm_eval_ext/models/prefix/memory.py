"""How much is computed and held at a time."""

from importlib import import_module
from typing import Any

import torch

from lm_eval_ext.errors import OptionError
from lm_eval_ext.models.prefix.plan import Limits

MIB = 1 << 20

STEP = {"cpu": 256}
STEP_OF_OTHERS = 4096
"""New tokens in a forward pass: from there on a longer one is no faster per token."""

UNIT = 256
"""New tokens of a group are a multiple of it: a processor's passes are whole ones."""

PACK = {"cpu": 4096}
PACK_OF_OTHERS = 16384
"""New tokens in a group: each is compared with all the others, in vain for most."""

FREE_SHARE = 0.5
"""Of the memory that is free: the rest is for activations, masks and logits."""


def bound_bytes(argument: Any, device: torch.device) -> int:
    """Returns the bound on keys and values in bytes: as the user says, or found.

    Raises:
        OptionError: For an argument that is no positive number.
    """
    if argument is not None:
        try:
            mebibytes = float(argument)
        except (TypeError, ValueError):
            mebibytes = 0.0
        if not mebibytes > 0:
            raise OptionError(
                f"--model hf-prefix: prefix_cache_mb={argument!r} is not legal; use a positive "
                "number of MiB, or leave it out to use half of the free memory"
            )
        return int(mebibytes * MIB)
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0] * FREE_SHARE)
    # It comes with accelerate, without which lm-eval's hf does not run.
    psutil: Any = import_module("psutil")

    return int(psutil.virtual_memory().available * FREE_SHARE)


def step(device: torch.device) -> int:
    """Returns the number of new tokens in a forward pass."""
    return STEP.get(device.type, STEP_OF_OTHERS)


def limits(
    device: torch.device, slots: int, batch_size: int | str, longest: int, generated: int = 0
) -> Limits:
    """Returns the limits of groups.

    Args:
        device: Where the model runs.
        slots: Tokens whose keys and values fit into the bound.
        batch_size: A group has no more new tokens than ``hf`` has in a batch of this size,
            rounded up to a multiple of :data:`UNIT`, so that the argument bounds memory as it
            does there; ``auto`` leaves it to the bound.
        longest: Tokens of the longest sequence.
        generated: Tokens that each leaf may generate.
    """
    pack = PACK.get(device.type, PACK_OF_OTHERS)
    if isinstance(batch_size, str):
        return Limits(pack, slots, generated, generated_slots=2 * pack)
    new_tokens = min(pack, -(-batch_size * longest // UNIT) * UNIT)
    rows = max(batch_size * generated, 4 * new_tokens)
    return Limits(new_tokens, slots, generated, generated_slots=min(2 * pack, rows))
