"""The benchmarks' original data, where they are available locally."""

import os
from pathlib import Path

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


class UnavailableError(SystemExit):
    """Data are missing; unless it is caught, the program ends with this message."""


def originals(name: str) -> Path:
    """Return a file or folder of the original data.

    Raises:
        UnavailableError: It does not exist.
    """
    folder = os.environ.setdefault("LM_EVAL_EXT_DATA", str(BESIDE))  # for children, too
    path = Path(folder, name)
    if path.exists():
        return path
    raise UnavailableError(f"it needs the original data: LM_EVAL_EXT_DATA has no {name}")
