"""Where data files come from: declared, pinned, verified, fetched when they are needed."""

from lm_eval_ext.data.folders import cache_dir, data_folder, local_copy
from lm_eval_ext.data.inspection import Finding
from lm_eval_ext.data.sources import FileSpec, Source, sources
from lm_eval_ext.data.store import DataFile, at_hand, fetch, inspect, path_of, require

__all__ = [
    "DataFile",
    "FileSpec",
    "Finding",
    "Source",
    "at_hand",
    "cache_dir",
    "data_folder",
    "fetch",
    "inspect",
    "local_copy",
    "path_of",
    "require",
    "sources",
]
