"""Makes lm-eval's documents of items that are drawn."""

import hashlib
from typing import TYPE_CHECKING

from lm_eval_ext.benchmarks.lieder import load
from lm_eval_ext.benchmarks.lieder.fresh import draw
from lm_eval_ext.benchmarks.lieder.fresh.lexicon import text
from lm_eval_ext.benchmarks.lieder.records import Experiment
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import loader

if TYPE_CHECKING:
    from datasets import DatasetDict

EXPERIMENTS: tuple[Experiment, ...] = ("base", "diff", "two")


@loader(prefix="lieder_")
def dataset(
    lieder_experiment: Experiment = "base",
    lieder_items: int = 200,
    lieder_seed: int | None = 0,
    fresh: int | None = None,
) -> "DatasetDict":
    """Draws the items of one experiment for lm-eval, as the split ``test``.

    Args:
        lieder_experiment: ``base``, ``diff`` or ``two``; all three are about the same items.
        lieder_items: Their number.
        lieder_seed: Any whole number.
        fresh: Instead, the seed for all benchmarks.

    Raises:
        OptionError: A value is not legal.
    """
    if lieder_experiment not in EXPERIMENTS:
        raise OptionError(
            f"no LIEDER experiment {lieder_experiment!r} to draw; use {', '.join(EXPERIMENTS)}"
        )
    most = draw.capacity()
    if not _whole(lieder_items) or not 1 <= lieder_items <= most:
        raise OptionError(f"lieder_items is {lieder_items!r}; use a whole number from 1 to {most}")
    if fresh is None and not _whole(lieder_seed):
        raise OptionError(f"lieder_seed is {lieder_seed!r}; use a whole number")
    seed = f"seed {lieder_seed}" if fresh is None else f"fresh {fresh}"
    groups = draw.groups(lieder_items, seed, lieder_experiment)
    drawn = (one.context + one.continuation for group in groups for one in group.sentences)
    digest = hashlib.sha256("\n".join((text(), *drawn)).encode()).hexdigest()
    info = provenance.describe_embedded("lieder_fresh", digest)
    return load.documents(groups, lieder_experiment, info)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
