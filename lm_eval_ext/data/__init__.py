"""Where data files come from: declared, pinned, verified, fetched when they are needed."""

from lm_eval_ext.data.declared import FileSpec, Source
from lm_eval_ext.data.fetch_many import DataFolder, folder_of, inspect_all, require_all
from lm_eval_ext.data.folders import cache_dir, data_folder, local_copy
from lm_eval_ext.data.inspection import Finding
from lm_eval_ext.data.sources import sources
from lm_eval_ext.data.store import DataFile, at_hand, fetch, inspect, path_of, require

__all__ = [
    "DataFile",
    "DataFolder",
    "FileSpec",
    "Finding",
    "Source",
    "at_hand",
    "cache_dir",
    "data_folder",
    "fetch",
    "folder_of",
    "inspect",
    "inspect_all",
    "local_copy",
    "path_of",
    "require",
    "require_all",
    "sources",
]
