"""DiNeR's dataset and splits, built from a corpus of recipes (paper, section 3)."""

from lm_eval_ext.benchmarks.diner.build.dataset import Options
from lm_eval_ext.benchmarks.diner.build.dataset import build as build_dataset

__all__ = ["Options", "build_dataset"]
