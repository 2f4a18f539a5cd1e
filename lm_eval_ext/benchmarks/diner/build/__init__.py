"""DiNeR's dataset and splits, built from a corpus of recipes (paper, section 3)."""

from lm_eval_ext.benchmarks.diner.build.dataset import Options
from lm_eval_ext.benchmarks.diner.build.dataset import build as build_dataset
from lm_eval_ext.benchmarks.diner.build.tmcd import Split
from lm_eval_ext.benchmarks.diner.build.tmcd import split as tmcd_split

__all__ = ["Options", "Split", "build_dataset", "tmcd_split"]
