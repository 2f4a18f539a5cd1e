"""Our commands and lm-eval's in this process: in a process of its own each imports for seconds."""

import io
import json
import logging
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import pytest

from support.small_lm_eval import index_from

_ONE_AT_A_TIME = threading.Lock()


@dataclass
class Completed:
    """A finished command, and the folder of its output."""

    returncode: int
    stdout: str
    stderr: str
    output: Path

    def results(self) -> dict[str, Any]:
        """Return the newest results file."""
        files = sorted(self.output.rglob("results_*.json"))
        assert files, self.stderr[-4000:]
        content: dict[str, Any] = json.loads(files[-1].read_text(encoding="utf-8"))
        return content

    def samples(self, task: str) -> list[dict[str, Any]]:
        """Return the newest logged samples of a task."""
        file = max(self.output.rglob(f"samples_{task}_*.jsonl"))
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


Command: TypeAlias = Callable[..., Completed]
"""The fixtures ``cli`` and ``lm_eval``: functions that run a command with these words."""


def until(condition: Callable[[], object], event: str = "the condition") -> None:
    """Wait for a condition, ten minutes at most; ``event`` names it in the error."""
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end, f"it never happens: {event}"
        time.sleep(0.02)


def run_here(
    main: Callable[[], int | None],
    words: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    small_lm_eval: Path,
) -> "subprocess.CompletedProcess[str]":
    """Call a command's main function with these words, in a folder, as if it were a process.

    Args:
        main: Returns the exit status (None: 0), or raises SystemExit.
        words: The command line, with the name of the program.
        environment: Variables that are set.
        folder: The working folder.
        small_lm_eval: A copy of lm-eval with one task, whose tasks are indexed.
    """
    out, err = io.StringIO(), io.StringIO()
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
        index_from(small_lm_eval, patch)
        _restore_later(patch)
        with _logging_to(err):
            status = _exit_status(main)
    return subprocess.CompletedProcess(list(words), status, out.getvalue(), err.getvalue())


def _restore_later(patch: pytest.MonkeyPatch) -> None:
    """Undo afterwards what the process of an evaluation replaces in lm-eval."""
    import lm_eval.evaluator
    import lm_eval.utils
    from lm_eval.models import api_models
    from lm_eval.tasks import _index

    patch.setattr(lm_eval.utils, "_LOGGING_CONFIGURED", True)
    for holder, name in (
        (lm_eval.evaluator, "evaluate"),
        (api_models.TemplateAPI, "__init__"),
        (_index.TaskIndex, "build"),
    ):
        patch.setattr(holder, name, vars(holder)[name])


@contextmanager
def _logging_to(stream: TextIO) -> Iterator[None]:
    """Write lm-eval's log to a stream, and restore its level afterwards."""
    logger = logging.getLogger("lm_eval")
    handler = logging.StreamHandler(stream)
    level = logger.level
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _exit_status(main: Callable[[], int | None]) -> int:
    """Call a main function; return the exit status that its process would have."""
    try:
        return main() or 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201
            return 1
        return end.code or 0
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        return 1
