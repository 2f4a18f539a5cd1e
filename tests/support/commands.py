"""Our commands and lm-eval's in this process: one of their own takes seconds for imports."""

import io
import logging
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from support.small_lm_eval import index

_ONE_AT_A_TIME = threading.Lock()


def until(condition: Callable[[], object], what: str = "it never happens") -> None:
    """Waits for a condition, ten minutes at most."""
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def run_here(
    main: Callable[[], Any],
    words: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    small_lm_eval: Path,
) -> "subprocess.CompletedProcess[str]":
    """Calls a command's main function with these words, and lm-eval's index of one task."""
    import lm_eval.evaluator
    import lm_eval.tasks
    import lm_eval.utils
    from lm_eval.models import api_models
    from lm_eval.tasks import _index

    out, err = io.StringIO(), io.StringIO()
    handler, logger = logging.StreamHandler(err), logging.getLogger("lm_eval")
    with (
        _ONE_AT_A_TIME,
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        patch.chdir(folder)
        patch.setattr(sys, "argv", list(words))
        for name, value in environment.items():
            patch.setenv(name, value)
        index(small_lm_eval, patch)
        patch.setattr(lm_eval.utils, "_LOGGING_CONFIGURED", True)
        # What `lm-eval-ext run` replaces in the process that evaluates.
        for place, name in (
            (lm_eval.evaluator, "evaluate"),
            (api_models.TemplateAPI, "__init__"),
            (_index.TaskIndex, "build"),
        ):
            patch.setattr(place, name, vars(place)[name])
        level = logger.level
        logger.addHandler(handler)
        try:
            status = main() or 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else bool(end.code)
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)  # noqa: T201
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            status = 1
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
    return subprocess.CompletedProcess(list(words), int(status), out.getvalue(), err.getvalue())
