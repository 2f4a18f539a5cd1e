"""Whether requests are computed as a tree, and how much of it at a time.

A tree must save enough tokens, and the model must give the same answers with our attention
(:func:`check_model`).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import psutil  # comes with accelerate, without which lm-eval's hf does not run
import torch

from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.models.prefix.engine import NAME, Engine, Slots
from lm_eval_ext.models.prefix.growing import compute_step
from lm_eval_ext.models.prefix.packed import pack_linears
from lm_eval_ext.models.prefix.runs import GrowingText, Run, RunLayout
from lm_eval_ext.models.prefix.tree import Leaf, Tokens, build_tree, lay_out, sharing_ratio
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_log = get_logger(__name__)

COPIES = 4
"""Of so many slots, a group takes one: the others hold what it has in common with the group before,
and the runs that grow."""

GROUP = 8192
"""The most new tokens of a group, if memory allows."""

MAX_TEST_TOKENS = 128
"""The most tokens of the text with which a model is tested."""

MAX_PACKED_TEST_TOKENS = 32
"""The same for packed weights."""

SUPPORTED = frozenset(
    {"full_attention", "sliding_attention", "default", "linear", "llama3", "yarn", "proportional"}
)
"""Types of layers and of rotary positions with which a token depends on its ancestors alone. Others
depend on a state, or on the longest text of a batch."""

MIN_RATIO_TO_SCORE = 1.1
"""Tokens per distinct token below which requests are computed as ``hf`` does."""

MIN_RATIO_TO_GENERATE = 1.5
"""The same with the tokens that may be generated, on a GPU. On a processor, texts that leave their
group, and packed weights, save more time than a batch of ``hf`` even if nothing is shared."""

_MAX_DIFFERENCE = 1e-4
_MAX_DIFFERENCE_SHORT = 1.0
"""Differences of log-probabilities; short dtypes round so much that only a gross error shows."""

_SMALL_LOGIT = 4.0
"""Up to this size of logits, :data:`_MAX_DIFFERENCE` holds. Rounding grows with logits: those of a
pretrained model of 135 M weights are 40, and with them log-probabilities of improbable tokens moved
by up to 1e-4. Attending to wrong tokens moves them by more than 0.1."""


def bound_bytes(megabytes: object, device: torch.device) -> int:
    """Return the bound on keys and values in bytes: the user's, or half of the free memory.

    Args:
        megabytes: The user's bound in MiB; None for half of the free memory.
        device: The model's.

    Raises:
        OptionError: It is not a positive number.
    """
    if megabytes is None:
        if device.type == "cuda":
            return int(torch.cuda.mem_get_info(device)[0]) // 2
        return int(psutil.virtual_memory().available) // 2  # the rest is for other tensors
    try:
        mebibytes = float(str(megabytes))  # True is no number
    except ValueError:
        mebibytes = 0.0
    if not 0 < mebibytes < math.inf:
        raise OptionError(
            f"--model hf-prefix: prefix_cache_mb={megabytes!r} is not legal; use a positive "
            "number of MiB, or leave it out to use half of the free memory"
        )
    return int(mebibytes * (1 << 20))


def check_model(engine: Engine, tokens: Tokens) -> int:
    """Check that a model can use our attention, and return a slot's bytes.

    Its layers, its positions and the options of its attention have to be known ones. Besides, the
    log-probabilities of a third of the text's tokens, and of a text that leaves it halfway, are
    compared with those of a plain forward pass; so are those after a token that both grow by.

    Raises:
        ValueError: It cannot.
        Exception: Whatever a model raises whose attention is called in another way.
    """
    config = engine.model.config.get_text_config()
    features = _features(engine, config)
    unknown = sorted(features - SUPPORTED)
    if unknown:
        raise ValueError(f"it has {', '.join(unknown)}")
    *prompt, last_token = tokens
    half = len(prompt) // 2
    branch = [*prompt[:half], *((token + 1) % 2 for token in prompt[half:])]
    leaves = build_tree([(0, prompt, 0), (1, branch, 0)])
    pack = lay_out(leaves)
    slots = Slots(len(pack.tokens))
    with engine.attention():
        if engine.model.config._attn_implementation != NAME:
            raise ValueError("its attention is its own")
        # Not all: a model must be able to give the logits of chosen tokens.
        needed = np.arange(0, slots.size, 3)
        logits = torch.cat(list(engine.read(slots, pack, needed)))
        texts = [GrowingText(leaf, [last_token]) for leaf in leaves]
        layout = RunLayout(first=0, end=2, shared_length=half, width=len(tokens) - half)
        grown_logits = compute_step(engine, [Run(layout, texts, pack.paths, slots)])
    windows = engine.current_pass.windows
    if len(windows) != config.num_hidden_layers:
        raise ValueError("not all of its layers are attention")
    # Some models have their window in a mask alone, which a short text does not show.
    if "sliding_attention" in features and not any(windows.values()):
        raise ValueError("its window is no option of its attention")
    differences = []
    limits = []
    for number, (leaf, path) in enumerate(zip(leaves, pack.paths, strict=True)):
        plain_logits = engine.run([*leaf.tokens, last_token])
        limits.append(_largest_difference(engine, plain_logits))
        positions = np.flatnonzero(np.isin(path[:-1], needed))
        rows = np.searchsorted(needed, path[positions])
        next_tokens = [leaf.tokens[position + 1] for position in positions]
        read = _difference(logits[rows], plain_logits[positions], next_tokens)
        grown = _difference(grown_logits[number, None], plain_logits[-1, None], [last_token])
        differences += [read, grown]
    difference, limit = max(differences), max(limits)
    if not difference <= limit:  # also NaN
        raise ValueError(f"log-probabilities differ by {difference:.3g}, more than {limit:.3g}")
    return slots.slot_bytes


def _largest_difference(engine: Engine, plain_logits: torch.Tensor) -> float:
    """Return by how much log-probabilities of a token may differ where these are the logits."""
    dtype = engine.autocast or engine.model.dtype
    is_short = dtype.itemsize < torch.float32.itemsize
    if is_short:
        return _MAX_DIFFERENCE_SHORT
    return _MAX_DIFFERENCE * max(1.0, float(plain_logits.max()) / _SMALL_LOGIT)


def _features(engine: Engine, config: "PretrainedConfig") -> set[str]:
    """Return the types of a model's layers and of its positions."""
    features = set(getattr(config, "layer_types", None) or ())
    if not features and getattr(config, "sliding_window", None):
        features.add("sliding_attention")
    rope_parameters = getattr(config, "rope_parameters", None) or {}
    # Some models have them for each type of layer.
    for parameters in (rope_parameters, *rope_parameters.values()):
        if isinstance(parameters, dict):
            features.add(parameters.get("rope_type", "default"))
    for module in engine.model.modules():
        if hasattr(module, "create_position_ids_from_input_ids"):
            features.add("positions that depend on the padding token")
    return features


def _difference(logits: torch.Tensor, plain_logits: torch.Tensor, tokens: Sequence[int]) -> float:
    """Return the largest difference of two log-probabilities of a token after each row."""
    ours = _log_probabilities(logits, tokens)
    plain = _log_probabilities(plain_logits, tokens)
    return float((ours - plain).abs().max())


def _log_probabilities(logits: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    """Return the log-probability of a token after each row."""
    return logits.float().log_softmax(-1)[range(len(tokens)), tokens]


def _test_text(leaves: Sequence[Leaf]) -> Tokens:
    """Return the beginning of the longest text, three tokens or more."""
    longest = max((leaf.tokens for leaf in leaves), key=len)
    text = longest[:MAX_TEST_TOKENS]
    return text if len(text) > 2 else text * 3  # noqa: PLR2004


class Sharing:
    """A model, and whether its requests can be computed as a tree.

    Args:
        engine: The model.
        bound: The bound on the memory for keys and values, in bytes.
        obstacle: Why they cannot, if that is known.
    """

    def __init__(self, engine: Engine, bound: int, obstacle: str = "") -> None:
        self.engine = engine
        self.bound = bound
        self._warnings: set[str] = set()
        # None until the model is checked.
        self._obstacle: str | None = obstacle or None
        self._slot_bytes = 1
        self._is_packing_tried = False

    @property
    def max_slots(self) -> int:
        """The most slots that exist at a time, unless a single prompt takes more."""
        return self.bound // self._slot_bytes

    @property
    def group_tokens(self) -> int:
        """The most new tokens of a group."""
        return max(1, min(GROUP, self.max_slots // COPIES))

    def pays(self, leaves: Sequence[Leaf], generated: int = 0) -> bool:
        """Return whether a tree saves time and the model can do it; warn once why not."""
        ratio = sharing_ratio(leaves, generated)
        if ratio < self._least_ratio(generates=generated > 0):
            self.warn(
                f"these requests have {ratio:.2f} tokens for each distinct one, too few for "
                "sharing to pay: computed as hf does"
            )
            return False
        text = _test_text(leaves)
        if self._obstacle is None:
            self._obstacle = self._find_obstacle(text)
        if self._obstacle:
            self.warn(f"this model cannot share prefixes ({self._obstacle}): computed as hf does")
            return False
        if generated:
            self._pack(text[:MAX_PACKED_TEST_TOKENS])
        return True

    def _least_ratio(self, *, generates: bool) -> float:
        """Return the tokens per distinct token from which a tree saves time."""
        if not generates:
            return MIN_RATIO_TO_SCORE
        if self.engine.device.type == "cpu":
            return 1.0
        return MIN_RATIO_TO_GENERATE

    def _find_obstacle(self, text: Tokens) -> str:
        """Return why the model cannot share prefixes; "" if it can."""
        self.engine.report("Checking that prefixes can be shared")
        try:
            self._slot_bytes = check_model(self.engine, text)
        except torch.OutOfMemoryError:
            raise
        except (TypeError, ValueError, RuntimeError, AttributeError, LookupError) as error:
            return one_line(str(error) or type(error).__name__, limit=200)
        return ""

    def _pack(self, text: Tokens) -> None:
        """Pack the model's weights, unless the text's log-probabilities differ then."""
        engine = self.engine
        if self._is_packing_tried or engine.autocast is not None:
            return
        self._is_packing_tried = True
        self.engine.report("Packing the weights")
        plain_logits = engine.run(text)[:-1]
        plain = _log_probabilities(plain_logits, text[1:])
        # Smaller groups would cost more than packed weights gain.
        cache_bytes = GROUP * COPIES * self._slot_bytes
        try:
            packed = pack_linears(engine.model, self.bound - cache_bytes)
            with packed.in_use():
                ours = _log_probabilities(engine.run(text)[:-1], text[1:])
        # No memory, or a torch without these products: weights stay as they are.
        except (AttributeError, RuntimeError):
            return
        if float((ours - plain).abs().max()) <= _largest_difference(engine, plain_logits):
            engine.packed = packed
            self.bound -= packed.nbytes

    def warn(self, text: str) -> None:
        """Warn, once for each text."""
        if text not in self._warnings:
            self._warnings.add(text)
            _log.warning("hf-prefix: %s", text)
