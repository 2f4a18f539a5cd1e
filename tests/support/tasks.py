"""Our tasks in this process, without lm-eval's whole index."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lm_eval.api.task import Task


def load_task(name: str, **metadata: object) -> "Task":
    """Return a task as lm-eval makes it."""
    from lm_eval_ext.runs.tasks import our_task_manager

    return our_task_manager(metadata=metadata).load([name])["tasks"][name]
