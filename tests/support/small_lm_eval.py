"""lm-eval with one of its 14,000 tasks: indexing them all takes seconds, at every start."""

import importlib.util
import shutil
from pathlib import Path

import pytest

LEFT = "hellaswag"
"""The task that is left."""


def copy_to(folder: Path) -> Path:
    """Copies the installed lm-eval, with one of its tasks; returns what to import it from.

    Times are copied too, so that Python goes on using the bytecode that lies there.
    """
    spec = importlib.util.find_spec("lm_eval")
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).parent

    def unwanted(path: str, names: list[str]) -> list[str]:
        if Path(path) == source / "tasks":
            kept = (LEFT, "__pycache__")
            return [name for name in names if "." not in name and name not in kept]
        return []

    shutil.copytree(source, folder / "lm_eval", ignore=unwanted)
    return folder


def index(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Makes this process read lm-eval's tasks from such a copy."""
    from lm_eval.tasks import _index, manager

    for module in (_index, manager):
        file = Path(str(module.__file__)).name
        patch.setattr(module, "__file__", str(folder / "lm_eval" / "tasks" / file))
