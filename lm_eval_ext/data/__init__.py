"""Data files: declared, pinned, verified, and downloaded when they are needed."""

from lm_eval_ext.data.fetching import mirror_url, require, require_all
from lm_eval_ext.data.files import (
    DataFile,
    DataFolder,
    available,
    cache_dir,
    data_folder,
    folder_of,
    inspect,
    local_copy,
)
from lm_eval_ext.data.sources import Source, sources

__all__ = [
    "DataFile",
    "DataFolder",
    "Source",
    "available",
    "cache_dir",
    "data_folder",
    "folder_of",
    "inspect",
    "local_copy",
    "mirror_url",
    "require",
    "require_all",
    "sources",
]
