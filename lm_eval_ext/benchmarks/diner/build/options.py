"""What a user can choose about a build."""

import math
from dataclasses import dataclass

from lm_eval_ext.benchmarks.diner.build.engine import MEMORY_GIB
from lm_eval_ext.errors import OptionError

DIVERGENCE = 0.98
"""Of the paper's main split; 0.8 and 0.6 are its others (section 6)."""


@dataclass(frozen=True)
class Options:
    """Choices; all but the memory change the dataset.

    Attributes:
        divergence: Where the search for the TMCD split stops, above 0 and up to 1.
        proportion: Of the training parts, above 0 and up to 1.
        seed: Of both splits.
        memory_gib: Most memory of the database.
    """

    divergence: float = DIVERGENCE
    proportion: float = 1.0
    seed: int = 0
    memory_gib: float = MEMORY_GIB

    def __post_init__(self) -> None:
        """Checks them.

        Raises:
            OptionError: One is not legal.
        """
        if not 0 < self.divergence <= 1:
            raise OptionError(
                f"--divergence {self.divergence}: use a number above 0 and up to 1; the paper's "
                "are 0.98, 0.8 and 0.6"
            )
        if not 0 < self.proportion <= 1:
            raise OptionError(
                f"--proportion {self.proportion}: use a number above 0 and up to 1; the paper's "
                "are 0.2, 0.4, 0.6, 0.8 and 1.0"
            )
        if not (math.isfinite(self.memory_gib) and self.memory_gib > 0):
            raise OptionError(f"--memory {self.memory_gib}: use a number of GiB above 0")
