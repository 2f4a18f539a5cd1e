"""Whether requests are computed as a tree, and how much of it at a time."""

from typing import Any

import torch

from lm_eval_ext.log import get_logger
from lm_eval_ext.models.prefix import check, memory
from lm_eval_ext.models.prefix.engine import Engine
from lm_eval_ext.models.prefix.masks import UnknownAttentionError
from lm_eval_ext.models.prefix.plan import Limits
from lm_eval_ext.models.prefix.tree import Tree

logger = get_logger(__name__)

LEAST_SHARING = 1.1
"""Tokens per distinct token below which requests are computed as ``hf`` does."""

LEAST_SHARING_TO_GENERATE = 1.5
"""The same with the tokens that may be generated. It is more, since a text that grows in a pack
is compared with the others that grow there, too."""


class Sharing:
    """A model, and what has been found out about it.

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

    def pays(self, tree: Tree[int], generated: int = 0) -> bool:
        """Whether a tree saves time and the model can do it; says once what is not so."""
        sharing = tree.sharing(generated)
        if sharing < (LEAST_SHARING_TO_GENERATE if generated else LEAST_SHARING):
            self.say(
                f"these requests have {sharing:.2f} tokens for each distinct one, too few for "
                "sharing to pay: computed as hf does"
            )
            return False
        longest = max((leaf.tokens for leaf in tree.leaves), key=len)
        sample = check.sample(self.model.config, longest)
        # A longer text may reach past a window that a shorter one did not.
        if len(sample) > self._checked and not self._obstacle:
            self._checked = len(sample)
            self._check(sample)
        if self._obstacle:
            self.say(f"this model cannot share prefixes ({self._obstacle}): computed as hf does")
            return False
        logger.info(
            "hf-prefix: %d tokens, of which %d are distinct (%.1f : 1)",
            tree.total,
            tree.distinct,
            tree.sharing(),
        )
        return True

    def engine(self) -> Engine:
        """Returns the model with nothing computed yet."""
        return Engine(self.model, self.device, self.autocast, memory.step(self.device))

    def limits(self, tree: Tree[int], batch_size: int | str, generated: int = 0) -> Limits:
        """Returns the limits of a tree's groups; see :func:`.memory.limits`."""
        longest = max(len(leaf.tokens) for leaf in tree.leaves)
        slots = self.bound // self._slot_bytes
        return memory.limits(self.device, slots, batch_size, longest, generated)

    def say(self, text: str) -> None:
        """Warns, once for each text."""
        if text not in self._said:
            self._said.add(text)
            logger.warning("hf-prefix: %s", text)

    def _check(self, sample: tuple[int, ...]) -> None:
        try:
            engine = self.engine()
        except UnknownAttentionError as error:
            self._obstacle = str(error)
            return
        self._obstacle = check.obstacle(engine, sample)
        self._slot_bytes = max(engine.cache.slot_bytes, 1)
