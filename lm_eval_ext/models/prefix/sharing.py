"""Whether requests are computed as a tree, and how much of it at a time.

A tree must save enough tokens, and the model must give the same answers with our attention
(:func:`checked`).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import psutil  # comes with accelerate, without which lm-eval's hf does not run
import torch

from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.models.prefix.engine import NAME, Engine, Slots
from lm_eval_ext.models.prefix.tree import Leaf, grow, lay_out, ratio
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

COPIES = 4
"""How many times as many slots are held as a group or the longest prompt has tokens, at most: those
that it keeps, its own, and as many copies for generation."""

GROUP = 8192
"""New tokens of a group, if memory allows. Generation gains little by more of them, since steps of
many texts cost as much per text."""

CHECKED = 256
"""Tokens of the text with which a model is tested, at most."""

KNOWN = frozenset(
    {"full_attention", "sliding_attention", "default", "linear", "llama3", "yarn", "proportional"}
)
"""Types of layers and of rotary positions with which a token depends on its ancestors alone. Others
depend on a state, or on the longest text of a batch."""

LEAST_SHARING, LEAST_TO_GENERATE = 1.1, 1.5
"""Tokens per distinct token below which requests are computed as ``hf`` does; the second one with
the tokens that may be generated."""


def bound_bytes(argument: Any, device: torch.device) -> int:
    """Returns the bound on keys and values in bytes: the user's, or half of the free memory.

    Raises:
        OptionError: For an argument that isn't a positive number.
    """
    if argument is None:
        if device.type == "cuda":
            return int(torch.cuda.mem_get_info(device)[0]) // 2
        return int(psutil.virtual_memory().available) // 2  # the rest is for other tensors
    try:
        mebibytes = float(str(argument))  # True is no number
    except ValueError:
        mebibytes = 0.0
    if not 0 < mebibytes < math.inf:
        raise OptionError(
            f"--model hf-prefix: prefix_cache_mb={argument!r} is not legal; use a positive "
            "number of MiB, or leave it out to use half of the free memory"
        )
    return int(mebibytes * (1 << 20))


def checked(engine: Engine, tokens: tuple[int, ...]) -> int:
    """Makes sure that a model can use our attention; returns a slot's bytes.

    Its layers, its positions and the options of its attention have to be known ones. Besides, the
    log-probabilities of the text's tokens, and of a text that leaves it halfway, are compared with
    those of a plain forward pass.

    Raises:
        ValueError: It cannot.
        Exception: Whatever a model raises whose attention is called in another way.
    """
    config = engine.model.config.get_text_config()
    sliding = ["sliding_attention"] if getattr(config, "sliding_window", None) else []
    parts = {*(getattr(config, "layer_types", None) or sliding)}
    rope: Any = getattr(config, "rope_parameters", None) or {}
    for one in (rope, *rope.values()):  # some models have one for each type of layer
        if isinstance(one, dict):
            parts.add(one.get("rope_type", "default"))
    if any(hasattr(part, "create_position_ids_from_input_ids") for part in engine.model.modules()):
        parts.add("positions that depend on the padding token")
    if unknown := sorted(parts - KNOWN):
        raise ValueError(f"it has {', '.join(unknown)}")
    half = len(tokens) // 2
    other = (*tokens[:half], *((token + 1) % 2 for token in tokens[half:]))
    leaves = grow([(0, tokens, 0), (1, other, 0)])
    pack = lay_out(leaves)
    slots = Slots(len(pack.tokens))
    with engine.attention():
        if engine.model.config._attn_implementation != NAME:
            raise ValueError("its attention is its own")
        every = np.arange(slots.size)
        read = torch.cat(list(engine.read(slots, pack, every)))
        read[every[::3]] = torch.cat(list(engine.read(slots, pack, every[::3])))
    windows = engine.at_work.windows
    if len(windows) != config.num_hidden_layers:
        raise ValueError("not all of its layers are attention")
    # Some models have their window in a mask alone, which a short text does not show.
    if "sliding_attention" in parts and not any(windows.values()):
        raise ValueError("its window is no option of its attention")
    difference = max(
        (_nexts(read[path], leaf) - _nexts(engine.run(leaf.tokens), leaf)).abs().max().item()
        for leaf, path in zip(leaves, pack.paths, strict=True)
    )
    # Short dtypes round so much that only a gross error shows.
    short = (engine.autocast or engine.model.dtype).itemsize < torch.float32.itemsize
    if not difference <= (1.0 if short else 1e-4):
        raise ValueError(f"log-probabilities differ by {difference:.2g}")
    return slots.slot_bytes


def _nexts(logits: torch.Tensor, leaf: Leaf) -> torch.Tensor:
    """The log-probabilities of a text's tokens after its first."""
    rows = range(len(logits) - 1)
    return logits.float().log_softmax(-1)[rows, leaf.tokens[1:]]


class Sharing:
    """A model, and whether its requests can be computed as a tree.

    Args:
        engine: The model.
        bound: On the memory for keys and values, in bytes.
        refused: Why it cannot, if that is known.
    """

    def __init__(self, engine: Engine, bound: int, refused: str = "") -> None:
        self.engine = engine
        self.bound = bound
        self._said: set[str] = set()
        self._obstacle = refused or None
        self._slot_bytes = 1

    @property
    def group(self) -> int:
        """New tokens of a group."""
        return max(1, min(GROUP, self.bound // self._slot_bytes // COPIES))

    def pays(self, leaves: Sequence[Leaf], generated: int = 0) -> bool:
        """Whether a tree saves time and the model can do it; warns once why not."""
        gain = ratio(leaves, generated)
        if gain < (LEAST_TO_GENERATE if generated else LEAST_SHARING):
            self.say(
                f"these requests have {gain:.2f} tokens for each distinct one, too few for "
                "sharing to pay: computed as hf does"
            )
            return False
        longest = max((leaf.tokens for leaf in leaves), key=len)
        if self._obstacle is None:
            try:
                text = longest[:CHECKED] if longest[1:] else longest * 2
                self._slot_bytes = checked(self.engine, text)
                self._obstacle = ""
            except torch.OutOfMemoryError:
                raise
            except (TypeError, ValueError, RuntimeError, AttributeError, LookupError) as error:
                self._obstacle = one_line(str(error) or type(error).__name__, limit=200)
        if self._obstacle:
            self.say(f"this model cannot share prefixes ({self._obstacle}): computed as hf does")
        return not self._obstacle

    def say(self, text: str) -> None:
        """Warns, once for each text."""
        if text not in self._said:
            self._said.add(text)
            _log.warning("hf-prefix: %s", text)
