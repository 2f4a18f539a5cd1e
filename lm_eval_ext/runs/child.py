"""The process that evaluates one model: lm-eval's own command line, with four differences.

Where all tasks are ours or the user's, no others are indexed. Tokens are counted. Servers are asked
patiently (:mod:`.servers`). It ends when the process that started it ends, even if that was killed,
so that no orphaned evaluation keeps a GPU.

    python -m lm_eval_ext.runs.child own|all CONFIG
"""

import _thread
import os
import sys
import threading
import time

GRACE_S = 10
"""Seconds that an evaluation may take to end by itself."""

OWN = "own"


def main() -> None:
    """Runs ``lm_eval run --config CONFIG``."""
    which, config = sys.argv[1:]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from lm_eval_ext._autoload import install, watch
    from lm_eval_ext.runs import servers

    install()
    watch(servers.MODULE, servers.be_patient, "servers are asked as lm-eval does it")
    if which == OWN:
        _index_own_tasks_only()
    sys.argv = ["lm_eval", "run", "--config", config]
    import lm_eval.evaluator
    from lm_eval.__main__ import cli_evaluate

    from lm_eval_ext.runs.usage import counting

    lm_eval.evaluator.evaluate = counting(lm_eval.evaluator.evaluate)

    cli_evaluate()


def _end_with_parent() -> None:
    """Waits for the end of stdin, a pipe that is closed when the parent process ends."""
    while os.read(0, 1024):
        pass
    _thread.interrupt_main()
    time.sleep(GRACE_S)
    os._exit(130)


def _index_own_tasks_only() -> None:
    from collections.abc import Sequence
    from typing import Any

    import lm_eval.tasks

    from lm_eval_ext.runs.tasks import own_manager

    whole = lm_eval.tasks.TaskManager

    def manager(include_path: Any = None, metadata: Any = None, **others: Any) -> Any:
        paths: Sequence[Any] = include_path if isinstance(include_path, list) else [include_path]
        lm_eval.tasks.TaskManager = whole
        try:
            return own_manager([path for path in paths if path], metadata)
        finally:
            lm_eval.tasks.TaskManager = manager

    lm_eval.tasks.TaskManager = manager


if __name__ == "__main__":
    main()
