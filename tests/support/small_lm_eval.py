"""lm-eval with one of its 14,000 tasks: indexing them all takes seconds, at every start."""

import importlib.util
import shutil
from pathlib import Path

import pytest

ONLY_TASK = "hellaswag"
"""The task that the copy has."""


def copy_to(folder: Path) -> Path:
    """Copy the installed lm-eval, with one of its tasks; return the folder to import it from.

    Times are copied too, so that Python goes on using the bytecode that lies there.
    """
    spec = importlib.util.find_spec("lm_eval")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).parent
    copied_folders = (ONLY_TASK, "__pycache__")

    def uncopied(path: str, names: list[str]) -> list[str]:
        if Path(path) != source / "tasks":
            return []
        return [name for name in names if "." not in name and name not in copied_folders]

    shutil.copytree(source, folder / "lm_eval", ignore=uncopied)
    return folder


def index_from(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Make this process read lm-eval's tasks from such a copy."""
    from lm_eval.tasks import _index, manager

    for module in (_index, manager):
        file = Path(str(module.__file__)).name
        patch.setattr(module, "__file__", str(folder / "lm_eval" / "tasks" / file))
