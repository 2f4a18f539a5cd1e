"""Whether requests are computed as a tree, and how much of it at a time.

A tree must save enough tokens, and the model must give the same answers over packs, which is tested
on a sample (:func:`obstacle`). Memory decides how much is computed and held at a time.
"""

from typing import Any

import numpy as np
import psutil  # comes with accelerate, without which lm-eval's hf does not run
import torch

from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.models.prefix import parts
from lm_eval_ext.models.prefix.engine import Engine, UnknownAttentionError
from lm_eval_ext.models.prefix.parts import Block, Branches
from lm_eval_ext.models.prefix.plan import Group, Limits, Pack, Tree, grow, lay_out

_log = get_logger(__name__)

MIB = 1 << 20

STEP = {"cpu": 256}
STEP_OF_OTHERS = 4096
"""New tokens in a forward pass: a longer one isn't faster per token."""

UNIT = 256
"""New tokens of a group are a multiple of it, so that a CPU's forward passes are full."""

PACK = {"cpu": 4096}
PACK_OF_OTHERS = 16384
"""New tokens in a group: attention compares each with all others, most of them unrelated."""

GROWING = 8192
"""New tokens in a group of texts that grow in branches, which look at relatives only. The more of
them take a step together, the less often are the weights read."""

FREE_SHARE = 0.5
"""Of the memory that is free: the rest is for activations, masks and logits."""


def bound_bytes(argument: Any, device: torch.device) -> int:
    """Returns the bound on keys and values in bytes: the user's, or half of the free memory.

    Raises:
        OptionError: For an argument that isn't a positive number.
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
    return int(psutil.virtual_memory().available * FREE_SHARE)


def step(device: torch.device) -> int:
    """Returns the number of new tokens in a forward pass."""
    return STEP.get(device.type, STEP_OF_OTHERS)


ROW = 256
"""Slots of a group of short sequences; a CPU computes several such groups side by side."""

SHORT = ROW // 4
"""Longest sequence for it: what a group shares with the one before is computed again."""

BESIDE = 1024
"""New tokens of a forward pass over such groups. All threads wait for each other at every step
of a pass, on a busy machine for long; fewer passes are what saves time there."""

LOGITS = 1 << 25
"""Most logits of such a pass, whatever the vocabulary."""


def beside(tokens: int, vocabulary: int) -> int:
    """Returns the number of groups side by side.

    Args:
        tokens: That the batch size allows for.
        vocabulary: Tokens in it.
    """
    return max(1, min(max(tokens, BESIDE), LOGITS // vocabulary) // ROW)


def limits_of(
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


TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
"""Largest difference of log-probabilities up to which two computations count as the same."""

TOLERANCE_OF_SHORT_DTYPES = 1.0

REACH = 512
"""Tokens that a model is tried with whose configuration names no longer range."""


def sample_of(config: Any, longest: tuple[int, ...]) -> tuple[int, ...]:
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
    order of slots rather than by mask and positions, or whose state isn't a cache of keys and
    values, differs or fails.

    Args:
        engine: With nothing in it.
        tokens: See :func:`sample_of`.
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
        if engine.in_parts:
            found, expected = _parts(engine, pack, tree)
            packed, plain = torch.cat([packed, found]), torch.cat([plain, expected])
    except (TypeError, ValueError, RuntimeError, AttributeError, LookupError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    difference = (_logprobs(packed) - _logprobs(plain)).abs().max().item()
    if difference <= TOLERANCE.get(engine.model.dtype, TOLERANCE_OF_SHORT_DTYPES):
        return ""
    return f"log-probabilities differ by {difference:.2g}"


def _parts(engine: Engine, pack: Pack, tree: Tree[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of two short texts side by side, and of all leaves with a token more; plain ones."""
    short = tree.leaves[0].tokens[:SHORT]
    texts = [short, short[1:] or short]
    packs = [lay_out(Group(0, grow([(0, text, 0)]).leaves)) for text in texts]
    ends = np.array([len(texts[0]) - 1, len(texts[0]) + len(texts[1]) - 1])
    found = [engine.side_by_side(packs, ends)]
    if engine.branches:
        token = short[0]
        depths = np.array([len(leaf.tokens) for leaf in tree.leaves])
        block = Block(0, len(depths), min(leaf.common for leaf in tree.leaves[-1:]))
        branches = Branches(engine.cache.layers, pack, [block], 1)
        found.append(engine.branch(branches, np.full(len(depths), token), depths))
        texts += [(*leaf.tokens, token) for leaf in tree.leaves]
    return torch.cat(found), torch.stack([_plain(engine, text) for text in texts])


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


LEAST_SHARING = 1.1
"""Tokens per distinct token below which requests are computed as ``hf`` does."""

LEAST_SHARING_TO_GENERATE = 1.5
"""The same with the tokens that may be generated. It is more, since a text that grows in a pack
is compared with the others that grow there, too."""


class Sharing:
    """A model, and whether its requests can be computed as a tree.

    Args:
        model: A model of transformers.
        device: Where its inputs go.
        autocast: The mixed-precision dtype, or None.
        bound: On the memory for keys and values, in bytes.
    """

    def __init__(
        self, model: Any, device: torch.device, autocast: torch.dtype | None, bound: int
    ) -> None:
        self.model = model
        self.device = device
        self.autocast = autocast
        self.bound = bound
        self._said: set[str] = set()
        self._checked = 0
        self._obstacle = ""
        self._slot_bytes = 1
        self._in_parts = parts.possible(model, device)
        self._branches = False

    def pays(self, tree: Tree[int], generated: int = 0) -> bool:
        """Whether a tree saves time and the model can do it; warns once why not."""
        sharing = tree.sharing(generated)
        if sharing < (LEAST_SHARING_TO_GENERATE if generated else LEAST_SHARING):
            self.say(
                f"these requests have {sharing:.2f} tokens for each distinct one, too few for "
                "sharing to pay: computed as hf does"
            )
            return False
        longest = max((leaf.tokens for leaf in tree.leaves), key=len)
        sample = sample_of(self.model.config, longest)
        # A longer text may reach past a window that a shorter one did not.
        if len(sample) > self._checked and not self._obstacle:
            self._checked = len(sample)
            self._check(sample)
        if self._obstacle:
            self.say(f"this model cannot share prefixes ({self._obstacle}): computed as hf does")
            return False
        _log.info(
            "hf-prefix: %d tokens, of which %d are distinct (%.1f : 1)",
            tree.total,
            tree.distinct,
            tree.sharing(),
        )
        return True

    def engine(self) -> Engine:
        """Returns the model with nothing computed yet."""
        size = step(self.device)
        return Engine(self.model, self.device, self.autocast, size, in_parts=self._in_parts)

    def limits(self, tree: Tree[int], batch_size: int | str, generated: int = 0) -> Limits:
        """Returns the limits of a tree's groups; see :func:`limits_of`."""
        longest = max(len(leaf.tokens) for leaf in tree.leaves)
        slots = self.bound // self._slot_bytes
        limits = limits_of(self.device, slots, batch_size, longest, generated)
        if generated and self._branches:
            half = slots // 2
            return Limits(GROWING, half, generated, generated_slots=2 * GROWING, copies=half)
        if generated or longest > SHORT or not self._in_parts:
            return limits
        vocabulary = self.model.config.get_text_config(decoder=True).vocab_size
        return Limits(ROW, slots, beside=beside(limits.new_tokens, vocabulary))

    def say(self, text: str) -> None:
        """Warns, once for each text."""
        if text not in self._said:
            self._said.add(text)
            _log.warning("hf-prefix: %s", text)

    def _check(self, sample: tuple[int, ...]) -> None:
        try:
            engine = self.engine()
        except UnknownAttentionError as error:
            self._obstacle = str(error)
            return
        self._obstacle = obstacle(engine, sample)
        if self._obstacle and self._in_parts:
            self._in_parts = False
            engine = self.engine()
            self._obstacle = obstacle(engine, sample)
        self._branches = engine.branches
        self._slot_bytes = max(engine.cache.slot_bytes, 1)
