"""Our tasks in this process, without lm-eval's whole index."""

from typing import Any


def load_task(name: str, **metadata: Any) -> Any:
    """A task as lm-eval makes it."""
    from lm_eval_ext.runs.tasks import our_task_manager

    return our_task_manager(metadata=metadata).load([name])["tasks"][name]
