"""Finds the folder of our task files; imports nothing of the package, so any module may use it."""

import os

_PACKAGE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (no pathlib: start-up time)


def tasks_folder() -> str:
    """Return the folder of our task files: in an installed wheel, or the checkout's ``tasks``."""
    installed = os.path.join(_PACKAGE, "tasks")  # noqa: PTH118
    if os.path.isdir(installed):  # noqa: PTH112
        return installed
    return os.path.join(os.path.dirname(_PACKAGE), "tasks")  # noqa: PTH118, PTH120
