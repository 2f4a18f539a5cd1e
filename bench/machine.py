"""The machine and the versions that were measured."""

import os
import platform
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

LIBRARIES = (
    "lm_eval", "torch", "transformers", "numpy", "scipy", "statsmodels", "bm25s", "rank-bm25",
)  # fmt: skip

CPUINFO = Path("/proc/cpuinfo")


def describe() -> dict[str, Any]:
    """Returns date, processor and versions."""
    import torch

    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in LIBRARIES},
    }


def _processor() -> str:
    if CPUINFO.exists():
        for line in CPUINFO.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
