"""The benchmarks' original data, where they are available locally."""

import os
from pathlib import Path

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
"""A copy beside the project."""


class UnavailableError(SystemExit):
    """Data are missing: whoever does not skip what needs them ends with this message."""


def originals(name: str) -> Path:
    """Returns a file or folder of the original data.

    Raises:
        UnavailableError: It does not exist.
    """
    # Set for child processes too.
    folder = os.environ.setdefault("LM_EVAL_EXT_DATA", str(BESIDE))
    path = Path(folder, name)
    if not path.exists():
        raise UnavailableError(f"it needs the original data: LM_EVAL_EXT_DATA has no {name}")
    return path
