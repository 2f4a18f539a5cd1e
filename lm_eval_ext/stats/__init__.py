"""Statistics of numbers in clusters, independent of benchmarks and of lm-eval."""

from lm_eval_ext.stats.clustered import Clustered, ClusteredValue, clustered_standard_error
from lm_eval_ext.stats.intervals import Estimate, Interval, Limits, interval, mean_estimate

__all__ = [
    "Clustered",
    "ClusteredValue",
    "Estimate",
    "Interval",
    "Limits",
    "clustered_standard_error",
    "interval",
    "mean_estimate",
]
