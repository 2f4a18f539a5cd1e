"""Statistics of numbers in clusters, independent of benchmarks and of lm-eval."""

from lm_eval_ext.stats.bootstrap import Uncertainty, cluster_bootstrap
from lm_eval_ext.stats.clustered import Clustered, ClusteredValue, clustered_standard_error

__all__ = [
    "Clustered",
    "ClusteredValue",
    "Uncertainty",
    "cluster_bootstrap",
    "clustered_standard_error",
]
