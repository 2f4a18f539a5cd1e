"""Statistics that know numbers and clusters, and no benchmark."""

from lm_eval_ext.stats.clustered import ClusteredValue, clustered_standard_error

__all__ = ["ClusteredValue", "clustered_standard_error"]
