"""Data files: declared, pinned, verified, and downloaded when they are needed."""

from lm_eval_ext.data.fetch_many import fetch, require, require_all
from lm_eval_ext.data.folders import cache_dir, data_folder, local_copy
from lm_eval_ext.data.sources import FileSpec, Source, sources
from lm_eval_ext.data.store import (
    DataFile,
    DataFolder,
    Finding,
    available,
    folder_of,
    inspect,
    path_of,
)

__all__ = [
    "DataFile",
    "DataFolder",
    "FileSpec",
    "Finding",
    "Source",
    "available",
    "cache_dir",
    "data_folder",
    "fetch",
    "folder_of",
    "inspect",
    "local_copy",
    "path_of",
    "require",
    "require_all",
    "sources",
]
