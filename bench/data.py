"""The benchmarks' original data, where they are at hand."""

import os
from pathlib import Path

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where a copy may lie beside the project."""


class NotAtHandError(Exception):
    """Rows that need what is not there are left out, and said to be."""


def originals(name: str) -> Path:
    """Returns a file or folder of the original data.

    Raises:
        NotAtHandError: It is not there.
    """
    # Also for the processes that are started.
    folder = os.environ.setdefault("LM_EVAL_EXT_DATA", str(BESIDE))
    path = Path(folder, name)
    if not path.exists():
        raise NotAtHandError(f"it needs the original data; there is no {name} in LM_EVAL_EXT_DATA")
    return path
