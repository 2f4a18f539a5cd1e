"""cogs_mini: a small COGS of our own, generated from a fixed seed, for tests and demonstrations.

It has COGS's design (fact sheet, "COGS": exposure examples, tests within the distribution,
generalization types) and none of its text: another grammar with other words. It is too small to
tell much about a real model.
"""

from lm_eval_ext.benchmarks.cogs.mini.grammar import items
from lm_eval_ext.benchmarks.cogs.mini.splits import ALL_SPLITS, digest, examples

__all__ = ["ALL_SPLITS", "digest", "examples", "items"]
