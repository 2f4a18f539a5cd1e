"""Our tasks in this process, without lm-eval's whole index."""

from typing import Any


def load_task(name: str, **metadata: Any) -> Any:
    """A task as lm-eval makes it."""
    from lm_eval_ext.runs.tasks import own_manager

    return own_manager(metadata=metadata).load([name])["tasks"][name]
