"""The folder and the server that files come from, according to the environment.

``LM_EVAL_EXT_DATA`` names a local copy: files come from there only, never from the network.
Otherwise they come from the cache (``LM_EVAL_EXT_CACHE``, else the user's cache folder), and
missing ones are downloaded, from ``LM_EVAL_EXT_MIRROR`` if that is set. A variable that is set to
nothing counts as not set.
"""

import os
from pathlib import Path

from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import one_line


def local_copy() -> Path | None:
    """Returns the folder that ``LM_EVAL_EXT_DATA`` names, or None; it need not exist."""
    value = os.environ.get("LM_EVAL_EXT_DATA")
    return Path(value).expanduser().absolute() if value else None


def cache_dir() -> Path:
    """Returns the cache folder, whether it exists or not; data files are in its ``data/``."""
    value = os.environ.get("LM_EVAL_EXT_CACHE")
    if value:
        return Path(value).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("lm-eval-ext", appauthor=False))


def data_folder() -> Path:
    """Returns the folder that files are read from: the local copy, or the cache's data."""
    return local_copy() or cache_dir() / "data"


def mirror_url() -> str | None:
    """Returns the URL of the mirror that replaces upstream, or None.

    Raises:
        OptionError: ``LM_EVAL_EXT_MIRROR`` is not an http or https URL.
    """
    mirror = os.environ.get("LM_EVAL_EXT_MIRROR") or None
    if mirror and not mirror.lower().startswith(("http://", "https://")):
        raise OptionError(
            one_line(f"LM_EVAL_EXT_MIRROR is {mirror!r}; write a URL that starts with https://")
        )
    return mirror
