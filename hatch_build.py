"""Adds the task files and the start-up file to the wheel."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STARTUP_FILE = "lm_eval_ext_autoload.pth"


class WheelContents(BuildHookInterface):
    """Adds the task files and the start-up file to the wheel.

    A standard wheel carries ``tasks/`` as ``lm_eval_ext/tasks``. An editable one leaves
    it out, because the package then reads the checkout's own ``tasks/``. Both carry the
    ``.pth`` file, one line that Python runs at start-up (docs/discovery.md).
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Extends hatchling's inclusion maps; ``version`` is "standard" or "editable"."""
        if version == "editable":
            build_data["force_include_editable"][STARTUP_FILE] = STARTUP_FILE
        else:
            build_data["force_include"][STARTUP_FILE] = STARTUP_FILE
            build_data["force_include"]["tasks"] = "lm_eval_ext/tasks"
