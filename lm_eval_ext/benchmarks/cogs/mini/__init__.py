"""cogs_mini: a small dataset of our own in COGS's design, generated from a fixed seed.

It has exposure examples, in-distribution tests and generalization types like COGS (paper, section
2), with another grammar and other words. It is for tests and demonstrations, and too small to
measure a real model.
"""

from lm_eval_ext.benchmarks.cogs.mini.grammar import items
from lm_eval_ext.benchmarks.cogs.mini.splits import ALL_SPLITS, digest, examples

__all__ = ["ALL_SPLITS", "digest", "examples", "items"]
